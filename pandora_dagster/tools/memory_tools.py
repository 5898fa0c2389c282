"""`memory.query`, `memory.create` and `memory.forget`: the user's stored preferences and facts (specification 004, section 3.4)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pandora_dagster.contracts.model_calls import InputDocument, Item, Source
from pandora_dagster.contracts.phase_outputs import ChosenEntries, EntryExpiry, ReplacedEntry
from pandora_dagster.contracts.ports.measurement import Clock, TextScorer, TokenMeasure
from pandora_dagster.contracts.ports.tool import STORE_PERMISSIONS, ToolOutcome, ToolRun, ToolSpec
from pandora_dagster.contracts.ports.user_storage import MemoryStore
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.citations import escape_source_marks
from pandora_dagster.documents.markdown import cell
from pandora_dagster.documents.redaction.credentials import holds_secret
from pandora_dagster.errors import InputError
from pandora_dagster.phases.core.phase_context import json_line
from pandora_dagster.phases.steps import tool_recipes

STATED_CONFIDENCE = 0.9
"""Confidence of an explicit statement of the user."""
BUDGET_TOKENS = 700
"""Tokens that one query may add to section 4."""
_CITATION_TOKENS = 6
"""Tokens of ` [source 1]` and the line end after an entry, at most."""
MAX_COMPARED_ENTRIES = 12
"""Stored entries that a new one is compared with: those whose words are nearest to its own."""
_FILE_OF_KIND = {"preference": "preferences.md", "fact": "facts.md"}
MEMORY_QUERY = ToolSpec(
    "memory.query",
    "Look up the user's stored preferences and facts by words; an empty query lists all.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "maxLength": 2000}},
        "required": ["query"],
        "additionalProperties": False,
    },
)
MEMORY_CREATE = ToolSpec(
    "memory.create",
    "Store one preference or fact that the user stated, under a short key; an older value of the key stays beside it.",
    {
        "type": "object",
        "properties": {
            "key": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$"},
            "value": {"type": "string", "minLength": 1, "maxLength": 2000},
            "kind": {"enum": ["preference", "fact"]},
        },
        "required": ["key", "value", "kind"],
        "additionalProperties": False,
    },
    permissions=STORE_PERMISSIONS,
)
MEMORY_FORGET = ToolSpec(
    "memory.forget",
    "Delete stored preferences or facts that the user asks to forget. The user is asked before anything is deleted.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "minLength": 1, "maxLength": 2000}},
        "required": ["query"],
        "additionalProperties": False,
    },
    permissions=STORE_PERMISSIONS,
    asks_first=True,
)


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """Finds stored preferences and facts: whole entries, best first, with the number of those left out.

    By words; where none has a word of the query, a recipe chooses.
    """

    memory: MemoryStore
    counter: TokenMeasure
    scores: TextScorer
    spec: ToolSpec = MEMORY_QUERY

    async def run(self, run: ToolRun) -> ToolOutcome:
        """Raises DocumentError where no entry is found and a page cannot be read."""
        listing = self.memory.listing(run.user)
        entries = self._find_entries(listing.entries, str(run.arguments["query"])) or await _choose_entries(
            run, listing.entries, tool_recipes.MEMORY_QUERY
        )
        for fault in listing.faults.values():
            if not entries:
                raise fault
        shown = self._fit_budget(entries)
        files = sorted({_FILE_OF_KIND[e.kind] for e in shown})
        lines = [f"{_render_entry(e)} [source {files.index(_FILE_OF_KIND[e.kind]) + 1}]" for e in shown]
        if hidden := len(entries) - len(shown):
            what = (
                "1 more entry is not shown; ask for it by its"
                if hidden == 1
                else f"{hidden} more entries are not shown; ask for them by their"
            )
            lines.append(f"{what} words.")
        lines += [f"{page} cannot be read: none of its entries was looked up." for page in listing.faults]
        raw = json.dumps([{"key": e.key, "value": e.value, "kind": e.kind} for e in entries], ensure_ascii=False)
        return ToolOutcome(True, "\n".join(lines), raw, tuple(Source("", f, "Stored memory") for f in files))

    def _find_entries(self, entries: Sequence[MemoryEntry], query: str) -> list[MemoryEntry]:
        """Entries that share words with the query, best first; all of them for an empty one."""
        if not query.strip():
            return list(entries)
        scores = self.scores(query, [_words(e) for e in entries])
        by_score = sorted(zip(scores, entries, strict=True), key=lambda pair: -pair[0])
        return [entry for score, entry in by_score if score > 0]

    def _fit_budget(self, entries: list[MemoryEntry]) -> list[MemoryEntry]:
        """The entries that fit the budget, best first; an entry that does not fit is left out whole."""
        shown: list[MemoryEntry] = []
        remaining_tokens = BUDGET_TOKENS
        for entry in entries:
            cost = self.counter.count(_render_entry(entry)) + _CITATION_TOKENS
            if cost <= remaining_tokens:
                remaining_tokens -= cost
                shown.append(entry)
        return shown


async def _choose_entries(run: ToolRun, stored: Sequence[MemoryEntry], recipe: str) -> list[MemoryEntry]:
    """The entries that `recipe` chooses by number; none where nothing is stored."""
    if not stored:
        return []
    answer = await run.ask(recipe, (_entries_document(stored),), ChosenEntries)
    return [stored[number - 1] for number in dict.fromkeys(answer.entries) if number <= len(stored)]


def _entries_document(entries: Sequence[MemoryEntry]) -> InputDocument:
    """`stored_entries`: one JSON line an entry, with its number; where the budget is short, the last ones are left out."""
    lines = (json_line({"number": n, "key": e.key, "value": e.value}) for n, e in enumerate(entries, 1))
    return InputDocument("stored_entries", items=tuple(Item(line, -float(n), f"entry {n}") for n, line in enumerate(lines, 1)))


def _render_entry(entry: MemoryEntry) -> str:
    return f"- {_statement(entry)}" + (f" (until {entry.until})" if entry.until else "")


def _statement(entry: MemoryEntry) -> str:
    """Key and value on one line, without marks of sources."""
    return f"{entry.key}: {escape_source_marks(cell(entry.value))}"


@dataclass(frozen=True, slots=True)
class MemoryCreate:
    """Stores one preference or fact that the user stated, with its turn. A new value of a key becomes current; older values are kept.

    A recipe says which entry of another key the new one contradicts, which gives way to it, and until when a fact holds.
    """

    memory: MemoryStore
    scores: TextScorer
    clock: Clock
    spec: ToolSpec = MEMORY_CREATE

    async def run(self, run: ToolRun) -> ToolOutcome:
        """Raises InputError for a value that holds a credential."""
        arguments = run.arguments
        if holds_secret(str(arguments["value"])):
            raise InputError(f"{arguments['key']}: the value holds a credential: expected a preference or a fact")
        stated = MemoryEntry(
            key=str(arguments["key"]),
            value=str(arguments["value"]),
            confidence=STATED_CONFIDENCE,
            source_turn=run.turn.number,
            last_updated=self.clock().strftime("%Y-%m-%dT%H:%M:%SZ"),
            kind=str(arguments["kind"]),
        )
        replaced = await self._replaced_entry(run, stated)
        entry = replace(stated, kind=replaced.kind if replaced else stated.kind, until=await self._last_day(run, stated))
        self.memory.put(run.user, entry, instead_of=replaced.key if replaced else "")
        file = _FILE_OF_KIND[entry.kind]
        text = f"Stored {entry.kind} {_statement(entry)}" + (f" (until {entry.until})" if entry.until else "")
        text += f", in place of {escape_source_marks(cell(replaced.value))}" if replaced else ""
        return ToolOutcome(True, f"{text} [source 1]", json.dumps(dict(arguments)), (Source("", file, "Stored memory"),))

    async def _replaced_entry(self, run: ToolRun, stated: MemoryEntry) -> MemoryEntry | None:
        """The stored entry of another key that cannot hold beside `stated`; the same key needs no judgement."""
        stored = self.memory.listing(run.user).entries
        if not stored or any((entry.key, entry.kind) == (stated.key, stated.kind) for entry in stored):
            return None
        scores = self.scores(_words(stated), [_words(entry) for entry in stored])
        order = sorted(range(len(stored)), key=lambda i: (-scores[i], i))
        compared = [stored[i] for i in order[:MAX_COMPARED_ENTRIES]]
        new_entry = InputDocument("new_entry", json_line({"key": stated.key, "value": stated.value}))
        answer = await run.ask(tool_recipes.FACT_CONFLICT, (new_entry, _entries_document(compared)), ReplacedEntry)
        return compared[answer.replaces - 1] if answer.replaces and answer.replaces <= len(compared) else None

    async def _last_day(self, run: ToolRun, stated: MemoryEntry) -> str:
        """The last day on which a fact holds, not before today; "" where it has no end. A preference holds until it is replaced."""
        if stated.kind != "fact":
            return ""
        today = self.clock().date()
        documents = (InputDocument("today", f"{today:%Y-%m-%d %A}"), InputDocument("new_entry", json_line({"value": stated.value})))
        until = (await run.ask(tool_recipes.FACT_EXPIRY, documents, EntryExpiry)).until
        return until.isoformat() if until and until >= today else ""


def _words(entry: MemoryEntry) -> str:
    return f"{entry.key.replace('_', ' ')} {entry.value}"


@dataclass(frozen=True, slots=True)
class MemoryForget:
    """Deletes the entries that the user asks to forget: a recipe chooses them, and the user approves them by key and value.

    Raises DocumentError where a page cannot be read: what it holds would stay without a word.
    """

    memory: MemoryStore
    spec: ToolSpec = MEMORY_FORGET

    async def run(self, run: ToolRun) -> ToolOutcome:
        if not run.approved:
            chosen = await _choose_entries(run, self.memory.entries(run.user), tool_recipes.FORGET_REQUEST)
            return ToolOutcome(True, "", json.dumps([entry.key for entry in chosen]), to_approve={e.key: e.value for e in chosen})
        deleted = [entry for entry in self.memory.entries(run.user) if run.approved.get(entry.key) == entry.value]
        for entry in deleted:
            self.memory.forget(run.user, entry.key)
        files = sorted({_FILE_OF_KIND[entry.kind] for entry in deleted})
        lines = [f"Deleted {entry.kind} {_statement(entry)} [source {files.index(_FILE_OF_KIND[entry.kind]) + 1}]" for entry in deleted]
        sources = tuple(Source("", file, "Stored memory") for file in files)
        return ToolOutcome(True, "\n".join(lines), json.dumps([entry.key for entry in deleted]), sources)
