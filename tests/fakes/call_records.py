"""Stored calls in memory with their sums, and a vault whose entries have a retention."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.ports.record_storage import CallTotals, CompressionTotals, SumBy
from tests.fakes.lineage import MemoryIndexFile
from tests.fakes.record_stores import MemoryCallLog, MemoryVault
from tests.fakes.turn_store import utc_now

_SUMMED_BY: Mapping[SumBy, Callable[[CallRecord], str]] = {
    "layer": lambda record: record.model_layer.value,
    "recipe": lambda record: record.recipe,
    "day": lambda record: record.timestamp[:10],
    "phase": lambda record: record.phase,
    "model": lambda record: record.model,
    "user": lambda record: record.user_id,
    "turn": lambda record: f"{record.user_id}:{record.turn_id}",
}


@dataclass
class MemoryCallHistory(MemoryCallLog):
    """`CallLog` and `CallHistory` over a list. Calls of a turn are indexed with it, calls without a turn when a report reads them."""

    _reported: int = 0
    """Records that existed when a report last read those without a turn."""

    def recorded(self, key: TurnKey, revision: int) -> Iterator[CallRecord]:
        yield from MemoryCallLog.of_turn(self, key, revision)

    def of_turn(self, key: TurnKey, revision: int) -> tuple[CallRecord, ...]:
        self.index_turns([(key, revision)])
        return tuple(_by_time(self.recorded(key, revision)))

    def newest(self, recipe: str, *, version: str = "", layer: str = "", limit: int) -> Iterator[CallRecord]:
        found = [record for record in self.in_index() if record.recipe == recipe and version in ("", record.recipe_version)]
        found = [record for record in found if layer in ("", record.grouping_layer)]
        yield from reversed(found[-limit:] if limit else [])

    def between(self, begin: str, end: str) -> Iterator[CallRecord]:
        self._reported = len(self.records)
        yield from (record for record in self.in_index() if begin <= record.timestamp < end)

    def totals(self, key: TurnKey, revision: int) -> CallTotals:
        return _totals(self.of_turn(key, revision))

    def sums(self, by: SumBy, *, user: UserId | None, since: str) -> tuple[tuple[str, CallTotals], ...]:
        self._reported = len(self.records)
        groups: defaultdict[str, list[CallRecord]] = defaultdict(list)
        for record in self.in_index():
            if user in (None, record.user_id) and record.timestamp >= since:
                groups[_SUMMED_BY[by](record)].append(record)
        return tuple((name, _totals(groups[name])) for name in sorted(groups))

    def in_index(self) -> list[CallRecord]:
        """The calls that were indexed, oldest first."""
        calls = {call.call_id: call for key, revision in self.indexed for call in self.recorded(key, revision)}
        calls |= {record.call_id: record for record in self.records[: self._reported] if not record.turn_id}
        return _by_time(calls.values())


@dataclass
class MemoryCallCounts:
    """`CallCounts` over the indexed calls of a history."""

    history: MemoryCallHistory

    @property
    def file(self) -> MemoryIndexFile:
        return MemoryIndexFile(written=bool(self.history.in_index()))

    def calls_by_model(self) -> Mapping[tuple[str, str], int]:
        counts: defaultdict[tuple[str, str], int] = defaultdict(int)
        for record in self.history.in_index():
            counts[record.model_layer.value, record.model] += record.success
        return {answered_by: count for answered_by, count in counts.items() if count}

    def compressions(self) -> CompressionTotals:
        calls = self.history.in_index()
        done = [record for record in calls if "no_fact_changed" in record.gates]
        return CompressionTotals(
            invocations=len(done),
            halted=sum(not record.success for record in done),
            tokens_saved=sum(record.compression_savings for record in done),
            max_tokens_saved=max((record.compression_savings for record in done), default=0),
            latency_ms=sum(record.latency_ms for record in done),
            max_latency_ms=max((record.latency_ms for record in done), default=0.0),
            overflow_warnings=sum(record.gates == {"within_budget": False} for record in calls),
        )


def _by_time(records: Iterable[CallRecord]) -> list[CallRecord]:
    return sorted(records, key=lambda record: (record.timestamp, record.call_id))


def _totals(records: Collection[CallRecord]) -> CallTotals:
    counted = {record.call_id: record.spent.prompt + record.spent.output > 0 for record in records}
    return CallTotals(
        calls=len(records),
        failed=sum(not record.success for record in records),
        prompt_tokens=sum(record.tokens.prompt for record in records),
        input_tokens=sum(record.tokens.input for record in records),
        output_tokens=sum(record.spent.output if counted[record.call_id] else record.tokens.output for record in records),
        total_tokens=sum(record.tokens.total for record in records),
        retries=sum(record.retries for record in records),
        latency_ms=sum(record.latency_ms for record in records),
        used_tokens=sum(record.used_tokens for record in records),
        cached_tokens=sum(record.spent.cached if counted[record.call_id] else record.tokens.cached for record in records),
        queue_ms=sum(record.queue_ms for record in records),
        cost=sum(record.cost for record in records),
    )


@dataclass
class MemoryExpiringVault(MemoryVault):
    """`ExpiringVault` over dictionaries."""

    clock: Clock = utc_now
    stored_at: dict[str, datetime] = field(default_factory=dict[str, datetime])
    swept_at: datetime | None = None

    def keep(self, user: str, kind: str, text: str) -> str:
        return self._dated(super().keep(user, kind, text))

    def keep_image(self, user: str, data: bytes) -> str:
        return self._dated(super().keep_image(user, data))

    def sweep_daily(self, now: datetime, *, days: int, spared: Callable[[], Collection[str]] = tuple) -> int | None:
        if self.swept_at and now - self.swept_at < timedelta(days=1):
            return None
        stays, self.swept_at = spared(), now
        expired = [ref for ref, at in self.stored_at.items() if at < now - timedelta(days=days) and ref not in stays]
        for ref in expired:
            del self.stored_at[ref]
            self.texts.pop(ref, None)
            self.images.pop(ref, None)
        return len(expired)

    def _dated(self, ref: str) -> str:
        self.stored_at[ref] = self.clock()
        return ref
