"""Search in the stored messages of one user, within a token budget."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import UserId, user_id
from pandora_dagster.contracts.ports.turn_storage import SearchIndex
from pandora_dagster.contracts.turns import SearchFilters
from pandora_dagster.errors import InputError
from pandora_dagster.language.timestamps import format_timestamp, parse_timestamp
from pandora_dagster.retrieval.messages.search_results import SearchResults, search_results

_MIN_MESSAGE_TOKENS = 5
"""Most messages with their speaker have more tokens, so that the fetched ones fill the budget."""
_MIN_FETCHED_MESSAGES = 50


@dataclass(frozen=True, slots=True)
class SearchService:
    """Searches over one index. `user`: whose messages are searched where a search names no user."""

    index: SearchIndex
    user: UserId
    count: Callable[[str], int]
    """Tokens of a text."""

    def messages(self, query: str, *, user: str = "", budget_tokens: int, **filters: str) -> SearchResults:
        """The user's messages about `query`, within `budget_tokens`. `filters`: fields of SearchFilters; an empty one is ignored.

        Raises InputError.
        """
        fetched = self.index.messages(self._owner(user), query, limit=max_fetched_messages(budget_tokens), filters=_filters(filters))
        relevant = self.index.relevant(query, fetched)
        return search_results(query, relevant, budget=budget_tokens, count=self.count, neighbours=self.index.neighbours(fetched, relevant))

    def unmatched_filters(self, user: str, filters: Mapping[str, str]) -> tuple[str, ...]:
        """One sentence for each filter whose value no turn of the user has. An empty filter is ignored. Raises InputError."""
        owner = self._owner(user)
        unknown = self.index.unmatched_filters(owner, _filters(filters))
        return tuple(f"{name} {value[:80]!r}: no turn of {owner} has it: expected one that is there" for name, value in unknown.items())

    def _owner(self, user: str) -> UserId:
        return user_id(user) if user else self.user


def max_fetched_messages(budget_tokens: int) -> int:
    """The number of messages, best first, that a search fetches for a budget."""
    return _MIN_FETCHED_MESSAGES + budget_tokens // _MIN_MESSAGE_TOKENS


def _filters(values: Mapping[str, str]) -> SearchFilters:
    """Parse the filters of a command. Raises InputError for an unknown filter, an invalid time or state."""
    names = [field.name for field in fields(SearchFilters)]
    if unknown := [name for name in values if name not in names]:
        raise InputError(f"{unknown[0][:40]!r}: no filter of a search: expected one of {', '.join(names)}")
    state = values.get("state")
    if state and state not in set(TurnState):
        raise InputError(f"state {state[:40]!r}: expected one of {', '.join(TurnState)}")
    return SearchFilters(
        session=values.get("session") or None,
        since=_time("since", values.get("since", "")),
        until=_time("until", values.get("until", "")),
        intent=values.get("intent") or None,
        topic=values.get("topic") or None,
        state=TurnState(state) if state else None,
    )


def _time(name: str, text: str) -> str | None:
    if not text:
        return None
    try:
        return format_timestamp(parse_timestamp(text))
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name} {text[:40]!r}: expected an ISO 8601 time, e.g. 2026-01-04 or 2026-01-04T14:30:00Z") from error
