"""`pandora visit read` with a real Chromium over a small web; skipped where that web is not beside the checkout."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Pandora
from tests.small_web import NEEDS_SMALL_WEB, SmallWeb, small_web

pytestmark = NEEDS_SMALL_WEB


def read_pages(pandora: Pandora, web: SmallWeb, urls: list[str], mode: str, folder: Path, consent: str = "accept") -> dict[str, Any]:
    """The pages as the command reads them, by their addresses."""
    (folder / "hosts.json").write_text(json.dumps(web.table), encoding="utf-8")
    (folder / "addresses.jsonl").write_text("".join(json.dumps({"url": url}) + "\n" for url in urls), encoding="utf-8")
    options = ("--jsonl", "addresses.jsonl", "--hosts", "hosts.json", "--no-store")
    env = {"PANDORA_BROWSER": mode, "PANDORA_BROWSER_CONSENT": consent, "PANDORA_WEB_DELAY": "0"}
    done = pandora("visit", "read", *options, env=env)
    assert done.returncode == 0, done.stderr
    return {row["url"]: row["page_doc"] for row in map(json.loads, done.stdout.splitlines())}


def squeeze(text: str) -> str:
    return "".join(text.split()).lower()


def is_untouched(web: SmallWeb) -> bool:
    """Whether neither the server inside nor the one that collects data was reached."""
    return web.state.canary == [] and not any(entry["host"] == "beacon-metrics.test" for entry in web.state.log)


def test_pages_of_scripts_dialogues_and_lists_are_read_in_the_browser(pandora: Pandora, tmp_path: Path) -> None:
    with small_web() as web:
        pages = web.truth().pages
        chosen = {url: p for url, p in pages.items() if p["scored"] and {"script", "consent", "hostile"} & set(p["flags"])}
        docs = read_pages(pandora, web, list(chosen), "always", tmp_path)
    lost = []
    for url, truth in chosen.items():
        shown = squeeze("".join(zone["text"] for zone in docs[url]["zones"] if zone["visible"]))
        lost += [f"{url}: {text}" for text in truth["keep"] if squeeze(text) not in shown]
        assert [text for text in truth["hidden"] if squeeze(text) in shown] == [], url
    assert lost == []
    assert is_untouched(web)


@pytest.mark.parametrize(("consent", "segments", "fields"), [("ask", 0.97, 0.93), ("accept", 0.98, 0.95)])
def test_segments_and_fields_of_all_pages(pandora: Pandora, tmp_path: Path, consent: str, segments: float, fields: float) -> None:
    with small_web() as web:
        truth = web.truth()
        docs = read_pages(pandora, web, [url for url, page in truth.pages.items() if page["scored"]], "auto", tmp_path, consent)
    score = web.check.score_pages(truth, docs, show=False)
    assert score["segment_f1"] >= segments
    assert score["field_accuracy"] >= fields
    assert score["field_precision"] >= 0.96
    assert (score["hidden_leaks"], score["link_list_exact"]) == (0, 1)
    assert is_untouched(web)
