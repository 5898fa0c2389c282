"""Takes the pictures of docs/images with a headless browser: the demo in a temporary store, its old turns archived, Dagster over it.

The archive's pictures follow links: the day's materialisation, the page of the day, a document's lineage.

    python docs/take_screenshots.py [FOLDER]

Needs playwright and a Chromium of the system (`apt-get install chromium`); writes nothing outside FOLDER.
"""

import json
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
"""Eleven rows of assets, large enough to read their checks."""
TURN_SIZE: ViewportSize = {"width": 1720, "height": 800}
"""Wide enough for the lines of the answer beside the list of turns, which the picture leaves out."""
_MARGIN, _TITLE_HEIGHT = 24, 90
"""Pixels of the picture left of the turn's materialisation, and above it, where the turn and its state stand."""
ARCHIVE_SIZE: ViewportSize = {"width": 1500, "height": 1150}
DAY = "2026-09-21"
"""The day of the archive that is shown."""
SHOWN = "response"
"""The phase whose materialisation is shown: it has an answer, a call and two gates."""


def main(images: Path) -> None:
    images.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="pandora-pictures-") as folder:
        environment = {
            **os.environ,
            "PANDORA_ROOT": folder,
            "DAGSTER_HOME": f"{folder}/dagster",
            "PANDORA_RUNTIME": "extractive",
            "PANDORA_PAGES_PORT": str(_free_port()),
        }
        demo(environment)
        long_conversation(environment, Path(folder).with_suffix(".jsonl"))
        archival(environment)
        with webserver(environment) as address, pages(environment, address), browser() as chromium:
            graph(chromium.new_page(viewport=GRAPH_SIZE), address, images / "graph.png")
            turn(chromium.new_page(viewport=TURN_SIZE), address, live_turn(Path(folder)), images / "turn.png")
            archive_day(chromium.new_page(viewport=ARCHIVE_SIZE), address, images)


def demo(environment: Mapping[str, str]) -> None:
    """The example history and one live turn."""
    command = [sys.executable, "-c", "from pandora_dagster.cli import main; main()", "demo"]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command


def long_conversation(environment: Mapping[str, str], file: Path) -> None:
    """A conversation long enough to compress: three guides, asked about and answered."""
    guides = ("archive-and-restore", "connect-sglang", "run-batches")
    read = {name.replace("-", " "): (REPOSITORY / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8") for name in guides}
    messages: list[dict[str, str]] = []
    for name, text in read.items():
        messages.append({"role": "user", "content": f"What do our notes say about {name}, and which settings are there?"})
        messages.append({"role": "assistant", "content": text})
    line = {"id": "notes", "user_id": "example", "created_at": f"{DAY}T09:00:00Z", "messages": messages}
    file.write_text(json.dumps(line) + "\n", encoding="utf-8")
    command = [sys.executable, "-c", "from pandora_dagster.cli import main; main()", "import", str(file)]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    file.unlink()


def archival(environment: Mapping[str, str]) -> None:
    """The day that is shown; importing its conversation added its partition."""
    days = ["--partition", DAY]
    selection = ["--select", "archived_turns,session_summaries,user_digests"]
    command = [sys.executable, "-m", "dagster", "asset", "materialize", *selection, *days, "-m", "pandora_dagster.definitions"]
    subprocess.run(  # noqa: S603 - our own command
        command, cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def live_turn(root: Path) -> str:
    """The partition key of the turn that the demo ran: the newest one."""
    newest = max((root / "users").glob("*/turns/turn_*"), key=lambda p: p.name)
    return f"{newest.parents[1].name}:{newest.name}"


@contextmanager
def webserver(environment: Mapping[str, str]) -> Generator[str]:
    """Dagster on a free port; its address once it answers."""
    port = _free_port()
    command = [sys.executable, "-m", "dagster_webserver", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(port)]
    with _running(command, environment):
        yield _answering(f"http://127.0.0.1:{port}", "/server_info")


@contextmanager
def pages(environment: Mapping[str, str], dagster: str) -> Generator[str]:
    """The archive's pages, which Dagster links to, and which link to Dagster."""
    command = [sys.executable, "-c", "from pandora_dagster.cli import main; main()", "pages", "--dagster", dagster]
    with _running(command, environment):
        yield _answering(f"http://127.0.0.1:{environment['PANDORA_PAGES_PORT']}", "/")


@contextmanager
def _running(command: list[str], environment: Mapping[str, str]) -> Generator[None]:
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answering(address: str, path: str, *, seconds: float = 90) -> str:
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        try:
            urlopen(address + path, timeout=5).close()  # noqa: S310 - an http address on this machine
            return address
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.3)
    raise SystemExit(f"{address}: no answer after {seconds:.0f} s")


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
    page.get_by_text("Hide navigation").click()
    _settle(page)
    label = page.get_by_text("Latest materialization").first.bounding_box()
    if label is None:
        raise SystemExit(f"{SHOWN}: the page shows no materialization")
    left, top = label["x"] - _MARGIN, label["y"] - _TITLE_HEIGHT
    page.screenshot(path=picture, clip={"x": left, "y": top, "width": TURN_SIZE["width"] - left, "height": TURN_SIZE["height"] - top})


def archive_day(page: Page, address: str, images: Path) -> None:
    """From a day's materialisation to its table, to the page of the day, to the lineage of a document."""
    page.goto(f"{address}/assets/archived_turns?view=partitions&partition={DAY}")
    page.get_by_text("documents_table").first.wait_for(timeout=60_000)
    _settle(page)
    page.screenshot(path=images / "archive_day.png")
    link = page.get_by_role("link", name=f"/archive/{DAY}").first
    page.goto(link.get_attribute("href") or "")
    page.get_by_text(f"Archived turns of {DAY}").wait_for(timeout=30_000)
    page.locator("body").screenshot(path=images / "archive_page.png")
    page.get_by_role("link", name="context.md").first.click()
    page.get_by_role("heading", name="Made from", exact=True).wait_for(timeout=30_000)
    page.screenshot(path=images / "lineage.png")


def _settle(page: Page) -> None:
    """Waits for statuses, which load after the layout, and for the layout's animation."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(3_000)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
