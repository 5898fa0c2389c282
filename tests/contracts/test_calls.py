"""What a history of calls, their counts and a vault with a retention must do, asked of the stores on disk and of the fakes in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.model_calls import CallRecord, CallTokens, Usage
from pandora_dagster.contracts.ports.record_storage import CallCounts, CompressionTotals, ExpiringVault
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.calls.call_index import CALL_SCHEMA, DuckCallIndex
from pandora_dagster.stores.calls.call_log import CallFiles, IndexedCallLog
from pandora_dagster.stores.calls.vault_files import VaultFiles
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from tests.fakes.call_records import MemoryCallCounts, MemoryCallHistory, MemoryExpiringVault

ANN, BEN = UserId("ann"), UserId("ben")
KEY, OTHER = TurnKey(ANN, 1), TurnKey(BEN, 1)


def call(call_id: str, *, second: int = 0, **fields: Any) -> CallRecord:
    """A call of ann's first turn."""
    plain = {"recipe": "r", "recipe_version": "v", "model_layer": ModelLayer.MIND, "runtime": "x", "model": "m", "phase": "p"}
    place = {"user_id": "ann", "turn_id": "turn_000001", "timestamp": f"2026-01-04T14:30:{second:02}Z"}
    figures = {"tokens": CallTokens(prompt=3, input=4, output=5, total=12), "latency_ms": 1.5, "success": True}
    return CallRecord.model_validate({"call_id": call_id, **plain, **place, **figures, **fields})


@dataclass(frozen=True)
class Store:
    """One store of calls, by its two ports."""

    calls: MemoryCallHistory | IndexedCallLog
    counts: CallCounts

    def put(self, *records: CallRecord) -> None:
        for record in records:
            self.calls.append(record)

    def ids(self, begin: str = "2026", end: str = "2027") -> list[str]:
        return [record.call_id for record in self.calls.between(begin, end)]


def _in_memory(root: Path) -> Store:
    history = MemoryCallHistory()
    return Store(history, MemoryCallCounts(history))


def _on_disk(root: Path) -> Store:
    for user in (ANN, BEN):
        (root / "users" / user / "turns" / "turn_000001" / "revisions" / "1").mkdir(parents=True)
    index = DuckCallIndex(DuckDBFile(root / "calls.duckdb", CALL_SCHEMA))
    return Store(IndexedCallLog(CallFiles(root), index, report=pytest.fail), index)


@pytest.fixture(params=[_in_memory, _on_disk])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    make: Callable[[Path], Store] = request.param
    return make(tmp_path)


def _vault_in_memory(root: Path) -> ExpiringVault:
    return MemoryExpiringVault()


@pytest.fixture(params=[_vault_in_memory, VaultFiles])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> ExpiringVault:
    make: Callable[[Path], ExpiringVault] = request.param
    return make(tmp_path)


def test_the_calls_of_a_revision_are_as_written_or_by_time(store: Store) -> None:
    """`recorded` has the order of the lines; other revisions, users and calls without a turn are not among them."""
    store.put(call("b", second=2), call("a", second=1), call("c", revision=1), call("d", user_id="ben"), call("e", turn_id=""))
    assert [record.call_id for record in store.calls.recorded(KEY, 0)] == ["b", "a"]
    assert store.calls.of_turn(KEY, 0) == (call("a", second=1), call("b", second=2))
    assert [record.call_id for record in store.calls.of_turn(KEY, 1)] == ["c"] and store.calls.of_turn(KEY, 2) == ()


def test_the_newest_calls_of_a_recipe_come_first(store: Store) -> None:
    """Of one version, on the layer of the recipe and not the one that answered; calls that are not indexed are left out."""
    store.put(
        call("a", second=1),
        call("b", second=2, recipe_version="w"),
        call("c", second=3, model_layer=ModelLayer.VOICE, recipe_layer=ModelLayer.MIND),
        call("d", second=4, recipe="other"),
        call("e", second=5, model_layer=ModelLayer.VOICE),
        call("f", second=6, user_id="ben"),
    )
    store.calls.index_turns([(KEY, 0)])

    def newest(limit: int = 9, **which: str) -> list[str]:
        return [record.call_id for record in store.calls.newest("r", limit=limit, **which)]

    assert newest() == ["e", "c", "b", "a"] and newest(2) == ["e", "c"] and newest(0) == []
    assert newest(version="w") == ["b"] and newest(layer="MIND") == ["c", "b", "a"] and newest(version="v", layer="VOICE") == ["e"]


def test_calls_of_a_time_include_those_without_a_turn(store: Store) -> None:
    """Oldest first, from the first time to before the second; a turn's calls once it is indexed."""
    store.put(call("b", second=2), call("c", second=3, turn_id=""), call("a", second=1, turn_id="", user_id="ben"))
    assert store.ids() == ["a", "c"]
    store.calls.index_turns([(KEY, 0)])
    assert store.ids() == ["a", "b", "c"]
    assert store.ids("2026-01-04T14:30:02Z", "2026-01-04T14:30:03Z") == ["b"]


def test_totals_take_the_server_s_counts_where_there_are_any(store: Store) -> None:
    """Over all attempts of a call; else the planned tokens. Nothing was used without an answer."""
    store.put(
        call("a", spent=Usage(prompt=100, output=40, cached=60), retries=1, queue_ms=0.5, cost=0.25),
        call("b"),
        call("c", success=False, tokens=CallTokens(prompt=3, input=4)),
    )
    totals = store.calls.totals(KEY, 0)
    assert (totals.calls, totals.failed, totals.retries) == (3, 1, 1)
    assert (totals.prompt_tokens, totals.input_tokens, totals.output_tokens, totals.total_tokens) == (9, 12, 45, 24)
    assert (totals.used_tokens, totals.cached_tokens) == (152, 60)
    assert (totals.latency_ms, totals.queue_ms, totals.cost) == (4.5, 0.5, 0.25)
    assert store.calls.totals(KEY, 1).calls == 0


def test_sums_are_grouped_in_the_order_of_their_names(store: Store) -> None:
    """Of one user or of all, since a day; a turn that is not indexed is not summed."""
    store.put(
        call("a", recipe="s", phase="q"),
        call("b", timestamp="2026-01-05T00:00:00Z", model_layer=ModelLayer.VOICE, turn_id=""),
        call("c", user_id="ben", model="n"),
        call("d", revision=1),
    )
    store.calls.index_turns([(KEY, 0), (OTHER, 0)])

    def sums(by: Any, user: UserId | None = None, since: str = "") -> list[tuple[str, int]]:
        return [(name, totals.calls) for name, totals in store.calls.sums(by, user=user, since=since)]

    assert sums("layer") == [("MIND", 2), ("VOICE", 1)] and sums("recipe") == [("r", 2), ("s", 1)]
    assert sums("day") == [("2026-01-04", 2), ("2026-01-05", 1)] and sums("phase") == [("p", 2), ("q", 1)]
    assert sums("model") == [("m", 2), ("n", 1)] and sums("user") == [("ann", 2), ("ben", 1)]
    assert sums("turn") == [("ann:", 1), ("ann:turn_000001", 1), ("ben:turn_000001", 1)]
    assert sums("user", ANN) == [("ann", 2)] and sums("day", since="2026-01-05") == [("2026-01-05", 1)]


def test_calls_are_counted_by_the_model_that_answered(store: Store) -> None:
    """A failed call was answered by none; the file exists once something was indexed."""
    assert not store.counts.file.exists()
    store.put(call("a"), call("b", user_id="ben"), call("c", model_layer=ModelLayer.VOICE, model="n"), call("d", model="o", success=False))
    store.calls.index_turns([(KEY, 0), (OTHER, 0)])
    assert store.counts.calls_by_model() == {("MIND", "m"): 2, ("VOICE", "n"): 1}
    assert store.counts.file.exists() and store.counts.file.fault() is None


def test_compressions_are_summed_over_all_users(store: Store) -> None:
    """A summary record has the gate `no_fact_changed`; a call whose only gate was its budget is a warning."""
    store.put(call("a"))
    store.calls.index_turns([(KEY, 0)])
    assert store.counts.compressions() == CompressionTotals()
    store.put(
        call("b", gates={"no_fact_changed": True}, compression_savings=30, latency_ms=2.0),
        call("c", gates={"no_fact_changed": False}, success=False, user_id="ben", compression_savings=50, latency_ms=4.0),
        call("d", gates={"within_budget": False}),
        call("e", gates={"within_budget": True}),
    )
    store.calls.index_turns([(KEY, 0), (OTHER, 0)])
    assert store.counts.compressions() == CompressionTotals(2, 1, 80, 50, 6.0, 4.0, 1)


def test_a_vault_is_swept_once_in_a_day(vault: ExpiringVault) -> None:
    """What is older than its retention is deleted, texts and images; the entries to spare are asked for only when a sweep is due."""
    stored = datetime.now(UTC)
    text, image = vault.keep("ann", "pack", "a prompt"), vault.keep_image("ben", b"\x89PNG")
    assert vault.sweep_daily(stored + timedelta(days=89), days=90) == 0
    assert vault.read(text) == "a prompt" and vault.read_image(image) == b"\x89PNG"
    assert vault.sweep_daily(stored + timedelta(days=89, hours=23), days=1, spared=lambda: pytest.fail("no sweep is due")) is None
    assert vault.sweep_daily(stored + timedelta(days=91), days=90) == 2
    for read, ref in ((vault.read, text), (vault.read_image, image)):
        with pytest.raises(DocumentError) as caught:
            read(ref)
        assert caught.value.missing


def test_a_spared_entry_outlives_its_retention(vault: ExpiringVault) -> None:
    """Until it is spared no more."""
    stored = datetime.now(UTC)
    spared = vault.keep("ann", "pack", "x")
    vault.keep("ann", "answer", "x")
    assert vault.sweep_daily(stored + timedelta(days=91), days=90, spared=lambda: {spared, "no reference"}) == 1
    assert vault.read(spared) == "x"
    assert vault.sweep_daily(stored + timedelta(days=92), days=90) == 1
