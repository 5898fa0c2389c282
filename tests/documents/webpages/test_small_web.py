"""Pages of a small web with known truth, as its own scorer judges them. Pages that only scripts or a click complete are for a browser."""

import gzip
import json
import urllib.error
import urllib.request
from datetime import UTC, datetime

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.documents.webpages.page_reader import read_page
from tests.small_web import NEEDS_SMALL_WEB, small_web

FOR_A_BROWSER = {"script", "consent"}


@NEEDS_SMALL_WEB
def test_pages_of_a_small_web() -> None:
    with small_web() as web:
        truth = web.truth()
        for page in truth.pages.values():
            page["scored"] = page["scored"] and not FOR_A_BROWSER & set(page["flags"])
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": web.table["proxy"]}))
        docs = {url: json.loads(read_page(fetch(opener, url)).model_dump_json()) for url, page in truth.pages.items() if page["scored"]}
    score = web.check.score_pages(truth, docs, show=False)
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
