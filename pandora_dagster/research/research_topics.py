"""Topics of cached research: what the newest record of each says, and which topics a refresh researches again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pandora_dagster.contracts.user.sources import Claim, Provenance, ResearchRow
from pandora_dagster.language.timestamps import parse_timestamp
from pandora_dagster.retrieval.freshness import age_hours, freshness_score, is_expired

RUN_COMMAND = "pandora research run"
REFRESH = "research_topics"
OFF, ALL = "off", "all"
_AHEAD = timedelta(hours=24)
"""How long before its expiry a topic is refreshed: a refresh runs once a day."""
_GIVEN_UP = timedelta(days=7)
"""How long after its expiry a topic is refreshed no more: every refresh since then failed, or there was none."""


@dataclass(frozen=True, slots=True)
class ResearchTopic:
    """The newest record of a topic. `fault`: why its file cannot be read; then there are no claims."""

    topic: str
    question: str
    """The question of its run; of a record that a user added, the name of its search."""
    records: int
    created_at: str
    expires_at: str
    quality_score: float
    claims: tuple[Claim, ...] = ()
    provenance: Provenance | None = None
    fault: str = ""


class RefreshState(StrEnum):
    """What a refresh does with a topic."""

    DUE = "due"
    FRESH = "fresh"
    NOT_NAMED = "not named"
    GIVEN_UP = "given up"
    NO_QUESTION = "no question"
    UNREADABLE = "unreadable"


_MEANING = {
    RefreshState.DUE: "is researched again",
    RefreshState.FRESH: f"is due {_AHEAD.total_seconds() / 3600:.0f} hours before it expires",
    RefreshState.NOT_NAMED: "PANDORA_RESEARCH_REFRESH does not name it",
    RefreshState.GIVEN_UP: f"expired over {_GIVEN_UP.days} days ago: research it again with `{RUN_COMMAND}`",
    RefreshState.NO_QUESTION: f"no research run made its record: replace it with `pandora research add` or `{RUN_COMMAND}`",
    RefreshState.UNREADABLE: "its record cannot be read",
}


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic with its age, and what a refresh does with it."""

    topic: ResearchTopic
    age_hours: float
    freshness_score: float
    expired: bool
    state: RefreshState

    @property
    def meaning(self) -> str:
        """The state in words."""
        return self.topic.fault or _MEANING[self.state]

    @property
    def quotes(self) -> int:
        """Claims that name the words of a stored page."""
        return sum(claim.evidence is not None for claim in self.topic.claims)


def topic_fields(row: TopicRow, refusal: str) -> dict[str, Any]:
    """A topic as a row of a table. `refusal`: why nothing is refreshed; then the state says `off`."""
    topic = row.topic
    return {
        "topic": topic.topic,
        "question": topic.question,
        "records": topic.records,
        "claims": len(topic.claims),
        "quotes": row.quotes,
        "quality_score": topic.quality_score,
        "freshness_score": row.freshness_score,
        "age_hours": row.age_hours,
        "expires_at": topic.expires_at,
        "expired": row.expired,
        "refresh": OFF if refusal else row.state.value,
        "reason": refusal or row.meaning,
    }


def topic_row(topic: ResearchTopic, wanted: str, asked_by: Sequence[str], now: datetime) -> TopicRow:
    """The topic at a time. `wanted`: topics that a refresh may take, separated by commas, `all`, or `off`; `web.vela` takes all that
    begin with `web.vela.`.

    `asked_by`: who stores records whose cache key is the question of a run.
    """
    return TopicRow(
        topic,
        age_hours(topic.created_at, now),
        freshness_score(topic.created_at, topic.expires_at, now),
        is_expired(topic.expires_at, now),
        _state(topic, wanted, asked_by, now),
    )


def _state(topic: ResearchTopic, wanted: str, asked_by: Sequence[str], now: datetime) -> RefreshState:
    expires = parse_timestamp(topic.expires_at)
    if topic.fault:
        return RefreshState.UNREADABLE
    if topic.provenance is None or topic.provenance.by not in asked_by:
        return RefreshState.NO_QUESTION
    if wanted != ALL and not any(f"{topic.topic}.".startswith(f"{name}.") for name in wanted.split(",")):
        return RefreshState.NOT_NAMED
    if now - expires > _GIVEN_UP:
        return RefreshState.GIVEN_UP
    return RefreshState.DUE if expires - now <= _AHEAD else RefreshState.FRESH


def due_topics(rows: Sequence[TopicRow]) -> tuple[TopicRow, ...]:
    """The topics that a refresh takes, those that expire first before the others."""
    return tuple(sorted((row for row in rows if row.state is RefreshState.DUE), key=lambda row: row.topic.expires_at))


def newest_of_topics(rows: Sequence[ResearchRow]) -> tuple[tuple[ResearchRow, int], ...]:
    """The newest row of each topic with the number of its rows; `rows` are newest first."""
    newest: dict[str, tuple[ResearchRow, int]] = {}
    for row in rows:
        first, count = newest.get(row.topic, (row, 0))
        newest[row.topic] = first, count + 1
    return tuple(newest.values())
