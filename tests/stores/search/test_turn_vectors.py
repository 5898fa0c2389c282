"""Vectors of what turns say: made, kept, compared, and never in the way."""

from pathlib import Path

import pytest

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.turns import IndexedMessage, SearchFilters, TurnRow
from pandora_dagster.errors import DamagedIndexError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
from pandora_dagster.stores.search.turn_vectors import MAX_TEXT_CHARACTERS, VECTOR_SCHEMA, TurnVectors
from tests.fakes.embedding_model import FakeEmbedder

_FILLER = tuple(f"note {word} about nothing else" for word in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"))


def _row(number: int, *texts: str, user: str = "ann", session: str = "s1") -> TurnRow:
    created = f"2026-01-{number:02d}T10:00:00Z"
    messages = tuple(IndexedMessage(id=f"D{number}:{i}", role="user", text=t, created_at=created) for i, t in enumerate(texts, 1))
    return TurnRow(
        user_id=user,
        turn_id=f"turn_{number:06d}",
        number=number,
        session_id=session,
        state=TurnState.SAVED,
        created_at=created,
        last_activity=created,
        messages=messages,
    )


class _Rig:
    def __init__(self, folder: Path) -> None:
        self.embeds = FakeEmbedder()
        self.notices: list[str] = []
        self.now = 0.0
        self.folder = folder
        self.index, self.vectors = self.opened(self.embeds)

    def opened(self, embeds: FakeEmbedder) -> tuple[DuckTurnIndex, TurnVectors]:
        vectors = TurnVectors(
            DuckDBFile(self.folder / "turn_vectors.duckdb", VECTOR_SCHEMA), embeds, report=self.notices.append, timer=lambda: self.now
        )
        return DuckTurnIndex(DuckDBFile(self.folder / "turn_index.duckdb", TURN_SCHEMA), vectors=vectors), vectors

    def put(self, *rows: TurnRow) -> None:
        self.index.put(rows)
        self.vectors.put(rows)

    def ids(self, query: str, *, user: str = "ann", **filters: str) -> list[str]:
        return [m.message_id for m in self.index.messages(user, query, limit=20, filters=SearchFilters(**filters))]


@pytest.fixture
def rig(tmp_path: Path) -> _Rig:
    return _Rig(tmp_path)


def test_a_message_is_found_that_shares_no_word(rig: _Rig) -> None:
    """By its vector alone; without vectors nothing is found."""
    rig.put(_row(1, *_FILLER, "my physician called"))
    assert rig.ids("doctor")[0] == "D1:8"
    assert DuckTurnIndex(rig.index.file).messages("ann", "doctor", limit=5) == ()
    assert not rig.notices


def test_turns_are_found_by_meaning_too(rig: _Rig) -> None:
    """What a turn is given of earlier turns asks the same."""
    rig.put(_row(1, *_FILLER), _row(2, "my physician called", session="s2"))
    assert [c.row.number for c in rig.index.candidates("ann", "doctor", limit=1)] == [2]
    assert not rig.index.candidates("ann", "doctor", limit=5, before=1)


def test_filters_hold_for_what_is_alike(rig: _Rig) -> None:
    """A message of another session does not come in by its vector."""
    rig.put(_row(1, *_FILLER), _row(2, "my physician called", session="s2"))
    assert "D2:1" in rig.ids("doctor") and "D2:1" not in rig.ids("doctor", session="s1")


def test_one_user_never_meets_anothers_vectors(rig: _Rig) -> None:
    """Neither texts nor likeness; a user without vectors costs no call of the model."""
    rig.put(_row(1, *_FILLER, "my physician called"), _row(1, *_FILLER, user="ben"))
    assert set(rig.vectors.similarities("ben", "doctor")) == {(1 << 20) + place for place in range(1, 8)}
    assert max(rig.vectors.similarities("ben", "doctor").values()) < 0.2 < max(rig.vectors.similarities("ann", "doctor").values())
    before = len(rig.embeds.asked)
    assert rig.vectors.similarities("eve", "doctor") == {} and len(rig.embeds.asked) == before


def test_a_message_without_a_vector_is_found_by_its_words(rig: _Rig) -> None:
    """Turns that were never embedded stand beside those that were."""
    rig.put(_row(1, *_FILLER, "my physician called"))
    rig.index.put([_row(2, "the desk is oak", session="s2")])
    assert rig.ids("the oak desk")[0] == "D2:1"


def test_a_failing_model_leaves_the_words_and_is_reported_once(rig: _Rig) -> None:
    """The order is that of a search without vectors; after the failure the model is left alone for a minute."""
    rig.put(_row(1, *_FILLER, "the desk is oak"))
    rig.embeds.fails = True
    alone = DuckTurnIndex(rig.index.file).messages("ann", "oak desk", limit=20)
    asked = len(rig.embeds.asked)
    assert rig.index.messages("ann", "oak desk", limit=20) == alone
    assert rig.index.messages("ann", "oak desk", limit=20) == alone
    assert len(rig.embeds.asked) == asked + 1 and len(rig.notices) == 1 and "search without vectors" in rig.notices[0]
    rig.embeds.fails, rig.now = False, 61.0
    assert rig.vectors.similarities("ann", "oak desk")


def test_turns_that_come_while_the_model_is_away_are_embedded_at_the_rebuild(rig: _Rig) -> None:
    """Nothing is lost but the signal, and a rebuild brings it."""
    rig.embeds.fails = True
    rows = [_row(1, *_FILLER, "my physician called")]
    rig.put(*rows)
    rig.embeds.fails = False
    assert rig.vectors.similarities("ann", "doctor") == {}
    rig.now = 61.0
    assert rig.vectors.rebuild(rows) == 8 and rig.ids("doctor")[0] == "D1:8"


def test_a_turn_put_again_has_the_vectors_of_its_new_messages_only(rig: _Rig) -> None:
    """What it no longer says is gone; what it still says is not embedded again."""
    rig.put(_row(1, "one thing", "my physician called"))
    before = len(rig.embeds.asked)
    rig.put(_row(1, "one thing"))
    assert set(rig.vectors.similarities("ann", "doctor")) == {(1 << 20) + 1}
    assert rig.embeds.asked[before:] == ["doctor"]


def test_vectors_of_another_model_are_not_compared_until_the_rebuild(rig: _Rig) -> None:
    """A sentence says what to do; the rebuild embeds everything again, a second one nothing."""
    rows = [_row(1, *_FILLER, "my physician called")]
    rig.put(*rows)
    other = FakeEmbedder("fake 2")
    _, vectors = rig.opened(other)
    assert vectors.similarities("ann", "doctor") == {} and not other.asked
    assert "vectors of fake 1, expected fake 2" in rig.notices[0] and "pandora index rebuild" in rig.notices[0]
    assert vectors.rebuild(rows) == 8 and len(other.asked) == 8
    assert vectors.rebuild(rows) == 8 and len(other.asked) == 8
    assert len(vectors.similarities("ann", "doctor")) == 8


def test_a_rebuild_drops_turns_that_are_gone_and_takes_a_damaged_file_away(rig: _Rig) -> None:
    """The documents are the truth."""
    rig.put(_row(1, "my physician called"), _row(2, "another thing"))
    assert rig.vectors.rebuild([_row(2, "another thing")]) == 1
    assert set(rig.vectors.similarities("ann", "doctor")) == {(2 << 20) + 1}
    (rig.folder / "turn_vectors.duckdb").write_bytes(b"no database")
    assert rig.vectors.similarities("ann", "doctor") == {} and "damaged" in rig.notices[-1]
    assert rig.vectors.rebuild([_row(2, "another thing")]) == 1 and rig.vectors.similarities("ann", "doctor")


def test_a_query_is_compared_with_the_names_in_it_and_without(rig: _Rig) -> None:
    """A name alone does not lead to all that its bearer said: what is asked weighs the more."""
    message = IndexedMessage(id="D1:1", role="user", name="Rita", text="Rita is here", created_at="2026-01-01T10:00:00Z")
    row = _row(1, *_FILLER, "my physician called")
    rig.put(row.model_copy(update={"messages": (message, *row.messages)}))
    rig.embeds.asked.clear()
    found = rig.ids("Rita doctor")
    assert rig.embeds.asked == ["Rita doctor", "doctor"] and "D1:8" in found
    with_name, both = rig.vectors.similarities("ann", "Rita doctor"), rig.vectors.similarities("ann", "Rita doctor", "doctor")
    assert both[(1 << 20) + 9] > with_name[(1 << 20) + 9] and both[(1 << 20) + 1] < with_name[(1 << 20) + 1]
    assert rig.vectors.similarities("ann", "doctor", " ", "doctor") == rig.vectors.similarities("ann", "doctor")


def test_credentials_are_never_given_to_the_model(rig: _Rig) -> None:
    """Neither from messages nor from queries."""
    secret = "sk-proj-" + "a1" * 20
    rig.put(_row(1, f"my key is {secret}, keep it"))
    rig.vectors.similarities("ann", f"what was {secret}")
    assert len(rig.embeds.asked) == 2 and not any(secret in text for text in rig.embeds.asked)


@pytest.mark.parametrize("vectors", [[], [[]], [[0.0, 0.0]], [[float("nan"), 1.0]], [[1.0], [1.0]]])
def test_vectors_that_are_none_are_refused(rig: _Rig, vectors: list[list[float]], monkeypatch: pytest.MonkeyPatch) -> None:
    """None, empty, zero, not a number, too many: told, and the search goes by words."""
    monkeypatch.setattr(rig.embeds, "embed", lambda texts, timeout_s: vectors)
    rig.put(_row(1, "the desk is oak"))
    assert rig.notices and rig.ids("oak") == ["D1:1"]


@pytest.mark.parametrize("filler", ["The desk is oak. " * 300, "```\n" + "x = 1\n" * 900 + "```\n\n", "x" * 5_000 + "\n\n"])
def test_a_long_message_is_embedded_in_whole_parts(rig: _Rig, filler: str) -> None:
    """Its end is found, each text keeps the model's limit, and the parts are compared with the message."""
    row = _row(1, *_FILLER, f"{filler}{'My physician called. ' * 90}")
    rig.put(row)
    assert rig.ids("doctor")[0] == "D1:8" and max(map(len, rig.embeds.asked)) <= MAX_TEXT_CHARACTERS
    assert rig.vectors.verify([row]) == () and len(rig.vectors.similarities("ann", "doctor")) == 8
    asked = len(rig.embeds.asked)
    rig.vectors.put([row])
    assert len(rig.embeds.asked) == asked


@pytest.mark.parametrize("query", ["", "   ", "'; DROP TABLE vectors; --", "😀", "x" * 100_000, "\ud800"])
def test_odd_queries_do_no_harm(rig: _Rig, query: str) -> None:
    """Empty, SQL, an emoji, very long, half a surrogate."""
    rig.put(_row(1, *_FILLER, "the desk is oak"))
    rig.ids(query)
    assert len(rig.vectors.similarities("ann", "desk")) == 8 and not rig.notices


def test_vectors_are_compared_with_what_is_reported(rig: _Rig) -> None:
    """One that is missing, one of another text, one of a turn that is gone: a sentence each; none where they agree."""
    rows = [_row(1, "my physician called"), _row(2, "the boat is blue", "and fast"), _row(3, "nothing else")]
    assert rig.vectors.verify([]) == ()
    rig.put(*rows)
    assert rig.vectors.verify(rows) == ()
    assert rig.vectors.verify([rows[0], _row(2, "the boat is red", "and fast"), _row(4, "new")]) == (
        "ann:turn_000002: 2 vectors of messages, 1 of them current: expected 2",
        "ann:turn_000004: 0 vectors of messages, 0 of them current: expected 1",
        "ann:turn_000003: vectors of messages, but no readable turn: expected none",
    )
    rig.embeds.name = "another"
    with pytest.raises(DamagedIndexError, match="vectors of fake 1, expected another"):
        rig.vectors.verify(rows)
