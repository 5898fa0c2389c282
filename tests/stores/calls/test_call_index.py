"""Call records as a table."""

from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.model_calls import CallRecord, CallTokens
from pandora_dagster.contracts.ports.record_storage import CallTotals, SumBy
from pandora_dagster.errors import StoreError
from pandora_dagster.stores.calls.call_index import CALL_SCHEMA, DuckCallIndex
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile

_KEY = TurnKey(UserId("ann"), 1)


def _record(call_id: str, **fields: object) -> CallRecord:
    plain = {
        "call_id": call_id,
        "timestamp": f"2026-01-04T14:30:{int(call_id):02d}Z",
        "recipe": "pipeline/planner_chat",
        "recipe_version": "abc",
        "model_layer": ModelLayer.MIND,
        "runtime": "extractive",
        "user_id": "ann",
        "turn_id": "turn_000001",
        "phase": "task_plan",
        "tokens": CallTokens(prompt=10, input=20, output=5, total=35, budget=100),
        "latency_ms": 1.5,
        "success": True,
        "error": "it's",
    }
    return CallRecord.model_validate(plain | fields)


def _lines(*records: CallRecord) -> str:
    return "".join(record.model_dump_json() + "\n" for record in records)


@pytest.fixture
def index(tmp_path: Path) -> DuckCallIndex:
    return DuckCallIndex(DuckDBFile(tmp_path / "calls.duckdb", CALL_SCHEMA, 10.0))


def test_records_come_back_oldest_first(index: DuckCallIndex, tmp_path: Path) -> None:
    """What the lines say is what the table gives."""
    path = tmp_path / "calls.jsonl"
    path.write_text(_lines(_record("2"), _record("1", success=False)))
    assert index.index_files([path]) == 2
    assert index.records(_KEY) == (_record("1", success=False), _record("2"))


def test_reading_goes_on_where_it_ended(index: DuckCallIndex, tmp_path: Path) -> None:
    """Only new whole lines are read; a half-written one waits for its end; nothing counts twice."""
    path, half = tmp_path / "calls.jsonl", _lines(_record("3"))
    path.write_text(_lines(_record("1")))
    assert (index.index_files([path]), index.index_files([path])) == (1, 0)
    with path.open("a") as file:
        file.write(_lines(_record("2")) + half[:40])
    assert index.index_files([path]) == 1
    with path.open("a") as file:
        file.write(half[40:])
    assert (index.index_files([path]), index.totals().calls) == (1, 3)


def test_a_file_that_was_made_anew_is_read_again_without_doubles(index: DuckCallIndex, tmp_path: Path) -> None:
    """A call counts once by its id, wherever it stands."""
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text(_lines(_record("1"), _record("2")))
    other.write_text(_lines(_record("2"), _record("2")))
    assert index.index_files([path, other]) == 2
    path.write_text(_lines(_record("4")))
    assert (index.index_files([path]), index.totals().calls) == (1, 3)


def test_totals_of_a_turn_and_its_revisions(index: DuckCallIndex, tmp_path: Path) -> None:
    """Sums are made per turn, per revision, and over all."""
    path = tmp_path / "calls.jsonl"
    path.write_text(
        _lines(_record("1"), _record("2", revision=1, success=False, retries=2), _record("3", turn_id="turn_000002", recipe="x/y"))
    )
    index.index_files([path, tmp_path / "not_there.jsonl"])
    assert index.totals(_KEY) == CallTotals(2, 1, 20, 40, 10, 70, 2, 3.0, 70)
    assert index.totals(_KEY, revision=0).calls == 1
    assert index.totals().failed == 1


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("layer", {"MIND": 2, "VOICE": 1}),
        ("recipe", {"pipeline/planner_chat": 2, "x/y": 1}),
        ("day", {"2026-01-04": 2, "2026-01-05": 1}),
        ("user", {"ann": 2, "bea": 1}),
        ("turn", {"ann:turn_000001": 2, "bea:turn_000001": 1}),
    ],
)
def test_sums_by_a_property(by: SumBy, expected: dict[str, int], index: DuckCallIndex, tmp_path: Path) -> None:
    """Calls, tokens of all attempts, waiting and cost, by layer, recipe, day, user and turn; failed calls are in."""
    taken = {"spent": {"prompt": 700, "output": 50, "cached": 600}, "queue_ms": 20.0, "cost": 0.25}
    other = {"timestamp": "2026-01-05T09:00:00Z", "user_id": "bea", "model_layer": "VOICE", "recipe": "x/y"}
    path = tmp_path / "calls.jsonl"
    path.write_text(_lines(_record("1", **taken), _record("2", success=False, **taken), _record("3", **other)))
    index.index_files([path])
    found = dict(index.sums(by))
    assert {what: sums.calls for what, sums in found.items()} == expected
    first = next(iter(found.values()))
    assert (first.failed, first.used_tokens, first.queue_ms, first.cost) == (1, 1_500, 40.0, 0.5)
    assert list(found.values())[1].used_tokens == 35  # as planned, where nobody counted
    assert {what: s.calls for what, s in index.sums("user", since="2026-01-05")} == {"bea": 1}
    assert {what: s.calls for what, s in index.sums("layer", user="ann")} == {"MIND": 2}


def test_an_empty_index_has_totals(index: DuckCallIndex) -> None:
    """Nothing was called, nothing was spent."""
    assert index.totals(_KEY) == CallTotals(0, 0, 0, 0, 0, 0, 0, 0.0)


def test_a_broken_line_is_named(index: DuckCallIndex, tmp_path: Path) -> None:
    """A line that is no record is informed of with its file, and nothing of the batch is stored."""
    path = tmp_path / "calls.jsonl"
    path.write_text(_lines(_record("1")) + '{"call_id": 5}\n')
    with pytest.raises(StoreError, match=r"calls.jsonl: call record: "):
        index.index_files([path])
    assert index.totals().calls == 0


def test_what_was_counted_over_all_attempts_is_summed_and_what_nobody_answered_costs_nothing(index: DuckCallIndex, tmp_path: Path) -> None:
    """Output and cached tokens are those of every attempt, as the tokens are; a call that reached no server took none."""
    path = tmp_path / "calls.jsonl"
    thrice = _record("1", retries=2, spent={"prompt": 300, "output": 60, "cached": 30})
    nobody = _record("2", success=False, tokens=CallTokens(prompt=500, input=8, total=508, budget=600))
    path.write_text(_lines(thrice, nobody))
    index.index_files([path])
    totals = index.totals()
    assert (totals.used_tokens, totals.output_tokens, totals.cached_tokens) == (360, 60, 30)
