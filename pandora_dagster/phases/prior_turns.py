"""Earlier turns as SYNTHESIS reads them: those that RETRIEVAL chose, and the session's window. Knows forms and labels."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.calls import Item, Source
from pandora_dagster.contracts.compression import Content
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.turns import Turn, TurnRow
from pandora_dagster.contracts.words import ContentType
from pandora_dagster.errors import DocumentError, UnknownTurnError
from pandora_dagster.phases import history
from pandora_dagster.phases.desk import Desk
from pandora_dagster.selection.excerpts import excerpt
from pandora_dagster.selection.windows import SessionTurn, Window, WindowPolicy, policy_named, window

_PROTECTED, _HISTORY = 1e6, 1e3
"""Worth of an item: protected turns stay before older ones, these before what was retrieved, which is worth 100 to 300."""


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """The session's earlier turns as the call gets them, beside those that RETRIEVAL chose."""

    items: tuple[Item, ...]
    sources: tuple[Source, ...]
    told: tuple[history.Told, ...]
    left_out: tuple[str, ...]
    header: str


@dataclass(frozen=True, slots=True)
class _Forms:
    """The turns that could go whole, and what their limit left out of them."""

    whole: Mapping[int, str]
    shortened: Mapping[int, tuple[str, ...]]
    unreadable: frozenset[int]


async def prior_turn(desk: Desk, turn: Turn, path: str, *, limit: int) -> tuple[str, tuple[str, ...]]:
    """A turn within its limit: whole, else compressed to it, else its best whole pieces with what was left out (DECISIONS 2)."""
    query, counter = desk.analysis().resolved_query, desk.kit.counter
    chosen = excerpt(turn, query, limit=limit, counter=counter, scores=desk.kit.scores)
    if not chosen.left_out or desk.kit.summarizer is None:
        return chosen.text, chosen.left_out
    whole = excerpt(turn, query, limit=turn.manifest.tokens * 2 + limit, counter=counter, scores=desk.kit.scores)
    reported = Content(whole.text, path, ContentType.PRIOR_TURN, query=query)
    shrunk = await desk.kit.summarizer.shrink(reported, target=limit, site=desk.site)
    return (desk.taken(shrunk), ()) if shrunk.report else (chosen.text, chosen.left_out)


def headed(number: int, created_at: str, label: str, text: str, *, is_summary: bool = False) -> str:
    """The text of an item, under the header that says which turn it is and how it is cited."""
    return f"===== PRIOR TURN {number} ({created_at[:10]}{', summary' if is_summary else ''}) [{label}] =====\n{text}"


def path_of(turn_id: str) -> str:
    return f"turns/{turn_id}/context.md"


def protected(desk: Desk, rows: Sequence[TurnRow]) -> frozenset[int]:
    """The turns among the session's `rows` that the policy never drops."""
    count = policy_named(desk.kit.policy).protected(desk.analysis().intent, has_summary=False)
    return frozenset(row.number for row in rows[len(rows) - min(count, len(rows)) :])


async def session_window(
    desk: Desk, rows: Sequence[TurnRow], *, chosen: Collection[int], room: int, retrieved_tokens: int, first_label: int
) -> SessionWindow:
    """The window of the session's earlier turns (`rows`, oldest first) in `room` tokens, `retrieved_tokens` of them asked for by
    what RETRIEVAL chose; its sources are numbered from `first_label`."""
    policy, kind = policy_named(desk.kit.policy), desk.analysis().intent
    buffer = policy.buffer(kind)
    forms = await _forms(desk, [r for r in rows[len(rows) - min(buffer, len(rows)) :] if r.number not in chosen], policy)
    made = window(
        [_session_turn(row, forms, row.number in chosen) for row in rows],
        policy=policy,
        kind=kind,
        budget_tokens=room,
        counter=desk.kit.counter,
        retrieved_tokens=retrieved_tokens,
    )
    sent = [row for row in rows if row.number not in chosen and made.how(row.number) != "left out"]
    labels = {row.number: str(first_label + place) for place, row in enumerate(sent)}
    kept = protected(desk, rows)
    return SessionWindow(
        items=tuple(_item(row, made, forms, labels[row.number], row.number in kept) for row in sent),
        sources=tuple(Source(labels[row.number], path_of(row.turn_id), row.summary, row.turn_id) for row in sent),
        told=tuple(history.Told(row.number, made.how(row.number), _why(row.number, made, forms)) for row in rows),
        left_out=tuple(f"turn {n}: {name}" for n in made.whole for name in forms.shortened.get(n, ())),
        header=_header(made),
    )


def worth(number: int, *, is_protected: bool) -> float:
    """What an item of the window is worth to its call: newer turns more."""
    return (_PROTECTED if is_protected else _HISTORY) + number


async def _forms(desk: Desk, rows: Sequence[TurnRow], policy: WindowPolicy) -> _Forms:
    """Turns within the window's own limit. One that can not be read goes as its summary: nothing named it."""
    whole: dict[int, str] = {}
    shortened: dict[int, tuple[str, ...]] = {}
    for row in rows:
        try:
            turn = desk.kit.turns.load(TurnKey(desk.turn.key.user, row.number))
        except (DocumentError, UnknownTurnError):
            continue
        whole[row.number], shortened[row.number] = await prior_turn(desk, turn, path_of(row.turn_id), limit=policy.turn_tokens)
    return _Forms(whole, shortened, frozenset(row.number for row in rows) - whole.keys())


def _session_turn(row: TurnRow, forms: _Forms, chosen: bool) -> SessionTurn:
    """Each form as it would stand in the pack, under a label of the usual length."""
    text = forms.whole.get(row.number, "")
    whole = headed(row.number, row.created_at, "10", text) if text else ""
    return SessionTurn(row.number, whole, headed(row.number, row.created_at, "10", row.summary, is_summary=True), chosen)


def _item(row: TurnRow, made: Window, forms: _Forms, label: str, is_protected: bool) -> Item:
    is_summary = made.how(row.number) == "summary"
    text = row.summary if is_summary else forms.whole[row.number]
    said = headed(row.number, row.created_at, label, text, is_summary=is_summary)
    return Item(said, worth(row.number, is_protected=is_protected), f"turn {row.number}")


def _why(number: int, made: Window, forms: _Forms) -> str:
    if number in forms.unreadable:
        return "its documents can not be read"
    return made.reasons[number] + ("; its least relevant pieces stayed out" if forms.shortened.get(number) else "")


def _header(made: Window) -> str:
    """One line that says of every turn of the session how it goes; "" where all are there whole."""
    if not made.summarised and not made.left_out:
        return ""
    ways = (("whole", made.whole), ("as their summaries", made.summarised), ("left out", made.left_out))
    told = "; ".join(f"{how} {history.ranges(numbers)}" for how, numbers in ways if numbers)
    return f"Turns of this session: {told}."
