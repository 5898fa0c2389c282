"""Takes docs/images/graph.png and turn.png: the demo in a temporary store, Dagster over it, a real headless browser.

    python docs/take_screenshots.py [FOLDER]

Needs playwright and a Chromium of the system (`apt-get install chromium`); writes nothing outside FOLDER.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

REPOSITORY = Path(__file__).resolve().parents[1]
IMAGES = REPOSITORY / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
GRAPH_SIZE: ViewportSize = {"width": 1150, "height": 2950}
"""Eleven floors of nodes, large enough to read their checks."""
TURN_SIZE: ViewportSize = {"width": 1500, "height": 1250}
SHOWN = "response"
"""The phase whose materialisation is shown: it has an answer, a call and two gates."""


def main(images: Path) -> None:
    images.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="pandora-pictures-") as folder:
        environment = {**os.environ, "PANDORA_ROOT": folder, "DAGSTER_HOME": f"{folder}/dagster", "PANDORA_RUNTIME": "extractive"}
        demo(environment)
        with webserver(environment) as address, browser() as chromium:
            graph(chromium.new_page(viewport=GRAPH_SIZE), address, images / "graph.png")
            turn(chromium.new_page(viewport=TURN_SIZE), address, live_turn(Path(folder)), images / "turn.png")


def demo(environment: Mapping[str, str]) -> None:
    """The example history and one live turn."""
    command = [sys.executable, "-c", "from pandora_dagster.cli import main; main()", "demo"]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command


def live_turn(root: Path) -> str:
    """The partition key of the turn that the demo ran: the newest one."""
    newest = max((root / "users").glob("*/turns/turn_*"), key=lambda p: p.name)
    return f"{newest.parents[1].name}:{newest.name}"


@contextmanager
def webserver(environment: Mapping[str, str]) -> Generator[str]:
    """Dagster on a free port; its address once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dagster_webserver", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield _answering(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(timeout=30)


def _answering(address: str, *, seconds: float = 90) -> str:
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        try:
            urlopen(f"{address}/server_info", timeout=5).close()  # noqa: S310 - an http address on this machine
            return address
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.3)
    raise SystemExit(f"{address}: dagster-webserver: no answer after {seconds:.0f} s")


@contextmanager
def browser() -> Generator[Browser]:
    """The system's Chromium, headless."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if not found:
        raise SystemExit(f"no browser: expected one of {', '.join(BROWSERS)} on the PATH (apt-get install chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=list(SWITCHES))
        yield chromium
        chromium.close()


def graph(page: Page, address: str, picture: Path) -> None:
    """The asset graph of a turn, as the group's lineage, from top to bottom."""
    page.goto(f"{address}/locations/pandora_dagster/asset-groups/turn/lineage")
    page.get_by_text("turn_summary").first.wait_for(timeout=60_000)
    page.get_by_text("Hide navigation").click()
    page.evaluate("localStorage.setItem('asset-graph-direction', JSON.stringify('vertical'))")
    page.reload()
    page.get_by_text("turn_summary").first.wait_for(timeout=60_000)
    _settle(page)
    page.screenshot(path=picture)


def turn(page: Page, address: str, partition: str, picture: Path) -> None:
    """One phase of the live turn: its section, calls and numbers."""
    page.goto(f"{address}/assets/{SHOWN}?view=partitions&partition={quote(partition)}")
    page.get_by_text("tokens_output").first.wait_for(timeout=60_000)
    _settle(page)
    page.screenshot(path=picture)


def _settle(page: Page) -> None:
    """Statuses come after the layout, and the layout moves for a moment."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(3_000)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
