"""What every store of levels must do, asked of the files and of the fake in memory."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.ports.user_storage import LevelStore
from pandora_dagster.contracts.user.summary_levels import (
    DigestFields,
    LevelSubject,
    NarrativeLink,
    NarrativePart,
    SessionNarrative,
    TextOrigin,
    TurnLink,
    UserDigest,
)
from pandora_dagster.contracts.user.user_memory import FactLedger
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.user.level_files import LevelFiles
from tests.fakes.level_store import MemoryLevelStore

ANN, BEN, S1, S2 = UserId("ann"), UserId("ben"), SessionId("s1"), SessionId("s2")
SHA = "ab" * 32
AT = "2026-01-04T14:30:00Z"
MADE = TextOrigin(recipe="narrative", recipe_version="3fd9c2", prompt_version="1", runtime="fake", model="none", call_id="c1", at=AT)

Damage = Callable[[LevelSubject, str], None]
"""Puts a text in the place of a subject's level."""


@pytest.fixture(params=["memory", "files"])
def is_fake(request: pytest.FixtureRequest) -> bool:
    return request.param == "memory"


@pytest.fixture
def levels(is_fake: bool, tmp_path: Path) -> LevelStore:
    (tmp_path / "users" / "ann").mkdir(parents=True)
    return MemoryLevelStore() if is_fake else LevelFiles(tmp_path)


@pytest.fixture
def damage(levels: LevelStore, tmp_path: Path) -> Damage:
    def put(subject: LevelSubject, text: str) -> None:
        if isinstance(levels, MemoryLevelStore):
            levels.texts[subject] = text
            return
        folder = tmp_path / "users" / subject.user
        path = folder / "sessions" / subject.session / "narrative.json" if subject.session else folder / "digest.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return put


def narrative(session: str = S1, *turns: int, user: str = ANN, text: str = "Ann bought a lamp.") -> SessionNarrative:
    links = tuple(TurnLink(turn=turn, at=AT, sha=SHA) for turn in turns or (1,))
    part = NarrativePart(links=links, text=text, tokens_before=9, tokens=5, made=MADE)
    return SessionNarrative(user_id=user, session_id=session, parts=(part,))


def digest(*sessions: str, user: str = ANN, goal: str = "A lamp.") -> UserDigest:
    links = tuple(NarrativeLink(session_id=session, sha=SHA, parts=(SHA,), tokens=5, made=MADE) for session in sessions or (S1,))
    return UserDigest(
        user_id=user, fields=DigestFields(progress_toward_goal=goal), facts=FactLedger(user_id=user), narratives=links, tokens=3
    )


def test_narratives_come_back_by_session(levels: LevelStore) -> None:
    """A user's own alone; one that is saved again takes the older one's place."""
    assert levels.narrative(ANN, S1) is None and list(levels.narratives(ANN)) == [] and levels.sessions(ANN) == ()
    for saved in (narrative(S2), narrative(S1, text="Ann looked at lamps."), narrative(S1, 1, 2)):
        levels.save_narrative(saved)
    assert levels.narrative(ANN, S1) == narrative(S1, 1, 2) and levels.sessions(ANN) == (S1, S2)
    assert list(levels.narratives(ANN)) == [narrative(S1, 1, 2), narrative(S2)]
    assert levels.narrative(BEN, S1) is None and list(levels.narratives(BEN)) == [] and levels.sessions(BEN) == ()


def test_a_digest_comes_back_as_it_was_saved_last(levels: LevelStore) -> None:
    assert levels.digest(ANN) is None
    levels.save_digest(digest(goal="A desk."))
    levels.save_digest(digest(S1, S2))
    assert levels.digest(ANN) == digest(S1, S2) and levels.digest(BEN) is None


def test_a_level_that_is_removed_is_gone_alone(levels: LevelStore) -> None:
    """What is not there can be removed too."""
    for saved in (narrative(S1), narrative(S2)):
        levels.save_narrative(saved)
    levels.save_digest(digest())
    levels.remove_narrative(ANN, S1)
    levels.remove_narrative(ANN, S1)
    assert levels.narrative(ANN, S1) is None and levels.sessions(ANN) == (S2,) and levels.digest(ANN) == digest()
    levels.remove_digest(ANN)
    levels.remove_digest(ANN)
    assert levels.digest(ANN) is None and levels.narrative(ANN, S2) == narrative(S2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"user_id": "ann"',
        "{}",
        narrative(S2).model_dump_json(),
        narrative(S1, user=BEN).model_dump_json(),
        narrative(S1, 1, 1).model_dump_json(),
    ],
    ids=["empty", "cut off", "no narrative", "another session's", "another user's", "a turn twice"],
)
def test_a_damaged_narrative_is_reported_where_it_is_read(levels: LevelStore, damage: Damage, text: str) -> None:
    """Only the list of readable sessions passes over it; saved again it is whole."""
    levels.save_narrative(narrative(S2))
    damage(LevelSubject(ANN, S1), text)
    with pytest.raises(DocumentError):
        levels.narrative(ANN, S1)
    with pytest.raises(DocumentError):
        list(levels.narratives(ANN))
    assert S2 in levels.sessions(ANN) and levels.narrative(ANN, S2) == narrative(S2)
    levels.save_narrative(narrative(S1))
    assert levels.narrative(ANN, S1) == narrative(S1)


def test_a_session_whose_narrative_cannot_be_read_is_not_listed(levels: LevelStore, damage: Damage) -> None:
    levels.save_narrative(narrative(S2))
    damage(LevelSubject(ANN, S1), "{")
    assert levels.sessions(ANN) == (S2,)


@pytest.mark.parametrize("text", ["", '{"user_id": "ann"', digest(user=BEN).model_dump_json(), digest(S1, S1).model_dump_json()])
def test_a_damaged_digest_is_reported(levels: LevelStore, damage: Damage, text: str) -> None:
    """Half a file, another user's, or one that names a session twice."""
    damage(LevelSubject(ANN), text)
    with pytest.raises(DocumentError):
        levels.digest(ANN)
    levels.save_digest(digest())
    assert levels.digest(ANN) == digest()


def test_all_levels_of_a_user_are_erased(levels: LevelStore, damage: Damage) -> None:
    """Damaged ones too; those of others stay."""
    levels.save_narrative(narrative(S1))
    damage(LevelSubject(ANN, S2), "{")
    levels.save_digest(digest())
    levels.save_digest(digest(user=BEN))
    assert levels.erase(ANN) == 3 and levels.erase(ANN) == 0
    assert list(levels.narratives(ANN)) == [] and levels.digest(ANN) is None and levels.digest(BEN) == digest(user=BEN)


@pytest.mark.parametrize("subject", [LevelSubject(ANN, S1), LevelSubject(ANN)], ids=["narrative", "digest"])
def test_a_level_is_made_by_one_process_at_a_time(levels: LevelStore, subject: LevelSubject) -> None:
    """Another level is free meanwhile, and so is this one afterwards, also after an error."""
    other = LevelSubject(ANN, S2)
    with levels.lock(subject), levels.lock(other, wait_s=0.05), pytest.raises(StoreError), levels.lock(subject, wait_s=0.05):
        pytest.fail("it was held twice")
    with pytest.raises(ZeroDivisionError), levels.lock(subject):
        raise ZeroDivisionError
    with levels.lock(subject, wait_s=0.05):
        levels.save_narrative(narrative(S1))
