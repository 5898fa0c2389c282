"""The index of notes, one DuckDB file: their headers, and the terms of their passages.

It can be rebuilt: a note that differs from its row is read again, and a damaged file is replaced.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from pandora_dagster.contracts.user.sources import Note, NoteHeader
from pandora_dagster.documents.passages import passages
from pandora_dagster.errors import DamagedIndexError
from pandora_dagster.language.bm25 import K1, B, idf
from pandora_dagster.language.terms import TermReader
from pandora_dagster.stores.disk.column_table import ColumnTable
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema

_NOTES = ColumnTable("notes", dict.fromkeys(("user_id", "name", "mark", "header", "fault"), "VARCHAR"))
_OF_NOTE = {"user_id": "VARCHAR", "name": "VARCHAR", "place": "INTEGER"}
_PASSAGES = ColumnTable("passages", {**_OF_NOTE, **dict.fromkeys(("start", "stop", "length"), "INTEGER")})
_TERMS = ColumnTable("terms", {**_OF_NOTE, "term": "VARCHAR", "count": "INTEGER"})
NOTE_SCHEMA = Schema(2, (_NOTES.creation, _PASSAGES.creation, _TERMS.creation))
_HEADER = TypeAdapter(NoteHeader)
_MOST = 0.5
"""A passage must hold over this share of the query, by rarity, so that its note is found by it: one word of several leads nowhere."""
_INSERT_TERMS = """
    INSERT INTO terms SELECT ?, name, place, split_part(pair, ' ', 1), split_part(pair, ' ', 2)::INTEGER FROM (
        SELECT name, place, unnest(string_split(bag, chr(10))) AS pair FROM (
            SELECT unnest(?::VARCHAR[]) AS name, unnest(?::INTEGER[]) AS place, unnest(?::VARCHAR[]) AS bag))
    WHERE pair <> ''
"""
_FOUND = """
    SELECT t.term, t.name, t.place, t.count, p.length, p.start, p.stop
    FROM terms t JOIN passages p ON p.user_id = t.user_id AND p.name = t.name AND p.place = t.place
    WHERE t.user_id = ? AND t.term IN (SELECT unnest(?::VARCHAR[])) ORDER BY t.name, t.place, t.term
"""
_SIZES = "SELECT count(*), avg(length) FROM passages WHERE user_id = ? AND place > 0"


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note as it was read: `mark` is its file's time and size, `fault` what is wrong with it where it is none."""

    name: str
    mark: str
    note: Note | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class IndexedNote:
    """A note as it is indexed."""

    mark: str
    header: NoteHeader | None
    fault: str


@dataclass(frozen=True, slots=True)
class NotePassage:
    """A note that matches a query: its score, 1 for the best, and the span of its best passage; None where only the header matches."""

    name: str
    score: float
    span: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class DuckNoteIndex:
    """Notes by user and name. Every method opens, works and closes; raises StoreError where the disk or a lock refuses."""

    file: DuckDBFile
    reader: TermReader

    def indexed_notes(self, user: str) -> dict[str, IndexedNote]:
        """Every note of a user by name; none where no index was made yet, or where it is damaged: then it is deleted."""
        if not self.file.path.exists():
            return {}
        try:
            with self.file.reading() as db:
                found = db.execute("SELECT name, mark, header, fault FROM notes WHERE user_id = ?", [user]).fetchall()
        except DamagedIndexError:
            with self.file.locked():
                self.file.discard()
            return {}
        return {name: IndexedNote(mark, _header(header), fault) for name, mark, header, fault in found}

    def put(self, user: str, rows: Sequence[NoteRow], gone: Iterable[str] = ()) -> None:
        """Replace the rows of these notes and remove those of the notes `gone`, in one transaction."""
        replaced = [*(row.name for row in rows), *gone]
        headers = [_HEADER.dump_json(row.note.header).decode() if row.note else "" for row in rows]
        parts = [(row.name, *part) for row in rows if row.note for part in self._parts(row.note)]
        with self.file.writing() as db:
            for table in (_NOTES, _PASSAGES, _TERMS):
                table.delete(db, user_id=[user] * len(replaced), name=replaced)
            _NOTES.insert(db, [(user, row.name, row.mark, header, row.fault) for row, header in zip(rows, headers, strict=True)])
            _PASSAGES.insert(db, [(user, *part[:-1]) for part in parts])
            if parts:
                db.execute(_INSERT_TERMS, [user, *([part[place] for part in parts] for place in (0, 1, -1))])

    def matching_notes(self, user: str, query: str) -> tuple[NotePassage, ...]:
        """The notes that match `query`, best first: by their header, or by a passage with enough of its terms."""
        asked = list(self.reader.counts(query))
        if not asked or not self.file.path.exists():
            return ()
        with self.file.reading() as db:
            count, mean = db.execute(_SIZES, [user]).fetchone() or (0, 0.0)
            rows = db.execute(_FOUND, [user, asked]).fetchall()
        return _ranked(asked, rows, int(count or 0), float(mean or 1.0))

    def _parts(self, note: Note) -> Iterable[tuple[int, int, int, int, str]]:
        """Place, span, length and terms of the header (place 0) and of each passage."""
        head = note.header
        name = head.name.rpartition("/")[2].removesuffix(".md").replace("_", " ").replace("-", " ")
        yield 0, 0, 0, *self._bag(f"{name} {head.title} {' '.join(head.tags)}")
        for place, (start, stop) in enumerate(passages(note.text), 1):
            yield place, start, stop, *self._bag(note.text[start:stop])

    def _bag(self, text: str) -> tuple[int, str]:
        counts = self.reader.counts(text)
        return counts.total(), "\n".join(f"{term} {count}" for term, count in counts.items())


def _ranked(
    asked: Sequence[str], rows: Sequence[tuple[str, str, int, int, int, int, int]], count: int, mean: float
) -> tuple[NotePassage, ...]:
    holding: dict[str, int] = defaultdict(int)
    for term, *_ in rows:
        holding[term] += 1
    rarity = {term: idf(count, holding.get(term, 1)) for term in asked}
    whole = sum(rarity.values()) or 1.0
    scores: dict[tuple[str, int], float] = defaultdict(float)
    shares: dict[tuple[str, int], float] = defaultdict(float)
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for term, name, place, times, length, start, stop in rows:
        norm = K1 * (1 - B + B * length / mean)
        scores[name, place] += rarity[term] * times * (K1 + 1) / (times + norm)
        shares[name, place] += rarity[term] / whole
        spans[name, place] = start, stop
    best: dict[str, tuple[float, int]] = {}
    for (name, place), score in scores.items():
        if place and shares[name, place] > _MOST:
            best[name] = max(best.get(name, (0.0, 0)), (score, -place))
    totals = {name: scores.get((name, 0), 0.0) + best.get(name, (0.0, 0))[0] for name in {*best, *(n for n, p in scores if not p)}}
    top = max(totals.values(), default=0.0)
    order = sorted((name for name in totals if totals[name] > 0), key=lambda name: (-totals[name], name))
    return tuple(NotePassage(name, totals[name] / top, spans[name, -best[name][1]] if name in best else None) for name in order)


def _header(text: str) -> NoteHeader | None:
    return _HEADER.validate_json(text) if text else None
