"""Stores of records in memory: calls, packs and answers, interventions, lineage."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count

from pandora_dagster.compression.summarization_rate import LimiterState
from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId, turn_number
from pandora_dagster.contracts.interventions import Intervention, ResolutionKind
from pandora_dagster.contracts.lineage import LineageEdge
from pandora_dagster.contracts.model_calls import CallRecord, TurnUsage
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.errors import DocumentError, InputError
from pandora_dagster.stores.turns.commits import iso
from tests.fakes.turn_store import utc_now


@dataclass
class MemoryCallLog:
    """`CallLog` over a list. `indexed` holds the revisions of turns that were taken into the index, in order."""

    records: list[CallRecord] = field(default_factory=list)
    indexed: list[tuple[TurnKey, int]] = field(default_factory=list)
    started: dict[str, CallRecord] = field(default_factory=dict)

    def begin(self, record: CallRecord) -> None:
        self.started[record.call_id] = record

    def unfinished(self, user: UserId | None = None) -> tuple[CallRecord, ...]:
        return tuple(r for r in self.started.values() if user in (None, r.user_id))

    def append(self, record: CallRecord) -> None:
        self.started.pop(record.call_id, None)
        self.records.append(record.model_copy(update={"error": redact(record.error)}))

    def usage(self, key: TurnKey, revision: int, *, phase: str) -> TurnUsage:
        records = self.of_turn(key, revision)
        return TurnUsage(
            sum(record.used_tokens for record in records),
            sum(record.cost for record in records),
            sum(record.used_tokens for record in records if record.phase != phase),
            sum(record.latency_ms for record in records),
            len(records),
        )

    def index_turns(self, turns: Sequence[tuple[TurnKey, int]]) -> bool:
        self.indexed.extend(turns)
        return True

    def of_turn(self, key: TurnKey, revision: int) -> tuple[CallRecord, ...]:
        """The calls of one revision of a turn, oldest first."""
        return tuple(r for r in self.records if r.turn_id and (_key(r), r.revision) == (key, revision))


def _key(record: CallRecord) -> TurnKey:
    return TurnKey(UserId(record.user_id), turn_number(record.turn_id))


@dataclass
class MemoryVault:
    """`Vault` over a dictionary."""

    texts: dict[str, str] = field(default_factory=dict)
    images: dict[str, bytes] = field(default_factory=dict)

    def keep(self, user: str, kind: str, text: str) -> str:
        kept = redact(text)
        ref = f"{user}/{kind}/{sha256(kept.encode(errors='replace')).hexdigest()}"
        self.texts[ref] = kept
        return ref

    def read(self, ref: str) -> str:
        if ref not in self.texts:
            raise DocumentError(f"{ref}: missing: expected what was stored there", missing=True)
        return self.texts[ref]

    def keep_image(self, user: str, data: bytes) -> str:
        ref = f"{user}/image/{sha256(data).hexdigest()}"
        self.images[ref] = data
        return ref

    def read_image(self, ref: str, /) -> bytes:
        if ref not in self.images:
            raise DocumentError(f"{ref}: missing: expected what was stored there", missing=True)
        return self.images[ref]


@dataclass
class MemoryInterventions:
    """`Interventions` over a dictionary."""

    clock: Clock = utc_now
    stored: dict[str, Intervention] = field(default_factory=dict)
    _numbers: count = field(default_factory=count)

    def open(self, type: InterventionType, message: str, **fields: str) -> Intervention:
        now = self.clock()
        number = f"int_{now:%Y%m%d_%H%M%S}_{next(self._numbers):04x}"
        new = Intervention.model_validate({**fields, "id": number, "type": type, "message": redact(message), "created_at": iso(now)})
        self.stored[number] = new
        return new

    def show(self, intervention_id: str) -> Intervention:
        if intervention_id not in self.stored:
            raise InputError(f"intervention {intervention_id[:60]}: not stored: expected one that exists")
        return self.stored[intervention_id]

    def list(self, *, state: str | None = None, user: str | None = None) -> tuple[Intervention, ...]:
        found = (self.stored[number] for number in sorted(self.stored))
        return tuple(i for i in found if state in (None, i.state) and user in (None, i.user_id))

    def resolve(self, intervention_id: str, resolution: str, *, how: ResolutionKind = "noted") -> Intervention:
        known = self.show(intervention_id)
        if known.resolution_notice and known.how != "went_on":
            raise InputError(f"{known.resolution_notice}: expected an open one")
        text = "; ".join(part for part in (known.resolution, redact(resolution)) if part)
        fields = {"state": "resolved", "resolution": text, "how": how, "resolved_at": iso(self.clock())}
        self.stored[intervention_id] = known.model_copy(update=fields)
        return self.stored[intervention_id]


@dataclass
class MemoryLineageWriter:
    """`LineageWriter` that records what it was given: the manifests of turns, and the rows of levels by their document."""

    turns: list[Manifest] = field(default_factory=list)
    rows: defaultdict[str, tuple[LineageEdge, ...]] = field(default_factory=lambda: defaultdict(tuple))

    def put(self, turns: Sequence[tuple[Manifest, Turn]]) -> bool:
        self.turns.extend(manifest for manifest, _ in turns)
        return True

    def citing(self, key: TurnKey) -> tuple[TurnKey, ...]:
        return ()

    def put_rows(self, document: str, edges: Sequence[LineageEdge]) -> None:
        self.rows[document] = tuple(edges)


@dataclass
class MemoryRateLimitStates:
    """`RateLimitStates` over a dictionary."""

    stored: dict[tuple[UserId, SessionId], LimiterState] = field(default_factory=dict)

    def update(self, user: UserId, session: SessionId, change: Callable[[LimiterState | None], LimiterState], /) -> LimiterState:
        self.stored[user, session] = change(self.stored.get((user, session)))
        return self.stored[user, session]
