"""A search index in memory. It ranks by shared words alone, which is enough for what a caller may rely on."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pandora_dagster.contracts.archive_records import TurnActivity
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.turns import Candidate, FoundMessage, IndexedMessage, Manifest, SearchFilters, TurnRow
from pandora_dagster.retrieval.messages.document_numbers import document_number, turn_number

EVERYTHING = SearchFilters()


@dataclass
class MemorySearchIndex:
    """`SearchIndex` over a dictionary. A rebuild keeps the old rows until the new ones are complete."""

    stored: dict[tuple[str, int], TurnRow] = field(default_factory=dict)

    def put(self, rows: Sequence[TurnRow]) -> None:
        self.stored |= {(row.user_id, row.number): row for row in rows}

    def rows(
        self, user: str | None = None, *, session: str | None = None, before: int | None = None, limit: int | None = None
    ) -> tuple[TurnRow, ...]:
        found = [row for row in self._of(user, before) if session in (None, row.session_id)]
        found.sort(key=lambda row: (row.created_at, row.number, row.user_id))
        newest = found if limit is None else found[len(found) - min(limit, len(found)) :]
        return tuple(row.model_copy(update={"messages": ()}) for row in newest)

    def update_states(self, manifests: Sequence[Manifest]) -> None:
        for m in manifests:
            if row := self.stored.get((m.key.user, m.key.number)):
                update = {"state": m.state, "tokens": m.tokens, "context_sha": m.context_sha}
                self.stored[m.key.user, m.key.number] = row.model_copy(update=update)

    def activities(self, *, archived: bool | None = None, between: tuple[str, str] = ("", "\U0010ffff")) -> Iterator[TurnActivity]:
        for row in sorted(self.stored.values(), key=lambda row: (row.user_id, row.number)):
            if archived in (None, row.state is TurnState.ARCHIVED) and between[0] <= row.last_activity < between[1]:
                yield _activity(row)

    def missing(self, keys: Sequence[TurnKey]) -> tuple[TurnKey, ...]:
        return tuple(key for key in keys if (key.user, key.number) not in self.stored)

    def sessions(self, user: str) -> Mapping[str, tuple[TurnActivity, ...]]:
        rows = sorted(self._of(user), key=lambda row: row.number)
        return {name: tuple(_activity(row) for row in rows if row.session_id == name) for name in sorted({r.session_id for r in rows})}

    def outdated(self, manifests: Sequence[Manifest]) -> tuple[Manifest, ...]:
        return tuple(m for m in manifests if not self._agrees(m))

    def candidates(self, user: str, query: str, *, limit: int, before: int | None = None) -> tuple[Candidate, ...]:
        scored = [(_shared(query, _text(row)), row) for row in self._of(user, before) if row.state is not TurnState.OPEN]
        best = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], -pair[1].number))
        return tuple(Candidate(row.model_copy(update={"messages": ()}), score) for score, row in best[:limit])

    def messages(
        self, user: str, query: str, *, limit: int, filters: SearchFilters = EVERYTHING, before: int | None = None
    ) -> tuple[FoundMessage, ...]:
        found = [
            FoundMessage(row.turn_id, m.created_at, m.id, m.name or m.role, m.text, score, document_number(row.number, place))
            for row in self._of(user, before)
            if _passes(row, filters)
            for place, m in enumerate(row.messages, 1)
            if (score := _shared(query, m.text))
        ]
        return tuple(sorted(found, key=lambda m: (-m.score, -m.position))[: max(0, limit)])

    def relevant(self, query: str, messages: Sequence[FoundMessage]) -> Sequence[FoundMessage]:
        return tuple(m for m in messages if _shared(query, m.text))

    def neighbours(self, messages: Sequence[FoundMessage], relevant: Sequence[FoundMessage]) -> Sequence[FoundMessage]:
        turns = {turn_number(m.position) + away for m in relevant for away in (-1, 0, 1)}
        return tuple(m for m in messages if m not in relevant and turn_number(m.position) in turns)

    def unmatched_filters(self, user: str, filters: SearchFilters) -> Mapping[str, str]:
        wanted = {"session": filters.session, "intent": filters.intent, "topic": filters.topic, "state": filters.state}
        given = {name: value for name, value in wanted.items() if value is not None}
        alone = {name: SearchFilters(**{name: value}) for name, value in given.items()}
        return {name: str(value) for name, value in given.items() if not any(_passes(row, alone[name]) for row in self._of(user))}

    def messages_by_turn(self, user: str) -> Mapping[int, tuple[IndexedMessage, ...]]:
        return {row.number: row.messages for row in self._of(user) if row.messages}

    def remove(self, user: str, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.stored.pop((user, number), None)

    def rebuild(self, batches: Iterable[Sequence[TurnRow]]) -> Path | None:
        self.stored = {(row.user_id, row.number): row for rows in batches for row in rows}
        return None

    def _of(self, user: str | None, before: int | None = None) -> list[TurnRow]:
        return [r for r in self.stored.values() if user in (None, r.user_id) and (before is None or r.number < before)]

    def _agrees(self, m: Manifest) -> bool:
        row = self.stored.get((m.key.user, m.key.number))
        stated = (m.state, m.last_activity, m.tokens, m.context_sha)
        return row is not None and (row.state, row.last_activity, row.tokens, row.context_sha) == stated


def _activity(row: TurnRow) -> TurnActivity:
    return TurnActivity(TurnKey(UserId(row.user_id), row.number), row.state, row.last_activity)


def _text(row: TurnRow) -> str:
    return " ".join((row.text, row.summary, *row.topics, *(m.text for m in row.messages)))


def _shared(query: str, text: str) -> float:
    return float(len(_words(query) & _words(text)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


def _passes(row: TurnRow, filters: SearchFilters) -> bool:
    return (
        filters.session in (None, row.session_id)
        and filters.intent in (None, row.intent)
        and filters.state in (None, row.state)
        and (filters.topic is None or filters.topic in row.topics)
        and (filters.since is None or row.created_at >= filters.since)
        and (filters.until is None or row.created_at < filters.until)
    )
