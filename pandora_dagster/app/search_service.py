"""The search over a user's messages: filters checked, messages found, packed into a token budget."""

from collections.abc import Callable, Mapping

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports.turn_storage import SearchIndex
from pandora_dagster.contracts.turns import SearchFilters
from pandora_dagster.documents.timestamps import format_timestamp, parse_timestamp
from pandora_dagster.errors import InputError
from pandora_dagster.retrieval.messages.search_results import SearchResults, search_results

_TOKENS_A_MESSAGE = 5
"""Most messages with their speaker have more tokens, so that what is fetched fills the budget."""
_FEWEST = 50


def search_messages(
    index: SearchIndex, user: UserId, query: str, *, budget_tokens: int, count: Callable[[str], int], filters: Mapping[str, str]
) -> SearchResults:
    """What the user's messages say about `query`, within `budget_tokens`. An empty filter is none. Raises InputError."""
    found = index.messages(user, query, limit=most_messages(budget_tokens), filters=search_filters(filters))
    relevant = index.relevant(query, found)
    return search_results(query, relevant, budget=budget_tokens, count=count, beside=index.neighbours(found, relevant))


def unmatched_filters(index: SearchIndex, user: UserId, filters: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence for each filter whose value no turn of the user has. An empty filter is none. Raises InputError."""
    unknown = index.unmatched_filters(user, search_filters(filters))
    return tuple(f"{name} {value[:80]!r}: no turn of {user} has it: expected one that is there" for name, value in unknown.items())


def most_messages(budget_tokens: int) -> int:
    """How many of the best messages a search fetches for a budget."""
    return _FEWEST + budget_tokens // _TOKENS_A_MESSAGE


def search_filters(given: Mapping[str, str]) -> SearchFilters:
    """Filters from words. Raises InputError for a wrong time or state."""
    state = given.get("state")
    if state and state not in set(TurnState):
        raise InputError(f"state {state[:40]!r}: expected one of {', '.join(TurnState)}")
    return SearchFilters(
        session=given.get("session") or None,
        since=_time("since", given.get("since", "")),
        until=_time("until", given.get("until", "")),
        intent=given.get("intent") or None,
        topic=given.get("topic") or None,
        state=TurnState(state) if state else None,
    )


def _time(name: str, text: str) -> str | None:
    if not text:
        return None
    try:
        return format_timestamp(parse_timestamp(text))
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name} {text[:40]!r}: expected an ISO 8601 time, e.g. 2026-01-04 or 2026-01-04T14:30:00Z") from error
