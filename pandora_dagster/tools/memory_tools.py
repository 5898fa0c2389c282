"""`memory.query` and `memory.create`: the user's stored preferences and facts (specification 004, section 3.4)."""

import json
from dataclasses import dataclass

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import Source
from pandora_dagster.contracts.ports.measurement import Clock, TextScorer, TokenMeasure
from pandora_dagster.contracts.ports.tool import STORE_PERMISSIONS, ToolOutcome, ToolRun, ToolSpec
from pandora_dagster.contracts.ports.user_storage import MemoryStore
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.documents.citations import escape_source_marks
from pandora_dagster.documents.markdown import cell

STATED_CONFIDENCE = 0.9
"""Confidence of an explicit statement of the user."""
BUDGET_TOKENS = 700
"""Tokens that one query may add to section 4."""
_CITATION_TOKENS = 6
"""Tokens of ` [source 1]` and the line end after an entry, at most."""
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


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """Finds stored preferences and facts by words: whole entries, best first, with the number of those left out."""

    memory: MemoryStore
    counter: TokenMeasure
    scores: TextScorer
    spec: ToolSpec = MEMORY_QUERY

    async def run(self, run: ToolRun) -> ToolOutcome:
        entries = self._find_entries(run.user, str(run.arguments["query"]))
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
        raw = json.dumps([{"key": e.key, "value": e.value, "kind": e.kind} for e in entries], ensure_ascii=False)
        return ToolOutcome(True, "\n".join(lines), raw, tuple(Source("", f, "Stored memory") for f in files))

    def _find_entries(self, user: UserId, query: str) -> list[MemoryEntry]:
        """Entries that share words with the query, best first; all of them for an empty one."""
        entries = self.memory.entries(user)
        if not query.strip():
            return list(entries)
        scores = self.scores(query, [f"{e.key.replace('_', ' ')} {e.value}" for e in entries])
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


def _render_entry(entry: MemoryEntry) -> str:
    return f"- {_statement(entry)}"


def _statement(entry: MemoryEntry) -> str:
    """Key and value on one line, without marks of sources."""
    return f"{entry.key}: {escape_source_marks(cell(entry.value))}"


@dataclass(frozen=True, slots=True)
class MemoryCreate:
    """Stores one preference or fact that the user stated. A new value of a key becomes current; older values are kept."""

    memory: MemoryStore
    clock: Clock
    spec: ToolSpec = MEMORY_CREATE

    async def run(self, run: ToolRun) -> ToolOutcome:
        arguments = run.arguments
        entry = MemoryEntry(
            key=str(arguments["key"]),
            value=str(arguments["value"]),
            confidence=STATED_CONFIDENCE,
            source_turn=run.turn.number,
            last_updated=self.clock().strftime("%Y-%m-%dT%H:%M:%SZ"),
            kind=str(arguments["kind"]),
        )
        self.memory.put(run.user, entry)
        file = _FILE_OF_KIND[entry.kind]
        return ToolOutcome(
            True,
            f"Stored {entry.kind} {_statement(entry)} [source 1]",
            json.dumps(dict(arguments)),
            (Source("", file, "Stored memory"),),
        )
