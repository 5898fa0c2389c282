"""Memory pages: strict to read, safe to write, and users's words around the records stay theirs."""

import string
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.ports.user_storage import MemoryStore
from pandora_dagster.contracts.user.user_memory import EarlierValue, MemoryEntry
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.user.memory_files import MemoryFiles, page_entries, page_with_entries

BUDGET = MemoryEntry("budget", "$500-800", 0.9, 808, "2026-01-04T14:30:00Z")
MAC = MemoryEntry("owns_macbook_pro", True, 0.85, 750, "2026-01-04", "fact")
TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT | st.just("a\n```\n## 0. x\n"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KEYS = st.text(string.ascii_lowercase + "_: #'\"-", min_size=1, max_size=12) | st.sampled_from(["yes", "null", "1", "1.5", "2026-01-04"])


@pytest.fixture
def memory(tmp_path) -> MemoryStore:
    return MemoryFiles(tmp_path)


def test_entries_read_back(memory, tmp_path):
    """Preferences and facts each on their page; putting a key again replaces it in its place."""
    for entry in (BUDGET, MAC, MemoryEntry("brands", ("Lenovo", "ASUS"), 0.7, None, "")):
        memory.put("anna", entry)
    newer = MemoryEntry("budget", "$900", 0.95, 900, "2026-02-01T00:00:00Z")
    memory.put("anna", newer)
    assert [e.key for e in memory.entries("anna")] == ["budget", "brands", "owns_macbook_pro"]
    assert memory.entries("anna")[1].value == ["Lenovo", "ASUS"]
    assert replace(memory.entries("anna")[0], earlier=()) == newer and memory.entries("anna")[2] == MAC and memory.entries("bob") == ()
    assert (tmp_path / "users/anna/preferences.md").read_text().startswith("# Preferences\n\n")


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_whatever_json_can_hold_reads_back(values):
    """Text that looks like numbers, dates, fences or headings stays text."""
    records = tuple(MemoryEntry(key, value, 0.5, 3, "2026-01-04T14:30:00Z") for key, value in values.items())
    page = page_with_entries("", records, kind="preference", where="p")
    assert page_entries(page, kind="preference", where="p") == records
    assert page_with_entries(page, records, kind="preference", where="p") == page


@given(TEXT, TEXT)
@settings(max_examples=50, deadline=None)
def test_words_around_the_records_stay_byte_for_byte(before, after):
    """What a user wrote before and after the block, CRLF included."""
    before, after = before.replace("`", "") + "\r\n", "\r\n" + after.replace("`", "")
    page = f"{before}```yaml\r\nbudget: {{value: 1, confidence: 0.5}}\r\n```{after}"
    changed = page_with_entries(page, [BUDGET], kind="preference", where="p")
    assert changed.startswith(before) and changed.endswith(after)
    assert page_entries(changed, kind="preference", where="p") == (BUDGET,)


def test_a_page_without_its_block_gets_one_at_its_end(memory, tmp_path):
    """A user may delete the block; nothing else is touched."""
    page = tmp_path / "users/anna/preferences.md"
    page.parent.mkdir(parents=True)
    page.write_text("my own words")
    memory.put("anna", BUDGET)
    assert page.read_text().startswith("my own words\n\n```yaml\n") and memory.entries("anna") == (BUDGET,)


BROKEN = {
    "two equal keys": (
        "a: {value: 1, confidence: 1}\na: {value: 2, confidence: 1}",
        r"p\.md:5: a: duplicate key: expected once",
    ),
    "not YAML": ("a: [1\nb: 2", r"p\.md:[5-6]: .*expected YAML"),
    "no mapping": ("- a", r"p\.md:4: list: expected a mapping"),
    "no confidence": ("a: {value: 1}", r"p\.md: a: confidence: .*expected value and confidence"),
    "unknown field": ("a: {value: 1, confidence: 1, x: 2}", r"p\.md: a: x: "),
    "confidence over 1": ("a: {value: 1, confidence: 7}", r"p\.md: a: confidence: "),
    "a record that is a word": ("a: b", r"p\.md: a: "),
    "a key that is a number": ("1: {value: 1, confidence: 1}", r"p\.md:4: the key '1': expected a string as key"),
    "two blocks": ("a: {value: 1, confidence: 1}\n```\n\n```yaml\nb: 1", r"p\.md:7: a second YAML block"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_damaged_page_is_named_with_its_line(case):
    """DocumentError; nothing is guessed."""
    block, says = BROKEN[case]
    with pytest.raises(DocumentError, match=says):
        page_entries(f"# P\n\n```yaml\n{block}\n```\n", kind="preference", where="p.md")


def test_a_damaged_page_is_never_overwritten(memory, tmp_path):
    """Putting an entry fails and leaves the user's page as it is, for them to mend."""
    page = tmp_path / "users/anna/preferences.md"
    page.parent.mkdir(parents=True)
    for text in ("```yaml\na: [\n```\n", "```yaml\na: {value: 1, confidence: 1}\n"):
        page.write_text(text)
        with pytest.raises(DocumentError):
            memory.put("anna", BUDGET)
        assert page.read_text() == text


def test_a_damaged_page_costs_only_itself(memory, tmp_path):
    """The other page is listed; who must not miss an entry gets the error."""
    memory.put("anna", MAC)
    (tmp_path / "users/anna/preferences.md").write_text("```yaml\na: [\n```\n")
    listing = memory.listing("anna")
    assert listing.entries == (MAC,) and list(listing.faults) == ["preferences.md"]
    assert "correct preferences.md by hand" in listing.faults["preferences.md"].hint
    with pytest.raises(DocumentError):
        memory.entries("anna")


@pytest.mark.parametrize("entry", [MemoryEntry("", 1, 0.5, 1, ""), MemoryEntry("a", object(), 0.5, 1, ""), MemoryEntry("a", 1, 2, 1, "")])
def test_an_entry_that_would_not_read_back_is_refused(memory, entry):
    """Before anything is written."""
    memory.put("anna", BUDGET)
    with pytest.raises(DocumentError):
        memory.put("anna", entry)
    assert memory.entries("anna") == (BUDGET,)


def test_a_contradiction_keeps_both_and_the_newer_is_current(memory):
    """By their dates, whichever was said to the store last; the same value again is no contradiction."""
    newer = MemoryEntry("budget", "$900", 0.95, 900, "2026-02-01T00:00:00Z")
    old = EarlierValue("$500-800", 0.9, 808, "2026-01-04T14:30:00Z")
    for first, second in ((BUDGET, newer), (newer, BUDGET)):
        memory.forget("anna", "budget")
        memory.put("anna", first)
        memory.put("anna", second)
        assert memory.entries("anna") == (replace(newer, earlier=(old,)),)
    memory.put("anna", replace(newer, last_updated="2026-03-01T00:00:00Z"))
    (entry,) = memory.entries("anna")
    assert (entry.last_updated, entry.earlier) == ("2026-03-01T00:00:00Z", (old,))


def test_a_key_is_forgotten_with_all_it_ever_said(memory, tmp_path):
    """On both pages; another key and another user keep theirs."""
    for entry in (BUDGET, replace(BUDGET, value="$1", last_updated="2026-05-01T00:00:00Z"), replace(BUDGET, kind="fact"), MAC):
        memory.put("anna", entry)
    memory.put("bob", BUDGET)
    assert memory.forget("anna", "budget") and not memory.forget("anna", "budget")
    assert memory.entries("anna") == (MAC,) and memory.entries("bob") == (BUDGET,)
    assert "500" not in (tmp_path / "users/anna/preferences.md").read_text()


def test_the_last_day_of_a_value_reads_back(memory, tmp_path):
    """A newer value brings its own; what is no date is refused with its key."""
    memory.put("anna", replace(BUDGET, until="2026-03-06"))
    assert memory.entries("anna")[0].until == "2026-03-06"
    memory.put("anna", replace(BUDGET, value="$900", last_updated="2026-02-01T00:00:00Z"))
    assert memory.entries("anna")[0].until == ""
    page = tmp_path / "users/anna/preferences.md"
    page.write_text(page.read_text().replace("  earlier:", "  until: soon\n  earlier:"))
    with pytest.raises(DocumentError, match="budget: until"):
        memory.entries("anna")


def test_an_entry_gives_way_to_one_of_another_key(memory):
    """Its values, and those of the new key, become earlier ones, newest first; an unknown key changes nothing."""
    for value, day in (("window", "01"), ("middle", "02")):
        memory.put("anna", MemoryEntry("seat", value, 0.9, 1, f"2026-01-{day}T00:00:00Z"))
    memory.put("anna", MemoryEntry("place", "aisle", 0.9, 3, "2026-01-03T00:00:00Z"), instead_of="seat")
    (entry,) = memory.entries("anna")
    assert (entry.key, entry.value, [(e.value, e.key) for e in entry.earlier]) == (
        "place",
        "aisle",
        [("middle", "seat"), ("window", "seat")],
    )
    memory.put("anna", replace(BUDGET, last_updated="2026-01-04T14:30:00Z"), instead_of="nothing")
    assert [e.key for e in memory.entries("anna")] == ["place", "budget"]
