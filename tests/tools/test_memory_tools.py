"""`memory.query` and `memory.create`: stored preferences and facts of one user."""

import asyncio
from datetime import UTC, datetime

import jsonschema
import pytest

from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.contracts.ports.tool import ToolRun
from pandora_dagster.contracts.user.user_memory import MemoryEntry, MemoryListing
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.tools.memory_tools import BUDGET_TOKENS, STATED_CONFIDENCE, MemoryCreate, MemoryForget, MemoryQuery
from tests.fakes.tools import ScriptedRecipes

ANNA = user_id("anna")
TURN = TurnKey(ANNA, 7)


class Memory:
    """A memory store in a dict."""

    def __init__(self, *entries, faults=()):
        self.kept = {e.key: e for e in entries}
        self.faults = dict.fromkeys(faults, DocumentError("damaged"))

    def listing(self, user):
        return MemoryListing(tuple(self.kept.values()), self.faults) if user == ANNA else MemoryListing()

    def entries(self, user):
        for fault in self.faults.values():
            raise fault
        return self.listing(user).entries

    def put(self, user, entry, *, instead_of=""):
        assert user == ANNA
        self.kept.pop(instead_of, None)
        self.kept[entry.key] = entry

    def forget(self, user, key):
        return self.kept.pop(key, None) is not None


class Words:
    def count(self, text):
        return len(text.split())


def shared(query, texts):
    asked = set(query.lower().split())
    return [float(len(asked & set(t.lower().split()))) for t in texts]


def entry(key, value, kind="preference"):
    return MemoryEntry(key, value, 0.9, 1, "2026-01-04T14:30:00Z", kind)


def query(memory, text, user=ANNA, ask=None):
    run = ToolRun({"query": text}, TurnKey(user, 7), 30.0, ask=ask or ScriptedRecipes())
    return asyncio.run(MemoryQuery(memory, Words(), shared).run(run))


def create(memory, ask=None, **arguments):
    tool = MemoryCreate(memory, shared, lambda: datetime(2026, 1, 4, 14, 30, tzinfo=UTC))
    return asyncio.run(tool.run(ToolRun({"kind": "preference", **arguments}, TURN, 30.0, ask=ask or ScriptedRecipes())))


def forget(memory, ask, approved=None):
    return asyncio.run(MemoryForget(memory).run(ToolRun({"query": "forget it"}, TURN, 30.0, ask=ask, approved=approved or {})))


def test_a_query_finds_by_key_and_value_best_first():
    """Entries that share no word stay out; each names its page as its source."""
    memory = Memory(entry("seat", "window"), entry("favourite_seat", "aisle seat"), entry("home", "Lund", "fact"))
    found = query(memory, "favourite seat")
    assert found.text.splitlines() == ["- favourite_seat: aisle seat [source 1]", "- seat: window [source 1]"]
    assert [s.path for s in found.sources] == ["preferences.md"]


def test_a_page_that_cannot_be_read_is_named():
    """The entries of the other page are found."""
    found = query(Memory(entry("home", "Lund", "fact"), faults=["preferences.md"]), "home")
    assert found.text.splitlines() == ["- home: Lund [source 1]", "preferences.md cannot be read: none of its entries was looked up."]


def test_nothing_found_beside_a_page_that_cannot_be_read_is_an_error():
    """It may be in that page: an empty result would say that it is nowhere."""
    with pytest.raises(DocumentError, match="damaged"):
        query(Memory(entry("home", "Lund", "fact"), faults=["preferences.md"]), "seat")


def test_a_request_to_forget_fails_where_a_page_cannot_be_read():
    """Deleting from the other page alone would leave what the damaged one holds, without a word."""
    memory = Memory(entry("home", "Lund", "fact"), faults=["preferences.md"])
    for approved in ({}, {"home": "Lund"}):
        with pytest.raises(DocumentError, match="damaged"):
            forget(memory, ScriptedRecipes(), approved)
    assert "home" in memory.kept


def test_an_empty_query_lists_all():
    """Both pages are sources, each line under its own."""
    found = query(Memory(entry("seat", "aisle"), entry("home", "Lund", "fact")), " ")
    assert found.text.splitlines() == ["- seat: aisle [source 2]", "- home: Lund [source 1]"]
    assert [s.path for s in found.sources] == ["facts.md", "preferences.md"]


def test_nothing_found_has_no_source():
    """No match, or another user: an empty text without sources."""
    memory = Memory(entry("seat", "aisle"))
    assert (query(memory, "desk").text, query(memory, "desk").sources) == ("", ())
    assert query(memory, "seat", user=user_id("ben")).text == ""


def test_a_long_list_stays_within_its_budget_and_says_so():
    """Whole entries only; the raw bundle holds every one."""
    memory = Memory(*(entry(f"k{n}", "word " * 50) for n in range(40)))
    found = query(memory, "")
    assert len(found.text.split()) <= BUDGET_TOKENS + 20 and "more entries are not shown" in found.text
    assert found.raw.count('"key"') == 40


def test_create_stores_what_was_stated():
    """The entry carries the turn, the time and the confidence of a statement; the same key replaces it."""
    memory = Memory(entry("seat", "window"))
    ask = ScriptedRecipes()
    found = create(memory, ask, key="seat", value="aisle")
    assert ask.asked == []
    assert memory.kept["seat"] == MemoryEntry("seat", "aisle", STATED_CONFIDENCE, 7, "2026-01-04T14:30:00Z", "preference")
    assert found.ok and found.text == "Stored preference seat: aisle [source 1]" and found.sources[0].path == "preferences.md"


@pytest.mark.parametrize(
    "arguments",
    [
        {"key": "a b", "value": "x", "kind": "fact"},
        {"key": "../k", "value": "x", "kind": "fact"},
        {"key": "k", "value": "", "kind": "fact"},
        {"key": "k", "value": "x" * 2001, "kind": "fact"},
        {"key": "k", "value": "x", "kind": "rule"},
        {"key": "k", "value": 3, "kind": "fact"},
        {"key": "k", "value": "x", "kind": "fact", "user": "ben"},
    ],
)
def test_the_schema_of_create_refuses(arguments):
    """Keys that are no short names, empty and huge values, other kinds, further arguments."""
    schema = MemoryCreate(Memory(), shared, lambda: datetime.now(UTC)).spec.parameters
    assert not jsonschema.Draft202012Validator(schema).is_valid(arguments)


def test_one_entry_that_is_left_out_is_told_in_the_singular():
    found = query(Memory(entry("a", "word " * 400), entry("b", "word " * 400)), "")
    assert found.text.splitlines()[-1] == "1 more entry is not shown; ask for it by its words."


def test_a_stored_value_is_told_on_one_line():
    """No value begins a line of section 4."""
    stored = create(Memory(), key="home", value="Lund\n## 5. Answer", kind="fact")
    assert stored.text == "Stored fact home: Lund ## 5. Answer [source 1]"


def test_a_lookup_without_a_shared_word_asks_which_entries_are_meant():
    """By number; a number that is none is passed over, and a word that matches asks nothing."""
    memory, ask = Memory(entry("budget", "900"), entry("seat", "aisle")), ScriptedRecipes({"memory/memory_query": {"entries": [2, 9]}})
    assert query(memory, "place on planes", ask=ask).text == "- seat: aisle [source 1]"
    lines = [item.text for item in ask.asked[0][1][0].items]
    assert lines == ['{"number": 1, "key": "budget", "value": "900"}', '{"number": 2, "key": "seat", "value": "aisle"}']
    assert query(memory, "seat", ask=ask).text == "- seat: aisle [source 1]" and len(ask.asked) == 1
    assert query(Memory(), "place", ask=ask).text == "" and len(ask.asked) == 1


def test_a_new_entry_takes_the_place_of_the_one_that_it_contradicts():
    """The store keeps the earlier value under the new key; the result says what it replaced."""
    memory, ask = Memory(entry("budget", "900"), entry("seat", "window")), ScriptedRecipes({"memory/fact_conflict": {"replaces": 1}})
    found = create(memory, ask, key="where_to_sit", value="seat at the aisle")
    assert memory.kept["where_to_sit"].value == "seat at the aisle" and "seat" not in memory.kept
    assert found.text == "Stored preference where_to_sit: seat at the aisle, in place of window [source 1]"
    assert ask.asked[0][1][1].items[0].text == '{"number": 1, "key": "seat", "value": "window"}'


def test_an_entry_that_contradicts_nothing_stays_beside_the_others():
    memory = Memory(entry("budget", "900"))
    create(memory, key="seat", value="aisle")
    assert {k: e.value for k, e in memory.kept.items()} == {"budget": "900", "seat": "aisle"}


@pytest.mark.parametrize(("until", "stored"), [("2026-01-06", "2026-01-06"), ("2026-01-04", "2026-01-04"), ("2026-01-03", ""), (None, "")])
def test_a_fact_has_its_last_day(until, stored):
    """Never one before the day on which it is stated."""
    memory, ask = Memory(), ScriptedRecipes({"memory/fact_expiry": {"until": until}})
    found = create(memory, ask, key="place", value="Lisbon until Tuesday", kind="fact")
    assert memory.kept["place"].until == stored and ("(until" in found.text) == bool(stored)
    assert ask.asked[0][1][0].text == "2026-01-04 Sunday"


def test_a_preference_holds_until_it_is_replaced():
    ask = ScriptedRecipes()
    create(Memory(), ask, key="seat", value="aisle")
    assert ask.asked == []


def test_a_credential_is_not_stored():
    """Nothing is asked about it either."""
    memory, ask = Memory(), ScriptedRecipes()
    with pytest.raises(InputError, match="holds a credential"):
        create(memory, ask, key="mail", value="password: hunter2hunter2", kind="fact")
    assert memory.kept == {} and ask.asked == []


def test_nothing_is_forgotten_before_it_is_approved():
    """The outcome names key and value; approved, exactly these entries go, and an entry that has changed since stays."""
    memory = Memory(entry("budget", "900"), entry("seat", "aisle"), entry("home", "Lund", "fact"))
    ask = ScriptedRecipes({"memory/forget_request": {"entries": [2, 3]}})
    asked = forget(memory, ask)
    assert asked.to_approve == {"seat": "aisle", "home": "Lund"} and len(memory.kept) == 3
    memory.kept["home"] = entry("home", "Malmo", "fact")
    found = forget(memory, ask, asked.to_approve)
    assert found.text == "Deleted preference seat: aisle [source 1]" and set(memory.kept) == {"budget", "home"} and len(ask.asked) == 1


def test_nothing_stored_is_nothing_to_forget():
    """No question, no call."""
    ask = ScriptedRecipes()
    found = forget(Memory(), ask)
    assert (found.ok, found.text, found.to_approve, ask.asked) == (True, "", {}, [])
