"""Earlier turns as SYNTHESIS reads them: those that RETRIEVAL chose, and the session's window. Knows forms and labels."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.compression.rolling_summary import render_digest
from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ids import SessionId, TurnKey
from pandora_dagster.contracts.model_calls import Item, Source
from pandora_dagster.contracts.turns import Turn, TurnRow
from pandora_dagster.contracts.user.conversations import ConversationSummary
from pandora_dagster.documents.markdown import escape_pack_lines
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.phases.core.phase_context import PhaseContext
from pandora_dagster.phases.gather import session_history
from pandora_dagster.retrieval.context_window import ContextWindow, SessionTurn, WindowPolicy, choose_window, window_policy
from pandora_dagster.retrieval.turn_excerpts import excerpt, full_excerpt
from pandora_dagster.retrieval.turn_row import READ_FILES

_PROTECTED, _ROLLED, _HISTORY = 1e12, 1e11, 1e3
"""Worth of an item: protected turns stay before the rolling summary, this before older turns, these before what was retrieved, which
is worth 100 to 300."""
_HEADER_TOKENS = 60
"""Tokens of the rolling summary's header, and of the line that names what it links."""


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """The session's earlier turns as the call gets them, beside those that RETRIEVAL chose."""

    items: tuple[Item, ...]
    sources: tuple[Source, ...]
    told: tuple[session_history.TurnInclusion, ...]
    left_out: tuple[str, ...]
    header: str


@dataclass(frozen=True, slots=True)
class _TurnForms:
    """The turns that could go whole, and what their limit left out of them."""

    whole: Mapping[int, str]
    shortened: Mapping[int, tuple[str, ...]]
    unreadable: frozenset[int]


async def prior_turn(ctx: PhaseContext, turn: Turn, path: str, *, limit: int) -> tuple[str, tuple[str, ...]]:
    """A turn within its limit: whole, else compressed to it, else its best whole pieces with what was left out (DECISIONS 2)."""
    query, counter = ctx.analysis().resolved_query, ctx.deps.counter
    chosen = excerpt(turn, query, limit=limit, counter=counter, scores=ctx.deps.scores)
    if not chosen.left_out or ctx.deps.summarizer is None:
        return chosen.text, chosen.left_out
    reported = CompressionInput(full_excerpt(turn), path, ContentType.PRIOR_TURN, query=query)
    shrunk = await ctx.deps.summarizer.fit_text(reported, target=limit, site=ctx.site)
    return (ctx.record_compression(shrunk), ()) if shrunk.report else (chosen.text, chosen.left_out)


def with_turn_header(number: int, created_at: str, label: str, text: str, *, is_summary: bool = False) -> str:
    """The text of an item, under the header that says which turn it is and how it is cited."""
    said = escape_pack_lines(text) if is_summary else text
    return f"===== PRIOR TURN {number} ({created_at[:10]}{', summary' if is_summary else ''}) [{label}] =====\n{said}"


def context_path(turn_id: str) -> str:
    return f"turns/{turn_id}/context.md"


def protected_turns(ctx: PhaseContext, rows: Sequence[TurnRow]) -> frozenset[int]:
    """The turns among the session's `rows` that the policy never drops."""
    count = window_policy(ctx.deps.policy).protected(_policy_kind(ctx), has_summary=False)
    return frozenset(row.number for row in rows[len(rows) - min(count, len(rows)) :])


async def session_window(
    ctx: PhaseContext, rows: Sequence[TurnRow], *, chosen: Collection[int], room: int, retrieved_tokens: int, first_label: int
) -> SessionWindow:
    """The window of the session's earlier turns (`rows`, oldest first) in `room` tokens, `retrieved_tokens` of them asked for by
    what RETRIEVAL chose; its sources are numbered from `first_label`."""
    policy, kind = window_policy(ctx.deps.policy), _policy_kind(ctx)
    buffer, rolling = policy.buffer(kind), _rolling_summary(ctx)
    covered = frozenset(rolling.turns) if rolling else frozenset[int]()
    forms = await _turn_forms(ctx, [r for r in rows[len(rows) - min(buffer, len(rows)) :] if r.number not in chosen], policy)
    made = choose_window(
        [_session_turn(row, forms, row.number in chosen, row.number in covered) for row in rows],
        policy=policy,
        kind=kind,
        budget_tokens=room,
        counter=ctx.deps.counter,
        summary_tokens=rolling.tokens + _HEADER_TOKENS if rolling else 0,
        retrieved_tokens=retrieved_tokens,
    )
    sent = [row for row in rows if row.number not in chosen and made.form_of(row.number) in ("whole", "summary")]
    rolled = _rolling_item(ctx, rolling, made, str(first_label)) if rolling and made.rolled_up else None
    labels = {row.number: str(first_label + place) for place, row in enumerate(sent, start=1 if rolled else 0)}
    kept = protected_turns(ctx, rows)
    return SessionWindow(
        items=(*([rolled[0]] if rolled else []), *(_window_item(row, made, forms, labels[row.number], row.number in kept) for row in sent)),
        sources=(
            *([rolled[1]] if rolled else []),
            *(Source(labels[row.number], context_path(row.turn_id), row.summary, row.turn_id) for row in sent),
        ),
        told=tuple(
            session_history.TurnInclusion(row.number, made.form_of(row.number), _window_reason(row.number, made, forms)) for row in rows
        ),
        left_out=tuple(f"turn {n}: {name}" for n in made.whole for name in forms.shortened.get(n, ())),
        header=_window_header(made),
    )


def _policy_kind(ctx: PhaseContext) -> str:
    """By what the policy's table is read: the stage that the settings name, else the intent of the query."""
    return ctx.deps.stage or ctx.analysis().intent


def _rolling_summary(ctx: PhaseContext) -> ConversationSummary | None:
    """The session's rolling summary; None where there is none, where it can not be read (nothing named it), and for the re-run of a
    turn that it covers: that turn must not see what came after it."""
    try:
        found = ctx.deps.conversations.find(ctx.turn.key.user, SessionId(ctx.turn.manifest.session_id))
    except DocumentError:
        return None
    return found if found and found.last < ctx.turn.key.number else None


def _rolling_item(ctx: PhaseContext, rolling: ConversationSummary, made: ContextWindow, label: str) -> tuple[Item, Source]:
    """The rolling summary as one item, and where it lies: it is cited for the turns that it stands for, under the last one's number."""
    covered, last = session_history.number_ranges(made.rolled_up), made.rolled_up[-1]
    linked = f"\nFurther limits and decisions: turns {session_history.number_ranges(rolling.linked)}." if rolling.linked else ""
    header = f"===== PRIOR TURNS {covered} ({rolling.created_at[:10]}, conversation summary) [{label}] ====="
    path = f"sessions/{rolling.session_id}/conversation_summary.json"
    source = Source(label, path, f"Summary of turns {covered}", TurnKey(ctx.turn.key.user, last).turn_id)
    return Item(f"{header}\n{escape_pack_lines(render_digest(rolling.digest))}{linked}", _ROLLED, session_history.CONVERSATION_ITEM), source


def item_worth(number: int, *, is_protected: bool) -> float:
    """What an item of the window is worth to its call: newer turns more."""
    return (_PROTECTED if is_protected else _HISTORY) + number


async def _turn_forms(ctx: PhaseContext, rows: Sequence[TurnRow], policy: WindowPolicy) -> _TurnForms:
    """Turns within the window's own limit. One that can not be read goes as its summary: nothing named it."""
    whole: dict[int, str] = {}
    shortened: dict[int, tuple[str, ...]] = {}
    for row in rows:
        try:
            turn = ctx.deps.turns.load(TurnKey(ctx.turn.key.user, row.number), only=READ_FILES)
        except (DocumentError, UnknownTurnError):
            continue
        whole[row.number], shortened[row.number] = await prior_turn(ctx, turn, context_path(row.turn_id), limit=policy.turn_tokens)
    return _TurnForms(whole, shortened, frozenset(row.number for row in rows) - whole.keys())


def _session_turn(row: TurnRow, forms: _TurnForms, chosen: bool, covered: bool) -> SessionTurn:
    """Each form as it would stand in the pack, under a label of the usual length."""
    text = forms.whole.get(row.number, "")
    whole = with_turn_header(row.number, row.created_at, "10", text) if text else ""
    return SessionTurn(row.number, whole, with_turn_header(row.number, row.created_at, "10", row.summary, is_summary=True), chosen, covered)


def _window_item(row: TurnRow, made: ContextWindow, forms: _TurnForms, label: str, is_protected: bool) -> Item:
    is_summary = made.form_of(row.number) == "summary"
    text = row.summary if is_summary else forms.whole[row.number]
    said = with_turn_header(row.number, row.created_at, label, text, is_summary=is_summary)
    return Item(said, item_worth(row.number, is_protected=is_protected), f"turn {row.number}")


def _window_reason(number: int, made: ContextWindow, forms: _TurnForms) -> str:
    if number in forms.unreadable:
        return "its documents can not be read"
    return made.reasons[number] + ("; its least relevant pieces stayed out" if forms.shortened.get(number) else "")


def _window_header(made: ContextWindow) -> str:
    """One line that says of every turn of the session how it goes; "" where all are there whole."""
    if not made.summarised and not made.rolled_up and not made.left_out:
        return ""
    ways = (
        ("whole", made.whole),
        ("as their summaries", made.summarised),
        ("in the summary of the conversation", made.rolled_up),
        ("left out", made.left_out),
    )
    told = "; ".join(f"{how} {session_history.number_ranges(numbers)}" for how, numbers in ways if numbers)
    return f"Turns of this session: {told}."
