"""`doc.search`: a search in the user's own earlier turns. Writes nothing."""

import json
from dataclasses import dataclass

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import InputDocument, Source
from pandora_dagster.contracts.phase_outputs import SearchWords
from pandora_dagster.contracts.ports.measurement import TextScorer, TokenMeasure
from pandora_dagster.contracts.ports.tool import ToolOutcome, ToolRun, ToolSpec
from pandora_dagster.contracts.ports.turn_storage import TurnIndex, TurnStore
from pandora_dagster.documents.citations import escape_source_marks
from pandora_dagster.documents.turn_row import ROW_FILES
from pandora_dagster.phases.steps.tool_recipes import DOC_SEARCH_QUERY
from pandora_dagster.retrieval.turn_excerpts import Excerpt, excerpt

BUDGET_TOKENS = 700
"""Tokens that one search may add to section 4."""
_MAX_EXCERPT_TOKENS = BUDGET_TOKENS // 2
"""Tokens of one turn: a long turn leaves half of the budget to others."""
MAX_TURNS = 3
"""Turns that one search returns."""
MAX_OTHER_QUERIES = 3
"""Searches in other words after one that found nothing."""
DOC_SEARCH = ToolSpec(
    "doc.search",
    "Search the user's earlier conversations and documents by words. Returns the best pieces with their sources.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "minLength": 1, "maxLength": 2000}},
        "required": ["query"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True)
class DocSearch:
    """Finds earlier turns by words and returns their best pieces, each with its source.

    Where no turn has the words, a recipe names others, which are tried in their order.
    """

    turns: TurnStore
    index: TurnIndex
    counter: TokenMeasure
    scores: TextScorer
    spec: ToolSpec = DOC_SEARCH

    async def run(self, run: ToolRun) -> ToolOutcome:
        found = self._search(run, str(run.arguments["query"]))
        if found.sources or run.turn.number == 1:
            return found
        answer = await run.ask(DOC_SEARCH_QUERY, (InputDocument("searched", str(run.arguments["query"])),), SearchWords)
        others = (self._search(run, query) for query in answer.queries[:MAX_OTHER_QUERIES])
        return next((outcome for outcome in others if outcome.sources), found)

    def _search(self, run: ToolRun, query: str) -> ToolOutcome:
        user = run.user
        parts: list[str] = []
        sources: list[Source] = []
        raw_results: list[dict[str, object]] = []
        remaining_tokens = BUDGET_TOKENS
        for candidate in self.index.candidates(user, query, limit=MAX_TURNS, before=run.turn.number):
            key = TurnKey(user, candidate.row.number)
            turn_excerpt = self._load_excerpt(key, query, remaining_tokens)
            if not turn_excerpt.text:
                continue
            remaining_tokens -= turn_excerpt.tokens
            sources.append(Source("", f"turns/{key.turn_id}/context.md", candidate.row.summary, key.turn_id))
            parts.append(
                f"[source {len(sources)}] Turn {key.number} ({candidate.row.created_at[:10]}):\n{escape_source_marks(turn_excerpt.text)}"
            )
            raw_results.append(
                {
                    "turn_id": key.turn_id,
                    "created_at": candidate.row.created_at,
                    "score": round(candidate.score, 4),
                    "text": turn_excerpt.text,
                    "left_out": turn_excerpt.left_out,
                }
            )
        return ToolOutcome(True, "\n\n".join(parts), json.dumps(raw_results, ensure_ascii=False, indent=1), tuple(sources))

    def _load_excerpt(self, key: TurnKey, query: str, remaining_tokens: int) -> Excerpt:
        turn = self.turns.load(key, only=ROW_FILES)
        return excerpt(turn, query, limit=min(remaining_tokens, _MAX_EXCERPT_TOKENS), counter=self.counter, scores=self.scores)
