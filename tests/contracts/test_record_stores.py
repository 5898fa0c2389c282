"""What every store of records must do: call log, vault and interventions, asked of the files and of the fakes in memory."""

import secrets
from datetime import UTC, datetime

import pytest

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.stores.calls.call_index import CALL_SCHEMA, DuckCallIndex
from pandora_dagster.stores.calls.call_log import CallFiles, IndexedCallLog
from pandora_dagster.stores.calls.vault_files import VaultFiles
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.records.intervention_files import InterventionFiles
from tests.fakes.record_stores import MemoryCallLog, MemoryInterventions, MemoryVault
from tests.stores.calls.test_call_log import call as record

SECRET = "sk-proj-abcdefghijklmnop1234567890"
KEY = TurnKey(UserId("ann"), 1)


def now():
    return datetime(2026, 1, 4, 14, 30, tzinfo=UTC)


@pytest.fixture(params=["memory", "files"])
def is_fake(request):
    return request.param == "memory"


@pytest.fixture
def calls(is_fake, tmp_path):
    if is_fake:
        return MemoryCallLog()
    (tmp_path / "users" / "ann" / "turns" / "turn_000001").mkdir(parents=True)
    return IndexedCallLog(CallFiles(tmp_path), DuckCallIndex(DuckDBFile(tmp_path / "calls.duckdb", CALL_SCHEMA)), report=pytest.fail)


@pytest.fixture
def vault(is_fake, tmp_path):
    return MemoryVault() if is_fake else VaultFiles(tmp_path)


@pytest.fixture
def interventions(is_fake, tmp_path):
    return MemoryInterventions(now) if is_fake else InterventionFiles(tmp_path, clock=now, random_hex=secrets.token_hex)


def call(**fields):
    """A call of ann's first turn, outside of any turn with an empty `turn_id`."""
    return record(fields.pop("call_id"), user_id="ann").model_copy(update=fields)


def test_a_turn_s_calls_are_summed_by_revision_and_phase(calls):
    """Those of other turns and revisions are not counted; records keep their order and lose their credentials."""
    calls.append(call(call_id="a", phase="reflection", error=f"key {SECRET}"))
    calls.append(call(call_id="b", phase="response"))
    calls.append(call(call_id="c", turn_id="", phase="response"))
    stored = calls.of_turn(KEY, 0)
    assert [r.call_id for r in stored] == ["a", "b"] and SECRET not in stored[0].error
    usage = calls.usage(KEY, 0, phase="response")
    assert (usage.tokens, usage.other_phase_tokens) == (sum(r.used_tokens for r in stored), stored[0].used_tokens)
    assert usage.calls == 2
    assert calls.usage(KEY, 1, phase="response").tokens == 0 and calls.index_turns([(KEY, 0)])


def test_a_call_that_began_is_unfinished_until_its_record_is_appended(calls):
    """A process that is killed in between leaves it; that of another user is not shown."""
    began = call(call_id="a/../b", phase="response")
    calls.begin(began)
    assert calls.unfinished() == calls.unfinished(UserId("ann")) == (began,) and calls.unfinished(UserId("ben")) == ()
    assert calls.of_turn(KEY, 0) == ()
    calls.append(began)
    assert calls.unfinished() == () and [r.call_id for r in calls.of_turn(KEY, 0)] == ["a/../b"]


def test_a_text_is_read_by_its_reference(vault):
    """One text has one reference; credentials are not stored; another reference is an error."""
    ref = vault.keep("ann", "pack", f"a prompt with {SECRET}")
    assert ref == vault.keep("ann", "pack", f"a prompt with {SECRET}") and ref.startswith("ann/pack/")
    assert "a prompt with" in vault.read(ref) and SECRET not in vault.read(ref)
    assert vault.keep("ann", "answer", "x") != vault.keep("ann", "pack", "x")
    with pytest.raises(DocumentError) as missing:
        vault.read(f"ann/pack/{'0' * 64}")
    assert missing.value.missing


def test_an_intervention_is_opened_shown_and_resolved_once(interventions):
    """Listed by state and user, oldest first; messages and resolutions lose their credentials."""
    first = interventions.open(InterventionType.CONFIG_ERROR, f"key {SECRET}", user_id="ann")
    other = interventions.open(InterventionType.CORRUPT_DOCUMENT, "broken", user_id="ben")
    assert interventions.show(first.id) == first and SECRET not in first.message and first.state == "open"
    assert {i.id for i in interventions.list()} == {first.id, other.id}
    assert interventions.list(user="ben") == (other,) and interventions.list(state="resolved") == ()
    closed = interventions.resolve(first.id, f"put {SECRET} right", how="by_hand")
    assert (closed.state, closed.how) == ("resolved", "by_hand") and SECRET not in closed.resolution and closed.resolved_at
    assert interventions.list(state="open") == (other,) and interventions.show(first.id) == closed
    with pytest.raises(InputError, match="expected an open one"):
        interventions.resolve(first.id, "again", how="by_hand")
    with pytest.raises(InputError):
        interventions.show("int_20260101_000000_ffff")


def test_a_turn_that_went_on_may_still_be_resolved(interventions):
    """What a user decides is added to that note."""
    opened = interventions.open(InterventionType.CONFIG_ERROR, "stopped")
    interventions.resolve(opened.id, "the turn went on", how="went_on")
    assert interventions.resolve(opened.id, "mended", how="noted").resolution == "the turn went on; mended"
