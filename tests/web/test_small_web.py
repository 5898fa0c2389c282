"""`pandora visit read` with a real Chromium over a small web; skipped where that web is not beside the checkout."""

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.cli.conftest import Pandora

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "small_web"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="shared/data/small_web is not beside the checkout")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"small_web_{name}", FOLDER / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small_web(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The state of the running web, and its tables."""
    monkeypatch.syspath_prepend(str(FOLDER))
    server, canary, state, table = load("serve").start(FOLDER)
    yield state, table
    state.stop.set()
    for running in (server, canary):
        running.shutdown()
        running.server_close()
    for name in ("kit", "site_pages"):
        sys.modules.pop(name, None)


def squeeze(text: str) -> str:
    return "".join(text.split()).lower()


@pytest.mark.parametrize("mode", ["auto", "always"])
def test_pages_of_scripts_dialogues_and_lists_are_read(
    mode: str, small_web: tuple[Any, dict[str, Any]], pandora: Pandora, tmp_path: Path
) -> None:
    state, table = small_web
    pages = json.loads((FOLDER / "truth.json").read_text(encoding="utf-8"))["pages"]
    chosen = {url: p for url, p in pages.items() if p["scored"] and {"script", "consent", "hostile"} & set(p["flags"])}
    hosts, addresses = tmp_path / "hosts.json", tmp_path / "addresses.jsonl"
    hosts.write_text(json.dumps(table), encoding="utf-8")
    addresses.write_text("".join(json.dumps({"url": url}) + "\n" for url in chosen), encoding="utf-8")
    done = pandora(
        "visit",
        "read",
        "--jsonl",
        "addresses.jsonl",
        "--hosts",
        "hosts.json",
        "--no-store",
        env={"PANDORA_BROWSER": mode, "PANDORA_WEB_DELAY": "0"},
    )
    assert done.returncode == 0, done.stderr
    docs = {row["url"]: row["page_doc"] for row in map(json.loads, done.stdout.splitlines())}
    lost = []
    for url, truth in chosen.items():
        shown = squeeze("".join(zone["text"] for zone in docs[url]["zones"] if zone["visible"]))
        lost += [f"{url}: {text}" for text in truth["keep"] if squeeze(text) not in shown]
        assert [text for text in truth["hidden"] if squeeze(text) in shown] == [], url
    assert lost == []
    assert state.canary == []
    assert [entry["host"] for entry in state.log if entry["host"] == "beacon-metrics.test"] == []
