"""Pages of a small web with known truth, as its own scorer judges them. Pages that only scripts or a click complete are for a browser."""

import gzip
import importlib.util
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.documents.webpages import read_page

WEB = Path(__file__).parents[4] / "shared/data/small_web"
FOR_A_BROWSER = {"script", "consent"}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, WEB / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(WEB))
    names = ("kit", "site_pages", "serve", "check")
    before = {name: sys.modules.get(name) for name in names}
    yield {name: load(name) for name in names}
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


@pytest.mark.skipif(not WEB.exists(), reason=f"{WEB.name} is not beside this checkout")
def test_pages_of_a_small_web(modules: dict[str, Any]) -> None:
    check, serve = modules["check"], modules["serve"]
    truth = check.Truth(WEB / "truth.json")
    for page in truth.pages.values():
        page["scored"] = page["scored"] and not FOR_A_BROWSER & set(page["flags"])
    web, trap, state, table = serve.start(WEB)
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": table["proxy"]}))
        docs = {url: json.loads(read_page(fetch(opener, url)).model_dump_json()) for url, page in truth.pages.items() if page["scored"]}
    finally:
        state.stop.set()
        for server in (web, trap):
            server.shutdown()
            server.server_close()
    score = check.score_pages(truth, docs, show=False)
    assert score["segment_f1"] >= 0.93
    assert score["field_accuracy"] >= 0.90
    assert score["hidden_leaks"] == 0
    assert score["link_list_exact"] == 1


def fetch(opener: urllib.request.OpenerDirector, url: str) -> FetchedPage:
    try:
        answer = opener.open(url, timeout=20)
    except urllib.error.HTTPError:  # 429, once
        answer = opener.open(url, timeout=20)
    with answer:
        headers = {name.lower(): value for name, value in answer.headers.items()}
        body = answer.read()
    body = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
    return FetchedPage(url, answer.url, answer.status, headers, body, datetime.now(UTC))
