"""What every store of sessions, of rate limits and of lineage rows must do, asked of the files and of the fakes in memory."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pandora_dagster.compression.summarization_rate import LimiterState
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.lineage import LineageEdge, Relation
from pandora_dagster.contracts.ports.lineage_storage import LineageWriter
from pandora_dagster.contracts.ports.user_storage import Sessions
from pandora_dagster.contracts.user.conversations import SessionRecord
from pandora_dagster.phases.flow.phase_table import phase_effects
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.lineage.lineage_index import LINEAGE_SCHEMA, DuckLineageIndex, LineageIndexWriter
from pandora_dagster.stores.user.session_files import LimiterFiles, SessionFiles
from tests.fakes.record_stores import MemoryLineageWriter, MemoryRateLimitStates
from tests.fakes.user_stores import MemorySessions

ANN, BEN = UserId("ann"), UserId("ben")
S1, S2 = SessionId("s1"), SessionId("s2")


def record(user: str, session: str, first_turn: int) -> SessionRecord:
    return SessionRecord(
        user_id=user,
        session_id=session,
        created_at="2026-01-04T14:30:00Z",
        state="importing",
        content_sha="a" * 64,
        first_turn=first_turn,
        turn_count=2,
    )


@pytest.fixture(params=["memory", "files"])
def is_fake(request: pytest.FixtureRequest) -> bool:
    return request.param == "memory"


@pytest.fixture
def sessions(is_fake: bool, tmp_path: Path) -> Sessions:
    return MemorySessions() if is_fake else SessionFiles(tmp_path)


@pytest.fixture
def limits(is_fake: bool, tmp_path: Path) -> MemoryRateLimitStates | LimiterFiles:
    return MemoryRateLimitStates() if is_fake else LimiterFiles(tmp_path)


Written = tuple[LineageWriter, Callable[[str], tuple[LineageEdge, ...]]]


@pytest.fixture
def lineage(is_fake: bool, tmp_path: Path) -> Written:
    """A writer, and what it has written for a document."""
    if is_fake:
        fake = MemoryLineageWriter()
        return fake, lambda document: fake.rows[document]
    index = DuckLineageIndex(DuckDBFile(tmp_path / "lineage.duckdb", LINEAGE_SCHEMA, 10.0))

    def no_texts() -> None:
        raise AssertionError("rows of a level need no text")

    writer = LineageIndexWriter(index, no_texts, None, phases=phase_effects(), report=pytest.fail)
    return writer, lambda document: index.rows_of("ann", [document])


def test_a_session_is_begun_once(sessions: Sessions) -> None:
    """Whoever begins it later gets the numbers of the first; `save` replaces the record."""
    first = sessions.begin(record(ANN, S1, 1))
    assert sessions.begin(record(ANN, S1, 7)) == first == sessions.find(ANN, S1)
    done = first.model_copy(update={"state": "complete"})
    sessions.save(done)
    assert sessions.find(ANN, S1) == done and sessions.find(BEN, S1) is None and sessions.find(ANN, S2) is None


def test_sessions_are_listed_by_user_and_first_turn(sessions: Sessions) -> None:
    """Of one user, or of all."""
    for one in (record(BEN, S1, 1), record(ANN, S2, 1), record(ANN, S1, 5)):
        sessions.save(one)
    assert [(r.user_id, r.first_turn) for r in sessions.records()] == [("ann", 1), ("ann", 5), ("ben", 1)]
    assert [r.session_id for r in sessions.records(ANN)] == [S2, S1]


def test_a_limit_is_changed_from_what_was_saved(limits: MemoryRateLimitStates | LimiterFiles) -> None:
    """Another session's, another user's starts at nothing."""
    limits.update(ANN, S1, lambda state: replace(state or LimiterState(), session_calls=3))
    seen: list[LimiterState | None] = []
    limits.update(ANN, S1, lambda state: seen.append(state) or replace(state or LimiterState(), calls=(1.5,)))
    for user, session in ((ANN, S2), (BEN, S1)):
        limits.update(user, session, lambda state: seen.append(state) or LimiterState())
    assert seen == [LimiterState(session_calls=3), None, None]
    assert limits.update(ANN, S1, lambda state: state or LimiterState()) == LimiterState(calls=(1.5,), session_calls=3)


def test_rows_of_a_level_take_the_place_of_older_ones(lineage: Written) -> None:
    """Those of another document stay; a turn that nobody cites has no citing turns."""
    writer, rows = lineage

    def edge(child: str, parent: str) -> LineageEdge:
        shas = {"parent_sha": "a" * 64, "child_sha": "b" * 64, "at": "2026-01-04T00:00:00Z"}
        return LineageEdge.model_validate(
            {"user_id": "ann", "parent": f"ann:{parent}", "child": f"ann:{child}", "relation": Relation.CITED, **shas}
        )

    old, new, other = edge("session/s1", "turn_000001/summary"), edge("session/s1", "turn_000002/summary"), edge("digest", "session/s1")
    writer.put_rows("ann:session/s1", [old])
    writer.put_rows("ann:digest", [other])
    writer.put_rows("ann:session/s1", [new])
    assert (rows("ann:session/s1"), rows("ann:digest")) == ((new,), (other,))
    assert writer.citing(TurnKey(ANN, 1)) == ()
