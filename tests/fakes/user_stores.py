"""What is stored about a user, in memory: memory entries, facts, summaries of conversations, research and visits, notes."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import TypeVar

from pandora_dagster.contracts.ids import SessionId, UserId
from pandora_dagster.contracts.ports.user_storage import LedgerChange
from pandora_dagster.contracts.user.conversations import ConversationSummary, SessionRecord
from pandora_dagster.contracts.user.sources import (
    Note,
    NoteListing,
    NoteMatch,
    Research,
    ResearchRow,
    Visit,
    VisitRow,
    research_logical_id,
    visit_logical_id,
)
from pandora_dagster.contracts.user.user_memory import (
    EarlierValue,
    FactChange,
    FactLedger,
    MemoryEntry,
    MemoryListing,
    Profile,
    SessionFacts,
)
from pandora_dagster.errors import DocumentError
from pandora_dagster.language.terms import TermReader
from pandora_dagster.stores.disk.files import sha
from pandora_dagster.stores.user.note_files import read_note
from pandora_dagster.stores.user.source_files import read_record, render_record

L = TypeVar("L", bound=FactLedger)
_KINDS = ("preference", "fact")


@dataclass
class MemoryEntryStore:
    """`MemoryStore` over a dictionary."""

    stored: dict[tuple[UserId, str], dict[str, MemoryEntry]] = field(default_factory=dict)

    def entries(self, user: UserId) -> tuple[MemoryEntry, ...]:
        return tuple(entry for kind in _KINDS for entry in self.stored.get((user, kind), {}).values())

    def listing(self, user: UserId) -> MemoryListing:
        return MemoryListing(self.entries(user))

    def put(self, user: UserId, entry: MemoryEntry, *, instead_of: str = "") -> None:
        if entry.kind not in _KINDS:
            raise DocumentError(f"memory entry {entry.key[:60]!r}: kind {entry.kind!r}: expected preference or fact")
        try:
            new = replace(entry, value=json.loads(json.dumps(entry.value, allow_nan=False)), earlier=())
        except (TypeError, ValueError) as error:
            raise DocumentError(f"{entry.key}: {error}: expected a value that JSON can hold") from error
        page = self.stored.setdefault((user, entry.kind), {})
        replaced = [page[key] for key in dict.fromkeys((instead_of, entry.key)) if key in page]
        page.pop(instead_of, None)
        page[entry.key] = _newest_first(new, replaced) if replaced else new

    def forget(self, user: UserId, key: str) -> bool:
        return any([self.stored.get((user, kind), {}).pop(key, None) is not None for kind in _KINDS])


def _newest_first(new: MemoryEntry, known: list[MemoryEntry]) -> MemoryEntry:
    """The value with the newest date, of equal dates the new one; the others follow in `earlier`."""
    kept = [(entry, value) for entry in known for value in (_value(entry), *entry.earlier) if value.value != new.value]
    others = [replace(value, key=value.key or ("" if entry.key == new.key else entry.key)) for entry, value in kept]
    first, *rest = sorted([_value(new), *others], key=lambda value: value.last_updated, reverse=True)
    until = next((entry.until for entry in (new, *known) if _value(entry) == replace(first, key="")), "")
    return MemoryEntry(new.key, *astuple(first)[:4], new.kind, tuple(rest[:10]), until)


def _value(entry: MemoryEntry) -> EarlierValue:
    return EarlierValue(entry.value, entry.confidence, entry.source_turn, entry.last_updated)


@dataclass
class MemoryFactStore:
    """`FactStore` over dictionaries; `audit` holds the changes of each ledger."""

    sessions: dict[tuple[UserId, SessionId], SessionFacts] = field(default_factory=dict)
    profiles: dict[UserId, Profile] = field(default_factory=dict)
    audit: list[FactChange] = field(default_factory=list)

    def session(self, user: UserId, session: SessionId) -> SessionFacts:
        return self.sessions.get((user, session)) or SessionFacts(user_id=user, session_id=session)

    def change_session(self, user: UserId, session: SessionId, change: LedgerChange[SessionFacts]) -> SessionFacts:
        self.sessions[user, session] = self._changed(self.session(user, session), change)
        return self.sessions[user, session]

    def profile(self, user: UserId) -> Profile | None:
        return self.profiles.get(user)

    def change_profile(self, user: UserId, change: LedgerChange[Profile]) -> Profile | None:
        if user in self.profiles:
            self.profiles[user] = self._changed(self.profiles[user], change)
        return self.profiles.get(user)

    def consent(self, user: UserId, *, at: str, after_turn: int) -> Profile:
        return self.profiles.setdefault(user, Profile(user_id=user, consented_at=at, after_turn=after_turn))

    def erase_profile(self, user: UserId, *, after_turn: int) -> int:
        if (known := self.profiles.get(user)) is None:
            return 0
        self.profiles[user] = Profile(user_id=user, consented_at=known.consented_at, after_turn=after_turn, next_id=known.next_id)
        return len(known.facts)

    def withdraw(self, user: UserId) -> int:
        found = self.profiles.pop(user, None)
        return len(found.facts) if found else 0

    def erase_sessions(self, user: UserId) -> int:
        return sum(len(self.sessions.pop(place).facts) for place in [place for place in self.sessions if place[0] == user])

    def _changed(self, ledger: L, change: LedgerChange[L]) -> L:
        after, audit = change(ledger)
        if after == ledger:
            return ledger
        self.audit.extend(audit)
        return type(after).model_validate(after.model_dump())


@dataclass
class MemoryConversationSummaries:
    """`ConversationSummaries` over a dictionary."""

    stored: dict[tuple[str, str], ConversationSummary] = field(default_factory=dict)

    def find(self, user: UserId, session: SessionId) -> ConversationSummary | None:
        return self.stored.get((user, session))

    def save(self, summary: ConversationSummary) -> ConversationSummary:
        place = summary.user_id, summary.session_id
        known = self.stored.get(place)
        if known is None or known.last_turn <= summary.last_turn:
            self.stored[place] = summary
        return self.stored[place]


@dataclass
class MemorySessions:
    """`Sessions` over a dictionary."""

    stored: dict[tuple[str, str], SessionRecord] = field(default_factory=dict)

    def find(self, user: UserId, session: SessionId) -> SessionRecord | None:
        return self.stored.get((user, session))

    def begin(self, record: SessionRecord) -> SessionRecord:
        return self.stored.setdefault((record.user_id, record.session_id), record)

    def save(self, record: SessionRecord) -> None:
        self.stored[record.user_id, record.session_id] = record

    def records(self, user: UserId | None = None, *, on_fault: object = None) -> Iterable[SessionRecord]:
        found = (record for record in self.stored.values() if user in (None, record.user_id))
        return sorted(found, key=lambda record: (record.user_id, record.first_turn))


@dataclass
class MemorySourceStore:
    """`SourceStore` over dictionaries."""

    researches: dict[tuple[UserId, str, str], Research] = field(default_factory=dict)
    visits: dict[tuple[UserId, str], Visit] = field(default_factory=dict)

    def put(self, user: UserId, record: Research | Visit) -> None:
        if isinstance(record, Research):
            self.researches[user, record.topic, record.cache_key] = _read_back(record)
        else:
            self.visits[user, record.visit_id] = _read_back(record)

    def research_rows(self, user: UserId) -> tuple[ResearchRow, ...]:
        rows = [_research_row(user, research) for (owner, _, _), research in self.researches.items() if owner == user]
        return tuple(sorted(sorted(rows, key=lambda r: r.cache_key), key=lambda r: r.created_at, reverse=True))

    def visit_rows(self, user: UserId) -> tuple[VisitRow, ...]:
        rows = [_visit_row(user, visit) for (owner, _), visit in self.visits.items() if owner == user]
        return tuple(sorted(sorted(rows, key=lambda r: r.visit_id), key=lambda r: r.visited_at, reverse=True))

    def research(self, user: UserId, topic: str, *, cache_key: str = "") -> Research:
        row = next((row for row in self.research_rows(user) if row.topic == topic and cache_key in ("", row.cache_key)), None)
        if row is None:
            raise DocumentError(
                f"{research_logical_id(topic)}: not among the cached research of {user}: expected a stored topic", missing=True
            )
        return self.researches[user, topic, row.cache_key]

    def visit(self, user: UserId, visit_id: str) -> Visit:
        if (user, visit_id) not in self.visits:
            where = visit_logical_id(visit_id)
            raise DocumentError(f"{where}: not among the visited pages of {user}: expected a stored visit", missing=True)
        return self.visits[user, visit_id]

    def path(self, user: UserId, logical_id: str) -> str | None:
        known = {research_logical_id(row.topic) for row in self.research_rows(user)} | {
            visit_logical_id(r.visit_id) for r in self.visit_rows(user)
        }
        return f"memory/{user}/{logical_id}" if logical_id in known else None


S = TypeVar("S", Research, Visit)


def _read_back(record: S) -> S:
    return read_record(render_record(record), type(record), where=record.logical_id)


def _research_row(user: UserId, research: Research) -> ResearchRow:
    r, turn = research, research.provenance.source_turn if research.provenance else None
    file = _file(f"{r.topic}/{r.cache_key}")
    digest = sha(render_record(r))
    return ResearchRow(
        user, r.topic, r.cache_key, r.created_at, r.expires_at, r.quality_score, r.summary, r.webpage_cache, turn, file, digest
    )


def _visit_row(user: UserId, visit: Visit) -> VisitRow:
    title, names = str(visit.extracted_data.get("title") or "")[:200], tuple(str(name)[:60] for name in visit.extracted_data)[:20]
    turn = visit.provenance.source_turn if visit.provenance else None
    file, digest = _file(visit.visit_id), sha(render_record(visit))
    return VisitRow(user, visit.visit_id, visit.url, visit.visited_at, visit.page_type, title, names, turn, file, digest)


def _file(name: str) -> str:
    return f"{sha(name)[:24]}.json"


@dataclass
class MemoryNoteStore:
    """`NoteStore` over texts by user and name. A query leads to a note that holds over half of its terms."""

    texts: dict[tuple[UserId, str], str] = field(default_factory=dict)
    reader: TermReader = field(default_factory=TermReader)

    def listing(self, user: UserId, query: str = "") -> NoteListing:
        notes: list[Note] = []
        notices: list[str] = []
        for name in sorted(name for owner, name in self.texts if owner == user):
            try:
                notes.append(self.load(user, name))
            except DocumentError as error:
                notices.append(f"note left out: {error}")
        return NoteListing(tuple(note.header for note in notes), tuple(notices), self._matches(notes, query))

    def load(self, user: UserId, name: str) -> Note:
        if (user, name) not in self.texts:
            raise DocumentError(f"note {name[:160]!r}: not stored: expected a note that was offered", missing=True)
        return read_note(self.texts[user, name], name=name, where=name)

    def path(self, user: UserId, logical_id: str) -> str | None:
        known = logical_id.startswith("notes/") and (user, logical_id.removeprefix("notes/")) in self.texts
        return f"memory/{user}/{logical_id}" if known else None

    def _matches(self, notes: Sequence[Note], query: str) -> tuple[NoteMatch, ...]:
        wanted = set(self.reader.counts(query))
        shares = {note.header.name: _share(wanted, set(self.reader.counts(f"{note.header.title} {note.text}"))) for note in notes}
        found = sorted((name for name, share in shares.items() if share > 0.5), key=lambda name: (-shares[name], name))
        texts = {note.header.name: note.text for note in notes}
        return tuple(NoteMatch(name, shares[name] / shares[found[0]], texts[name]) for name in found)


def _share(wanted: set[str], there: set[str]) -> float:
    return len(wanted & there) / len(wanted) if wanted else 0.0
