"""Earlier turns as a source: RETRIEVAL sees their summaries, SYNTHESIS those that it chose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.model_calls import Item, Source
from pandora_dagster.contracts.phase_outputs import GatheredContext, PriorTurn, RetrievalPlan
from pandora_dagster.contracts.ports.context_source import (
    ContextSource,
    OmittedItem,
    SourceHeaders,
    SourcePassage,
    SourceQuery,
    SourceSection,
    SourceTraits,
)
from pandora_dagster.contracts.turns import Turn, TurnRow
from pandora_dagster.documents.markdown import table
from pandora_dagster.documents.meta import meta_block
from pandora_dagster.documents.turn_row import ROW_FILES
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.phases.core.phase_context import PhaseContext
from pandora_dagster.phases.gather import retrieval_scope, session_history
from pandora_dagster.phases.gather.prior_turns import context_path, item_priority, prior_turn_text, protected_turns, with_turn_header
from pandora_dagster.phases.gather.source_text import UNLINKED, one_line
from pandora_dagster.retrieval.freshness import age_hours
from pandora_dagster.retrieval.turn_excerpts import PER_TURN_LIMIT

_RELEVANCE_RANKS = {"high": 3, "medium": 2, "low": 1}
_CONFIDENCES = {"high": 0.9, "medium": 0.7, "low": 0.4}
"""Relevance of a turn -> the confidence with which it counts in the quality of section 2."""
_PRIORITIES = {"high": 300.0, "medium": 200.0, "low": 100.0}
"""Relevance of a turn -> the priority of its item."""


@dataclass(frozen=True, slots=True)
class RankedTurn:
    """An earlier turn that RETRIEVAL chose, with the priority of its item."""

    turn: Turn
    priority: float


@dataclass(frozen=True, slots=True)
class PriorTurnSource(ContextSource[RankedTurn]):
    """Source over the user's earlier turns, for one run of a phase. `rows`: the session's turns, oldest first."""

    ctx: PhaseContext
    rows: tuple[TurnRow, ...]
    days: tuple[str, ...]
    """The days that the query names."""
    traits: ClassVar[SourceTraits] = SourceTraits(
        name="turn",
        plan_field="relevant_turns",
        answer_field="prior_turns",
        document="prior_turns",
        priority=300.0,
        is_supplementary=False,
        in_plan_order=True,
    )

    @classmethod
    def of(cls, ctx: PhaseContext) -> "PriorTurnSource":
        """The source for the phase that `ctx` runs."""
        return cls(ctx, session_history.session_turns(ctx), retrieval_scope.named_days(ctx))

    def headers(self, query: SourceQuery) -> SourceHeaders:
        """Summaries of the turns that the index finds and of the session's newest turns; an unfinished turn has none.

        A turn that cannot be read is not offered and becomes a notice.
        """
        candidates, facts = retrieval_scope.candidate_turns(self.ctx, f"{query.resolved} {' '.join(query.entities)}")
        best_score = max((c.score for c in candidates), default=0.0) or 1.0
        scores = {c.row.number: c.score / best_score for c in candidates}
        protected = protected_turns(self.ctx, self.rows)
        rows = {c.row.number: c.row for c in candidates} | {row.number: row for row in self.rows if row.number in protected}
        faults = {number: fault for number in rows if (fault := self._fault(number))}
        document = session_history.summaries_document(
            (row for row in rows.values() if row.summary and row.number not in faults),
            session=self.ctx.turn.manifest.session_id,
            scores=scores,
            protected=protected,
            days=self.days,
        )
        return SourceHeaders(document, facts=facts, notices=tuple(faults.values()))

    def choices(self, plan: RetrievalPlan) -> tuple[tuple[str, str, str], ...]:
        chosen = [(n, plan.turn_relevance.get(str(n))) for n in plan.relevant_turns]
        return tuple((f"turn {n}", judged.relevance if judged else "", judged.reason if judged else "") for n, judged in chosen)

    def load(self, query: SourceQuery, plan: RetrievalPlan) -> tuple[tuple[RankedTurn, ...], tuple[str, ...]]:
        """The chosen turns; none of them is left out here."""
        turns = [self._load_turn(TurnKey(self.ctx.turn.key.user, n)) for n in dict.fromkeys(plan.relevant_turns)]
        protected = protected_turns(self.ctx, self.rows)
        return tuple(
            RankedTurn(t, _turn_priority(plan, t, rank, is_protected=t.key.number in protected)) for rank, t in enumerate(turns)
        ), ()

    def cite(self, record: RankedTurn) -> Source:
        turn_id, summary = record.turn.key.turn_id, record.turn.manifest.summary
        title = str(summary["summary"]) if summary else f"turn of {record.turn.manifest.created_at[:10]}"
        return Source("", context_path(turn_id), title, turn_id)

    def age(self, record: RankedTurn, now: datetime) -> float | None:
        return age_hours(record.turn.manifest.created_at, now)

    async def read(self, query: SourceQuery, record: RankedTurn, label: str, rank: int) -> SourcePassage:
        turn = record.turn
        number, path = turn.key.number, context_path(turn.key.turn_id)
        text, omitted = await prior_turn_text(self.ctx, turn, path, limit=PER_TURN_LIMIT)
        item = Item(with_turn_header(number, turn.manifest.created_at, label, text), record.priority, f"turn {number}")
        return SourcePassage((item,), tuple(f"turn {number}: {name}" for name in omitted))

    def render(self, gathered: GatheredContext, records: Sequence[RankedTurn], cited: Sequence[Source], now: datetime) -> SourceSection:
        """Turns of the session's window count as loaded too: their sources are among `cited`."""
        turns, labels = gathered.prior_turns, {s.turn_id: s.label for s in cited if s.turn_id}
        gathered_ids = {_turn_id(t.turn) for t in turns}
        return SourceSection(
            _turn_table(turns, labels, self.days),
            used_labels=frozenset(s.label for s in cited if s.turn_id in gathered_ids),
            unlinked=tuple(f"turn {t.turn} is not among the loaded sources" for t in turns if _turn_id(t.turn) not in labels),
            confidences=tuple(_CONFIDENCES[t.relevance] for t in turns),
        )

    def drop_last(self, gathered: GatheredContext) -> tuple[GatheredContext, OmittedItem] | None:
        """Without the last key fact of the least relevant turn, then without that turn; the last turn and fact stay."""
        turns = list(gathered.prior_turns)
        if not turns:
            return None
        index = min(range(len(turns)), key=lambda i: (_RELEVANCE_RANKS[turns[i].relevance], -i))
        turn = turns[index]
        if len(turn.key_facts) > 1 or (turn.key_facts and len(turns) == 1):
            omitted = OmittedItem(f"turn {turn.turn}", turn.relevance, turn.key_facts[-1])
            turns[index] = turn.model_copy(update={"key_facts": turn.key_facts[:-1]})
        elif len(turns) > 1:
            omitted = OmittedItem(f"turn {turn.turn}", turn.relevance)
            del turns[index]
        else:
            return None
        return gathered.model_copy(update={"prior_turns": tuple(turns)}), omitted

    def _fault(self, number: int) -> str:
        """Why a turn of the index cannot be read; "" for a sound one."""
        try:
            self.ctx.deps.turns.load(TurnKey(self.ctx.turn.key.user, number), only=ROW_FILES)
        except (DocumentError, UnknownTurnError) as error:
            return str(error)
        return ""

    def _load_turn(self, key: TurnKey) -> Turn:
        """An earlier turn by its number; this turn and later turns are no history."""
        where = f"retrieval_plan.json: relevant_turns: {key.number}"
        if not 0 < key.number < self.ctx.turn.key.number:
            raise DocumentError(f"{where}: not an earlier turn than {self.ctx.turn.key}: expected one of those offered", missing=True)
        try:
            turn = self.ctx.deps.turns.load(key, only=ROW_FILES)
        except UnknownTurnError as error:
            raise DocumentError(f"{where}: {key} does not exist: expected one of those offered", missing=True) from error
        if turn.manifest.state is TurnState.OPEN:
            raise DocumentError(f"{where}: {key} still runs: expected one of those offered")
        return turn


def _turn_priority(plan: RetrievalPlan, turn: Turn, rank: int, *, is_protected: bool) -> float:
    """The priority of a chosen turn: that of the session's window where it is protected, else by its relevance and its rank in the plan."""
    if is_protected:
        return item_priority(turn.key.number, is_protected=True)
    judged = plan.turn_relevance.get(str(turn.key.number))
    return _PRIORITIES[judged.relevance if judged else "medium"] - rank


def _turn_id(number: int) -> str:
    return f"turn_{number:06d}"


def _turn_table(turns: Sequence[PriorTurn], labels: Mapping[str, str], days: Sequence[str]) -> str:
    if not turns:
        return ""
    highest = max(turns, key=lambda t: _RELEVANCE_RANKS[t.relevance]).relevance
    values: dict[str, Any] = {"type": "turn_context", "relevant_turns": [t.turn for t in turns], "highest_relevance": highest}
    meta = meta_block(values | ({"days": list(days)} if days else {}))
    rows = [
        (f"{t.turn} {_label(labels, t.turn)}", t.relevance, one_line(t.summary), "; ".join(one_line(f).rstrip(";") for f in t.key_facts))
        for t in turns
    ]
    return f"### Relevant Prior Turns\n\n{meta}\n\n{table(('Turn', 'Relevance', 'Summary', 'Key Facts'), rows)}"


def _label(labels: Mapping[str, str], turn: int) -> str:
    label = labels.get(_turn_id(turn))
    return f"[{label}]" if label else UNLINKED
