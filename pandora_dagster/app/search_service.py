"""What a search is given on the command line, checked and made into the index's nouns."""

from collections.abc import Mapping

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.turns import SearchFilters
from pandora_dagster.documents.timestamps import format_timestamp, parse_timestamp
from pandora_dagster.errors import InputError

_TOKENS_A_MESSAGE = 5
"""Fewer tokens than a message with its speaker has as a rule: what is fetched is enough to fill the budget."""
_FEWEST = 50


def most_messages(budget_tokens: int) -> int:
    """How many of the best messages are looked at for a budget."""
    return _FEWEST + budget_tokens // _TOKENS_A_MESSAGE


def search_filters(given: Mapping[str, str]) -> SearchFilters:
    """Filters from words; raises InputError for a time or a state that is none."""
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
