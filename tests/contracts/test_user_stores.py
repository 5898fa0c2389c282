"""What every store of a user's memory must do, asked of the files and of the fakes in memory."""

import pytest

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.user.sources import Research, Visit
from pandora_dagster.contracts.user.user_memory import FactChange, MemoryEntry, NotableFact
from pandora_dagster.errors import DocumentError
from pandora_dagster.language.terms import TermReader
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.user.fact_files import FactFiles
from pandora_dagster.stores.user.memory_files import MemoryFiles
from pandora_dagster.stores.user.note_files import NoteFiles
from pandora_dagster.stores.user.note_index import NOTE_SCHEMA, DuckNoteIndex
from pandora_dagster.stores.user.session_files import ConversationSummaryFiles
from pandora_dagster.stores.user.source_files import RESEARCH_SCHEMA, DuckResearchIndex, SourceFiles
from tests.fakes.user_stores import (
    MemoryConversationSummaries,
    MemoryEntryStore,
    MemoryFactStore,
    MemoryNoteStore,
    MemorySourceStore,
)
from tests.stores.user.test_session_files_summaries import made as summary
from tests.stores.user.test_source_files import RESEARCH, VISIT

ANN, BEN, CAROL, S1 = UserId("ann"), UserId("ben"), UserId("carol"), SessionId("s1")
FACT = NotableFact(id="f1", category="Logistics", fact="My budget is $900.", turn=1, stated_at="2026-01-04T14:30:00Z")
NOTES = {"gear/lamps.md": "---\ntags: [light]\n---\n# Walnut lamps\n\nThe walnut lamp costs 80 euros.\n", "broken.md": "---\ntags: [\n"}


@pytest.fixture(params=["memory", "files"])
def is_fake(request):
    return request.param == "memory"


@pytest.fixture
def memory(is_fake, tmp_path):
    return MemoryEntryStore() if is_fake else MemoryFiles(tmp_path)


@pytest.fixture
def facts(is_fake, tmp_path):
    return MemoryFactStore() if is_fake else FactFiles(tmp_path)


@pytest.fixture
def summaries(is_fake, tmp_path):
    return MemoryConversationSummaries() if is_fake else ConversationSummaryFiles(tmp_path)


@pytest.fixture
def sources(is_fake, tmp_path):
    return (
        MemorySourceStore()
        if is_fake
        else SourceFiles(tmp_path, DuckResearchIndex(DuckDBFile(tmp_path / "research.duckdb", RESEARCH_SCHEMA)))
    )


@pytest.fixture
def notes(is_fake, tmp_path):
    if is_fake:
        return MemoryNoteStore({(ANN, name): text for name, text in NOTES.items()})
    for name, text in NOTES.items():
        path = tmp_path / "users" / "ann" / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return NoteFiles(tmp_path, {}, DuckNoteIndex(DuckDBFile(tmp_path / "notes.duckdb", NOTE_SCHEMA), TermReader()))


def entry(key, value, *, at="2026-01-04T14:30:00Z", kind="preference"):
    return MemoryEntry(key, value, 0.9, None, at, kind)


def test_the_newest_value_of_a_key_is_current(memory):
    """Others stay among its earlier ones; preferences come before facts; users do not see each other."""
    memory.put(ANN, entry("town", "Rome", kind="fact"))
    memory.put(ANN, entry("seat", "aisle"))
    memory.put(ANN, entry("seat", ["window"], at="2026-02-01T00:00:00Z"))
    memory.put(ANN, entry("seat", "middle", at="2025-01-01T00:00:00Z"))
    seat, town = memory.entries(ANN)
    assert (seat.value, {str(e.value) for e in seat.earlier}, town.value) == (["window"], {"aisle", "middle"}, "Rome")
    assert memory.entries(BEN) == () and not memory.forget(BEN, "seat")
    assert memory.forget(ANN, "seat") and memory.entries(ANN) == (town,) and not memory.forget(ANN, "seat")
    for bad in (entry("x", object()), entry("x", "y", kind="guess")):
        with pytest.raises(DocumentError):
            memory.put(ANN, bad)


def add(ledger):
    change = FactChange(change=1, at="2026-01-04T14:30:00Z", turn="turn_000001", call="c", kind="add", id="f1", after=FACT)
    return ledger.model_copy(update={"facts": (FACT,), "next_id": 2, "changes": 1}), [change]


def test_a_session_s_facts_change_as_one(facts):
    """An empty ledger where nothing was stated; an error leaves it as it was."""
    assert facts.session(ANN, S1).facts == ()
    assert facts.change_session(ANN, S1, add).facts == (FACT,) == facts.session(ANN, S1).facts
    with pytest.raises(ValueError):
        facts.change_session(ANN, S1, lambda ledger: (ledger.model_copy(update={"next_id": 0}), []))
    assert facts.session(ANN, S1).next_id == 2 and facts.session(BEN, S1).facts == ()
    assert facts.erase_sessions(ANN) == 1 and facts.session(ANN, S1).facts == () and facts.erase_sessions(ANN) == 0


def test_a_profile_exists_with_consent_alone(facts):
    """Without it no change is made; erased, it is empty and consent stays; withdrawn, it is gone."""
    assert facts.profile(ANN) is None and facts.change_profile(ANN, add) is None and facts.withdraw(ANN) == 0
    begun = facts.consent(ANN, at="2026-01-04T14:30:00Z", after_turn=3)
    assert facts.consent(ANN, at="2027-01-01T00:00:00Z", after_turn=9) == begun == facts.profile(ANN)
    assert facts.change_profile(ANN, add).facts == (FACT,)
    assert facts.erase_profile(ANN, after_turn=7) == 1 and facts.erase_profile(BEN, after_turn=7) == 0
    emptied = facts.profile(ANN)
    assert (emptied.facts, emptied.after_turn, emptied.next_id, emptied.consented_at) == ((), 7, 2, begun.consented_at)
    assert facts.withdraw(ANN) == 0 and facts.profile(ANN) is None


def test_a_summary_that_reaches_further_stays(summaries):
    """An older one that comes later changes nothing."""

    long, short = summary(1, 2, 3), summary(1, 2)
    assert summaries.find(ANN, S1) is None and summaries.save(long) == long
    assert summaries.save(short) == long == summaries.find(ANN, S1) and summaries.find(BEN, S1) is None


def test_research_and_visits_are_found_by_their_ids(sources):
    """Rows newest first; a record of the same topic and key takes the older one's place; what is not stored is missing."""
    older, newer = (Research.model_validate({**RESEARCH, "created_at": at}) for at in ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))
    visit = Visit.model_validate(VISIT)
    sources.put(ANN, older)
    sources.put(ANN, newer)
    sources.put(ANN, visit)
    (row,), (seen,) = sources.research_rows(ANN), sources.visit_rows(ANN)
    assert (row.topic, row.created_at, seen.visit_id, seen.url) == (newer.topic, newer.created_at, visit.visit_id, visit.url)
    other = newer.model_copy(update={"cache_key": "another question", "created_at": "2026-01-03T00:00:00Z"})
    sources.put(BEN, newer)
    sources.put(BEN, other)
    assert sources.research(BEN, row.topic) == other and sources.research(BEN, row.topic, cache_key=newer.cache_key) == newer
    assert sources.research(ANN, row.topic) == newer and sources.visit(ANN, visit.visit_id) == visit
    assert sources.path(ANN, newer.logical_id) and sources.path(ANN, visit.logical_id) and sources.path(ANN, "notes/x.md") is None
    assert sources.research_rows(CAROL) == sources.visit_rows(BEN) == ()
    for missing in (
        lambda: sources.research(CAROL, row.topic),
        lambda: sources.research(BEN, row.topic, cache_key="none"),
        lambda: sources.visit(ANN, "visit_none"),
    ):
        with pytest.raises(DocumentError) as error:
            missing()
        assert error.value.missing


def test_notes_are_listed_matched_and_loaded(notes):
    """A broken one is reported and takes nothing from the others; only the user's own are there."""
    listing = notes.listing(ANN, "walnut lamp")
    assert [(h.name, h.title, h.tags) for h in listing.headers] == [("gear/lamps.md", "Walnut lamps", ("light",))]
    assert len(listing.notices) == 1 and "broken.md" in listing.notices[0]
    assert [m.name for m in listing.matches] == ["gear/lamps.md"] and "80 euros" in listing.matches[0].passage
    assert notes.listing(ANN, "zeppelin").matches == () and notes.listing(BEN, "walnut lamp").headers == ()
    assert "80 euros" in notes.load(ANN, "gear/lamps.md").text and notes.path(ANN, "notes/gear/lamps.md")
    assert notes.path(ANN, "notes/none.md") is None
    with pytest.raises(DocumentError) as missing:
        notes.load(ANN, "none.md")
    assert missing.value.missing
