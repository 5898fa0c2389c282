"""Found messages packed into a token budget.

A message is included whole or left out, and each text once. Messages of one day are under its date once, whether they are
shown best first (`results`) or in the order in which they were written (`text`); both stay within the budget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.turns import FoundMessage
from pandora_dagster.language.dates import display_date

_FULL_SHARE = 0.98
"""Share of the budget from which on no further message is tried: only small ones, which matter less, would fit."""
Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One message that was chosen; the best of its day has the date as its first line."""

    turn_id: str
    message_ids: tuple[str, ...]
    created_at: str
    tokens: int
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The result of a search: best first in `results`, in time order in `text`. `tokens` are those of all result texts together."""

    query: str
    tokens: int
    results: tuple[SearchResult, ...]
    text: str
    least_tokens: int = 0
    """The budget that the best message needs, where messages were found and none fits; else 0."""


def search_results(
    query: str, found: Sequence[FoundMessage], *, budget: int, count: Count, neighbours: Sequence[FoundMessage] = ()
) -> SearchResults:
    """As many of the found messages as fit `budget` tokens, in their order and none twice, then of their neighbours; listed by score."""
    offered = [m for m in (*found, *neighbours) if m.text.strip()]
    chosen = pack_messages(offered, budget, count)
    while True:
        results, text = _result_list(chosen, count), _chronological_text(chosen)
        tokens = max(count("\n".join(r.text for r in results)), sum(r.tokens for r in results)) if results else 0
        if not chosen or max(tokens, count(text)) <= budget:
            break
        # Lines may take more tokens one by one than they were counted with their line's end: the last one is dropped.
        chosen = pack_messages(chosen[:-1], budget, count)
    return SearchResults(query, tokens, results, text, 0 if results or not offered else _min_budget(offered[0], count))


def pack_messages(offered: Sequence[FoundMessage], budget: int, count: Count) -> list[FoundMessage]:
    """The messages that fit, in the order given; after one that does not fit the next one is tried."""
    chosen: list[FoundMessage] = []
    used_tokens, packed_texts, shown_days = 0, set[str](), set[str]()
    for message in offered:
        if used_tokens >= budget * _FULL_SHARE:
            break
        text, day = _line(message), display_date(message.created_at)
        cost = 0 if text in packed_texts else count(text + "\n") + (0 if day in shown_days else count(day + "\n"))
        if text not in packed_texts and used_tokens + cost <= budget:
            used_tokens += cost
            chosen.append(message)
            packed_texts.add(text)
            shown_days.add(day)
    return chosen


def _line(message: FoundMessage) -> str:
    return f"{message.speaker}: {message.text.strip()}"


def _dated_line(message: FoundMessage) -> str:
    return f"{display_date(message.created_at)}\n{_line(message)}"


def _chronological_text(chosen: Sequence[FoundMessage]) -> str:
    """The messages as they were written, the date where it changes."""
    lines: list[str] = []
    day = ""
    for message in sorted(chosen, key=lambda m: m.position):
        is_same = display_date(message.created_at) == day
        day = display_date(message.created_at)
        lines.append(_line(message) if is_same else _dated_line(message))
    return "\n".join(lines)


def _result_list(chosen: Sequence[FoundMessage], count: Count) -> tuple[SearchResult, ...]:
    days: set[str] = set()
    results: list[SearchResult] = []
    for message in sorted(chosen, key=lambda m: -m.score):
        day = display_date(message.created_at)
        text = _line(message) if day in days else _dated_line(message)
        days.add(day)
        results.append(SearchResult(message.turn_id, (message.message_id,), message.created_at, count(text), round(message.score, 4), text))
    return tuple(results)


def _min_budget(message: FoundMessage, count: Count) -> int:
    """The smallest budget in which a message surely goes: as it is packed, date and text by themselves, and as it is shown."""
    return max(count(display_date(message.created_at) + "\n") + count(_line(message) + "\n"), count(_dated_line(message)))
