"""Earlier turns as SYNTHESIS reads them, and the window of the session that each of its calls gets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pandora_dagster.compression.rolling_summary import render_digest
from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ids import SessionId, TurnKey
from pandora_dagster.contracts.model_calls import InputDocument, Item, Source
from pandora_dagster.contracts.turns import Turn, TurnRow
from pandora_dagster.contracts.user.conversations import ConversationSummary
from pandora_dagster.documents.markdown import escape_pack_lines
from pandora_dagster.documents.turn_row import ROW_FILES
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.phases.core.phase_context import PhaseContext
from pandora_dagster.phases.gather import session_history
from pandora_dagster.phases.gather.section2 import Background, LoadedSource, next_label
from pandora_dagster.retrieval.context_window import ContextWindow, Form, SessionTurn, choose_window
from pandora_dagster.retrieval.retrieval_policy import RetrievalPolicy, buffer_size
from pandora_dagster.retrieval.turn_excerpts import excerpt, full_excerpt

_PROTECTED_PRIORITY, _SUMMARY_PRIORITY, _HISTORY_PRIORITY = 1e12, 1e11, 1e3
"""Priorities of items, highest first: protected turns, the rolling summary, older turns. Turns that RETRIEVAL chose have 100 to 300."""
_FORM_NAMES: Mapping[Form, str] = {
    "whole": "whole",
    "summary": "as their summaries",
    "rolled up": "in the summary of the conversation",
    "left out": "left out",
}
_USUAL_LABEL = "10"
"""The label with which the tokens of a turn are counted; its own label is assigned later."""
_HEADER_TOKENS = 60
"""Tokens of the rolling summary's header, and of the line that names what it links."""


@dataclass(frozen=True, slots=True)
class _TurnForms:
    """The texts of turns that may be included whole, by the number of the turn."""

    whole: Mapping[int, str]
    shortened: Mapping[int, tuple[str, ...]]
    """The names of the pieces that the limit of a turn left out."""
    unreadable: frozenset[int]


async def prior_turn_text(ctx: PhaseContext, turn: Turn, path: str, *, limit: int) -> tuple[str, tuple[str, ...]]:
    """A turn within its limit: whole, else compressed to it, else its best whole pieces and the names of those left out (decision 2,
    docs/decisions/02-selection-then-compression.md)."""
    query, counter = ctx.analysis().resolved_query, ctx.deps.counter
    chosen = excerpt(turn, query, limit=limit, counter=counter, scores=ctx.deps.scores)
    if not chosen.left_out or ctx.deps.summarizer is None:
        return chosen.text, chosen.left_out
    content = CompressionInput(full_excerpt(turn), path, ContentType.PRIOR_TURN, query=query)
    result = await ctx.deps.summarizer.fit_text(content, target=limit, site=ctx.site)
    return (ctx.record_compression(result), ()) if result.report else (chosen.text, chosen.left_out)


def with_turn_header(number: int, created_at: str, label: str, text: str, *, is_summary: bool = False) -> str:
    """The text of an item under the header that names its turn and its citation label."""
    quoted = escape_pack_lines(text) if is_summary else text
    return f"===== PRIOR TURN {number} ({created_at[:10]}{', summary' if is_summary else ''}) [{label}] =====\n{quoted}"


def context_path(turn_id: str) -> str:
    """The path of a turn's context.md below the user's folder, as citations name it."""
    return f"turns/{turn_id}/context.md"


def protected_turns(ctx: PhaseContext, rows: Sequence[TurnRow]) -> frozenset[int]:
    """The turns among the session's `rows` that the policy never drops."""
    count = RetrievalPolicy().protected(ctx.analysis().intent, has_summary=False)
    return frozenset(row.number for row in rows[len(rows) - min(count, len(rows)) :])


async def session_window(
    ctx: PhaseContext, rows: Sequence[TurnRow], turn_document: InputDocument, loaded: Sequence[LoadedSource], budget_tokens: int
) -> Background:
    """The session's earlier turns (`rows`, oldest first) in `budget_tokens` tokens, of which the `loaded` records take theirs.

    They continue the document of the turns that RETRIEVAL chose, whose header precedes the line about the session.
    """
    first_label = next_label([source for loaded_source in loaded for source in loaded_source.cited])
    retrieved = [loaded_source for loaded_source in loaded if loaded_source.source.traits.document == turn_document.name]
    chosen = {record.turn.key.number for loaded_source in retrieved for record in loaded_source.records}
    policy, intent = RetrievalPolicy(), ctx.analysis().intent
    buffer, rolling_summary = buffer_size(intent), _rolling_summary(ctx)
    forms = await _turn_forms(ctx, [r for r in rows[len(rows) - min(buffer, len(rows)) :] if r.number not in chosen], policy)
    covered = frozenset(rolling_summary.turns) if rolling_summary else frozenset[int]()
    other_items = [item for loaded_source in loaded if loaded_source not in retrieved for item in loaded_source.items]
    window = choose_window(
        [_session_turn(row, forms, row.number in chosen, row.number in covered) for row in rows],
        policy=policy,
        intent=intent,
        budget_tokens=max(0, budget_tokens - _item_tokens(ctx, other_items)),
        counter=ctx.deps.counter,
        summary_tokens=rolling_summary.tokens + _HEADER_TOKENS if rolling_summary else 0,
        retrieved_tokens=_item_tokens(ctx, (item for loaded_source in retrieved for item in loaded_source.items)),
    )
    shown_rows = [row for row in rows if row.number not in chosen and window.forms[row.number] in ("whole", "summary")]
    summary = _rolling_item(ctx, rolling_summary, window, str(first_label)) if rolling_summary and window.numbers("rolled up") else None
    labels = {row.number: str(first_label + offset) for offset, row in enumerate(shown_rows, start=1 if summary else 0)}
    protected = protected_turns(ctx, rows)
    items = tuple(_window_item(row, window, forms, labels[row.number], row.number in protected) for row in shown_rows)
    sources = tuple(Source(labels[row.number], context_path(row.turn_id), row.summary, row.turn_id) for row in shown_rows)
    header = "\n".join(line for line in (turn_document.header, _window_header(window)) if line)
    return Background(
        documents=(replace(turn_document, items=(*([summary[0]] if summary else []), *items), header=header),),
        cited=(*([summary[1]] if summary else []), *sources),
        left_out=tuple(f"turn {n}: {name}" for n in window.numbers("whole") for name in forms.shortened.get(n, ())),
        inclusions=tuple(
            session_history.TurnInclusion(row.number, window.forms[row.number], _window_reason(row.number, window, forms)) for row in rows
        ),
    )


def _item_tokens(ctx: PhaseContext, items: Iterable[Item]) -> int:
    return sum(ctx.deps.counter.count(item.text) for item in items)


def _rolling_summary(ctx: PhaseContext) -> ConversationSummary | None:
    """The session's rolling summary; None where there is none, where it cannot be read (no plan named it), and for the re-run of a
    turn that it covers: that turn must not see later turns."""
    try:
        summary = ctx.deps.conversations.find(ctx.turn.key.user, SessionId(ctx.turn.manifest.session_id))
    except DocumentError:
        return None
    return summary if summary and summary.last_turn < ctx.turn.key.number else None


def _rolling_item(ctx: PhaseContext, rolling: ConversationSummary, window: ContextWindow, label: str) -> tuple[Item, Source]:
    """The rolling summary as one item, and its source: it is cited for the turns that it covers, under the number of the newest."""
    turns = window.numbers("rolled up")
    covered, newest = session_history.number_ranges(turns), turns[-1]
    linked = f"\nFurther limits and decisions: turns {session_history.number_ranges(rolling.linked)}." if rolling.linked else ""
    header = f"===== PRIOR TURNS {covered} ({rolling.created_at[:10]}, conversation summary) [{label}] ====="
    path = f"sessions/{rolling.session_id}/conversation_summary.json"
    source = Source(label, path, f"Summary of turns {covered}", TurnKey(ctx.turn.key.user, newest).turn_id)
    return Item(
        f"{header}\n{escape_pack_lines(render_digest(rolling.digest))}{linked}", _SUMMARY_PRIORITY, session_history.CONVERSATION_ITEM
    ), source


def item_priority(number: int, *, is_protected: bool) -> float:
    """The priority of an item of the window: higher for newer turns."""
    return (_PROTECTED_PRIORITY if is_protected else _HISTORY_PRIORITY) + number


async def _turn_forms(ctx: PhaseContext, rows: Sequence[TurnRow], policy: RetrievalPolicy) -> _TurnForms:
    """Turns within the window's own limit. A turn that cannot be read is included as its summary: no plan named it."""
    whole: dict[int, str] = {}
    shortened: dict[int, tuple[str, ...]] = {}
    for row in rows:
        try:
            turn = ctx.deps.turns.load(TurnKey(ctx.turn.key.user, row.number), only=ROW_FILES)
        except (DocumentError, UnknownTurnError):
            continue
        whole[row.number], shortened[row.number] = await prior_turn_text(ctx, turn, context_path(row.turn_id), limit=policy.turn_tokens)
    return _TurnForms(whole, shortened, frozenset(row.number for row in rows) - whole.keys())


def _session_turn(row: TurnRow, forms: _TurnForms, chosen: bool, covered: bool) -> SessionTurn:
    """Each form of a turn as the pack would contain it, under a label of the usual length."""
    text = forms.whole.get(row.number, "")
    whole = with_turn_header(row.number, row.created_at, _USUAL_LABEL, text) if text else ""
    summary = with_turn_header(row.number, row.created_at, _USUAL_LABEL, row.summary, is_summary=True)
    return SessionTurn(row.number, whole, summary, chosen, covered)


def _window_item(row: TurnRow, window: ContextWindow, forms: _TurnForms, label: str, is_protected: bool) -> Item:
    is_summary = window.forms[row.number] == "summary"
    text = row.summary if is_summary else forms.whole[row.number]
    headed = with_turn_header(row.number, row.created_at, label, text, is_summary=is_summary)
    return Item(headed, item_priority(row.number, is_protected=is_protected), f"turn {row.number}")


def _window_reason(number: int, window: ContextWindow, forms: _TurnForms) -> str:
    if number in forms.unreadable:
        return "its documents cannot be read"
    return window.reasons[number] + ("; its least relevant pieces stayed out" if forms.shortened.get(number) else "")


def _window_header(window: ContextWindow) -> str:
    """One line that names the form of every turn of the session; "" where all turns are included whole."""
    if len(window.numbers("whole")) == len(window.forms):
        return ""
    listed = "; ".join(
        f"{name} {session_history.number_ranges(numbers)}" for form, name in _FORM_NAMES.items() if (numbers := window.numbers(form))
    )
    return f"Turns of this session: {listed}."
