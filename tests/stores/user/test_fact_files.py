"""Ledgers of facts on the disk: whole or not at all, strict, each user's own, gone when erased."""

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.user.user_memory import FactChange, NotableFact
from pandora_dagster.errors import DocumentError, StoreError
from pandora_dagster.stores.user.fact_files import FactFiles
from pandora_dagster.stores.user.session_files import SessionFiles

ANNA, BEN, TRIP = UserId("anna"), UserId("ben"), SessionId("trip")


def fact(number, words="Budget 900."):
    return NotableFact(id=f"f{number}", category="Logistics", fact=words, turn=number, stated_at="2026-01-04T10:00:00Z")


def adding(ledger):
    new = fact(ledger.next_id)
    line = FactChange(change=ledger.changes + 1, at="", turn="turn_000001", call="", kind="add", id=new.id, after=new)
    return ledger.model_copy(update={"facts": (*ledger.facts, new), "next_id": ledger.next_id + 1, "changes": line.change}), (line,)


def add_five(root):
    for _ in range(5):
        FactFiles(root).change_session(ANNA, TRIP, adding)


def test_a_ledger_reads_back_with_its_audit(tmp_path):
    """Per user and session; the audit has a line a change, appended."""
    files = FactFiles(tmp_path)
    files.change_session(ANNA, TRIP, adding)
    ledger = files.change_session(ANNA, TRIP, adding)
    assert FactFiles(tmp_path).session(ANNA, TRIP) == ledger and [f.id for f in ledger.facts] == ["f1", "f2"]
    assert files.session(BEN, TRIP).facts == files.session(ANNA, SessionId("other")).facts == ()
    (audit,) = tmp_path.rglob("session_facts_audit.jsonl")
    assert [json.loads(line)["change"] for line in audit.read_text().splitlines()] == [1, 2]
    assert list(SessionFiles(tmp_path).records(ANNA)) == []


def test_a_change_that_changes_nothing_writes_nothing(tmp_path):
    """A turn in which nothing is stated leaves no file."""
    FactFiles(tmp_path).change_session(ANNA, TRIP, lambda ledger: (ledger, ()))
    assert not list(tmp_path.rglob("session_facts*"))


def test_several_processes_lose_no_fact(tmp_path):
    """Each change is made over the newest ledger."""
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(add_five, [tmp_path] * 3)) == [None] * 3
    ledger = FactFiles(tmp_path).session(ANNA, TRIP)
    assert [f.id for f in ledger.facts] == [f"f{n}" for n in range(1, 16)] and ledger.changes == 15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-20], "expected a ledger of facts"),
        (lambda text: text.replace('"category": "Logistics"', '"category": "Rumour"'), "category"),
        (lambda text: text.replace('"user_id": "anna"', '"user_id": "ben"'), "expected anna"),
        (lambda text: text.replace('"id": "f2"', '"id": "f1"'), "each id once"),
        (lambda text: text.replace('"changes"', '"more": 1, "changes"'), "more"),
    ],
)
def test_a_damaged_ledger_is_refused(tmp_path, change, message):
    """Never read in part, never written over."""
    files = FactFiles(tmp_path)
    add_two = [files.change_session(ANNA, TRIP, adding) for _ in range(2)]
    (path,) = tmp_path.rglob("session_facts.json")
    path.write_text(change(path.read_text()))
    damaged = path.read_text()
    with pytest.raises(DocumentError, match=message):
        files.session(ANNA, TRIP)
    with pytest.raises(DocumentError, match=message):
        files.change_session(ANNA, TRIP, adding)
    assert path.read_text() == damaged and len(add_two) == 2


def test_more_facts_than_allowed_are_not_written(tmp_path):
    """The limit is part of the format."""
    files = FactFiles(tmp_path)
    with pytest.raises(ValueError, match="20"):
        files.change_session(ANNA, TRIP, lambda ledger: (ledger.model_copy(update={"facts": tuple(map(fact, range(1, 22)))}), ()))
    assert files.session(ANNA, TRIP).facts == ()


def test_half_an_audit_line_spoils_no_other(tmp_path):
    """What a crash left of a line stays a line of its own."""
    files = FactFiles(tmp_path)
    files.change_session(ANNA, TRIP, adding)
    (audit,) = tmp_path.rglob("session_facts_audit.jsonl")
    with audit.open("a") as file:
        file.write('{"change": 2, "at"')
    files.change_session(ANNA, TRIP, adding)
    lines = audit.read_text().splitlines()
    assert len(lines) == 3 and json.loads(lines[2])["change"] == 2


def test_without_consent_there_is_no_profile(tmp_path):
    """Nothing is read, nothing is written; consent begins an empty one and asking twice keeps it."""
    files = FactFiles(tmp_path)
    assert files.profile(ANNA) is None and files.change_profile(ANNA, adding) is None and not list(tmp_path.rglob("profile*.json"))
    files.consent(ANNA, at="2026-01-01T00:00:00Z", after_turn=7)
    files.change_profile(ANNA, adding)
    again = files.consent(ANNA, at="2026-02-02T00:00:00Z", after_turn=9)
    assert (again.consented_at, again.after_turn, len(again.facts)) == ("2026-01-01T00:00:00Z", 7, 1)
    assert files.profile(BEN) is None


def test_withdrawing_leaves_nothing(tmp_path):
    """Profile and audit are gone, also where the profile was damaged."""
    files = FactFiles(tmp_path)
    for damage in ("", "{"):
        files.consent(ANNA, at="", after_turn=0)
        files.change_profile(ANNA, adding)
        if damage:
            (tmp_path / "users/anna/profile.json").write_text(damage)
        assert files.withdraw(ANNA) == (0 if damage else 1)
        assert files.profile(ANNA) is None and not [p for p in tmp_path.rglob("profile*") if not p.name.startswith(".")]


def test_erasing_keeps_consent_and_looks_forward(tmp_path):
    """The audit goes with the facts; no id is given again."""
    files = FactFiles(tmp_path)
    assert files.erase_profile(ANNA, after_turn=3) == 0
    files.consent(ANNA, at="2026-01-01T00:00:00Z", after_turn=0)
    files.change_profile(ANNA, adding)
    assert files.erase_profile(ANNA, after_turn=3) == 1
    profile = files.profile(ANNA)
    assert (profile.facts, profile.after_turn, profile.consented_at, profile.next_id) == ((), 3, "2026-01-01T00:00:00Z", 2)
    assert not list(tmp_path.rglob("profile_audit.jsonl"))


def test_erasing_sessions_erases_one_users(tmp_path):
    """All sessions of that user, damaged ledgers too; another user's stay."""
    files = FactFiles(tmp_path)
    for user, session in ((ANNA, TRIP), (ANNA, SessionId("work")), (BEN, TRIP)):
        files.change_session(user, session, adding)
    (tmp_path / "users/anna/sessions/work/session_facts.json").write_text("{")
    assert files.erase_sessions(ANNA) == 1
    assert not list((tmp_path / "users/anna").rglob("session_facts*"))
    assert len(files.session(BEN, TRIP).facts) == 1


def test_a_link_out_of_the_store_is_not_followed(tmp_path):
    """Neither to read nor to write."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "store/users/anna/sessions").mkdir(parents=True)
    (tmp_path / "store/users/anna/sessions/trip").symlink_to(outside)
    files = FactFiles(tmp_path / "store")
    for work in (lambda: files.session(ANNA, TRIP), lambda: files.change_session(ANNA, TRIP, adding)):
        with pytest.raises(StoreError, match="leads to"):
            work()
    assert not list(outside.iterdir())
