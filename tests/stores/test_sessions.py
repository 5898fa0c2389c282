"""Sessions: one folder per conversation, whatever its id looks like."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.ids import session_id
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.sessions import Sessions, session_folder

PREAMBLE = ({"role": "system", "content": "You help.\u2028Always.\n", "x": [1, None, 1.5]}, {"role": "assistant", "content": None})


@given(st.text(min_size=1))
@settings(max_examples=200)
def test_any_conversation_id_names_a_safe_folder(conversation):
    """The folder name passes the strict pattern, and is the id itself where that does."""
    folder = session_folder(conversation)
    assert session_id(folder) == folder
    assert folder == conversation or len(folder) < 80


def test_ids_that_look_alike_get_folders_of_their_own():
    """Two unsafe ids with the same letters do not meet."""
    assert len({session_folder(i) for i in ("a/b", "a-b", "a b", "a//b", "..", "", "é", "\0")}) == 8


def test_a_session_is_made_once_and_keeps_its_preamble(tmp_path):
    """Value for value; ensuring again changes nothing."""
    sessions = Sessions(tmp_path)
    made = sessions.ensure("anna", "conv/1", created_at="2026-01-04T00:00:00Z", preamble=PREAMBLE, messages_sha="ab", state="importing")
    assert sessions.ensure("anna", "conv/1", created_at="other") == made == sessions.find("anna", "conv/1")
    assert sessions.preamble("anna", "conv/1") == PREAMBLE
    assert sessions.find("anna", "conv/2") is None and sessions.preamble("anna", "conv/2") == ()


def test_turns_are_recorded_once_in_order(tmp_path):
    """Recording a turn twice adds it once; state and hash change; an unknown session is an error."""
    sessions = Sessions(tmp_path)
    sessions.ensure("anna", "s", created_at="2026-01-04T00:00:00Z", state="importing")
    sessions.record("anna", "s", turns=["turn_000002", "turn_000001"])
    done = sessions.record("anna", "s", turns=["turn_000001", "turn_000003"], state="complete", messages_sha="cd")
    assert (done.turns, done.state, done.messages_sha) == (("turn_000002", "turn_000001", "turn_000003"), "complete", "cd")
    assert sessions.find("anna", "s") == done
    with pytest.raises(StoreError, match="there is no session"):
        sessions.record("anna", "t", turns=["turn_000001"])
    with pytest.raises(TypeError, match="expected only"):
        sessions.record("anna", "s", user_id="bob")


def test_sessions_are_listed_oldest_first(tmp_path):
    """By creation; another user's are not among them."""
    sessions = Sessions(tmp_path)
    for user, conversation, created in (("anna", "a", "2026-02"), ("anna", "b/c", "2026-01"), ("bob", "c", "2025")):
        sessions.ensure(user, conversation, created_at=created)
    assert [s.id for s in sessions.list("anna")] == ["b/c", "a"] and sessions.list("nobody") == ()


def test_damage_is_named(tmp_path):
    """A record that is no session, one of another conversation, a changed preamble."""
    sessions = Sessions(tmp_path)
    sessions.ensure("anna", "s", created_at="2026", preamble=PREAMBLE)
    folder = tmp_path / "users/anna/sessions/s"
    (folder / "preamble.jsonl").write_text("{}\n")
    with pytest.raises(DocumentError, match=r"preamble\.jsonl: changed since it was imported"):
        sessions.preamble("anna", "s")
    raw = json.loads((folder / "session.json").read_text())
    for text, says in (
        (json.dumps({**raw, "id": "t"}), "holds session 't': expected 's'"),
        ("{", "session.json: .*expected a session record"),
    ):
        (folder / "session.json").write_text(text)
        with pytest.raises(DocumentError, match=says):
            sessions.find("anna", "s")
