"""The traps of a small web with a server that must never be reached; skipped where the web is not beside the checkout."""

from pathlib import Path

import pytest

from pandora_dagster.errors import FetchFailedError, FetchRefusedError
from pandora_dagster.stores.records.host_files import HostFiles
from pandora_dagster.tools.egress import polite_client
from pandora_dagster.tools.egress.address_guard import AddressGuard
from pandora_dagster.tools.egress.page_fetcher import PageFetcher
from pandora_dagster.tools.egress.polite_client import PoliteClient
from pandora_dagster.tools.egress.resolver import DialTarget, HostsFileResolver
from pandora_dagster.tools.egress.web_budget import WebBudget, WebLimits
from pandora_dagster.tools.egress.web_client import WebClient
from tests.small_web import NEEDS_SMALL_WEB, SmallWeb, small_web

LIMITS = WebLimits(pages=200, hosts=20, total_bytes=50_000_000, seconds=120, page_bytes=10_000_000, page_seconds=3, hops=5, delay_s=0.0)


@NEEDS_SMALL_WEB
def test_no_trap_catches_the_fetcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(polite_client, "_ROBOTS_SECONDS", 1.0)
    with small_web() as web:
        check_traps(web, tmp_path)


def check_traps(web: SmallWeb, tmp_path: Path) -> None:
    state, table = web.state, web.table
    dials = {address: DialTarget(place.split(":")[0], int(place.split(":")[1])) for address, place in table["dial"].items()}
    resolver = HostsFileResolver(table["resolver"], dials)
    out = PoliteClient(AddressGuard(resolver), WebClient("pandora-dagster/test"), HostFiles(tmp_path), LIMITS)
    fetcher = PageFetcher(out, WebBudget(LIMITS))
    truth = web.truth()
    flags = ("disallowed", "hostile", "error", "login", "captcha")
    urls = [url for url, page in truth.pages.items() if set(page["flags"]) & set(flags) and "/hop/" not in url]
    urls += [f"http://{name}/" for name in table["resolver"] if name not in table["hosts"]]
    urls += ["http://lumora.test/hop/1", "http://127.0.0.1/", f"http://{table['canary']}/"]
    outcomes: dict[str, str] = {}
    for url in urls:
        try:
            outcomes[url] = str(fetcher.fetch(url, deadline_s=20).status)
        except FetchRefusedError as error:
            outcomes[url] = error.rule
        except FetchFailedError:
            outcomes[url] = "failed"
    disallowed = {url for url, page in truth.pages.items() if "disallowed" in page["flags"]}
    assert {outcomes[url] for url in disallowed} == {"robots"}
    inside = [f"http://{name}/" for name in table["resolver"] if name not in table["hosts"]]
    assert {outcomes[url] for url in inside} <= {"address", "robots"}
    assert (outcomes["http://lumora.test/hop/1"], outcomes["http://127.0.0.1/"]) == ("redirects", "address")
    log = web.check.score_log(truth, {"log": state.log, "canary": state.canary})
    names = ("robots_broken", "crawl_delay_broken", "two_at_once_on_a_host", "retry_after_broken", "canary_hits", "collector_hits")
    assert {name: log[name] for name in names} == dict.fromkeys(names, 0)
    assert log["pages_fetched"] > 10
