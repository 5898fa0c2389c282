"""The index of notes, one DuckDB file: their headers, and an inverted index of their passages.

A note has a row in `notes`. Its header (place 0) and its passages (places from 1) each have a row in `passages`, and one row in `terms` for
each term, with its count. A query is scored by BM25; a note is found by its header, or by its best passage. The index is derived: a note
that differs from its row is read again, and a damaged file is replaced.
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
_PLACE_COLUMNS = {"user_id": "VARCHAR", "name": "VARCHAR", "place": "INTEGER"}
_PASSAGES = ColumnTable("passages", {**_PLACE_COLUMNS, **dict.fromkeys(("start", "stop", "length"), "INTEGER")})
_TERMS = ColumnTable("terms", {**_PLACE_COLUMNS, "term": "VARCHAR", "count": "INTEGER"})
NOTE_SCHEMA = Schema(2, (_NOTES.creation, _PASSAGES.creation, _TERMS.creation))
_HEADER_JSON = TypeAdapter(NoteHeader)
_MIN_QUERY_SHARE = 0.5
"""A note is found by a passage that has over this share of the query's terms, weighted by rarity: one word of several is not enough."""
_INSERT_TERMS = """
    INSERT INTO terms SELECT ?, name, place, split_part(pair, ' ', 1), split_part(pair, ' ', 2)::INTEGER FROM (
        SELECT name, place, unnest(string_split(pairs, chr(10))) AS pair FROM (
            SELECT unnest(?::VARCHAR[]) AS name, unnest(?::INTEGER[]) AS place, unnest(?::VARCHAR[]) AS pairs))
    WHERE pair <> ''
"""
_SELECT_MATCHES = """
    SELECT t.term, t.name, t.place, t.count, p.length, p.start, p.stop
    FROM terms t JOIN passages p ON p.user_id = t.user_id AND p.name = t.name AND p.place = t.place
    WHERE t.user_id = ? AND t.term IN (SELECT unnest(?::VARCHAR[])) ORDER BY t.name, t.place, t.term
"""
_SELECT_SIZES = "SELECT count(*), avg(length) FROM passages WHERE user_id = ? AND place > 0"


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note as it was read: `mark` has the time and the size of its file; `fault` says why there is no `note`."""

    name: str
    mark: str
    note: Note | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class IndexedNote:
    """A note as the index has it, without its text; `fault` says why there is no `header`."""

    mark: str
    header: NoteHeader | None
    fault: str


@dataclass(frozen=True, slots=True)
class NotePassage:
    """A note that matches a query: its score, 1 for the best, and the span of its best passage, None where only the header matches."""

    name: str
    score: float
    span: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class DuckNoteIndex:
    """The notes of all users. Each method opens and closes the file; raises StoreError."""

    file: DuckDBFile
    reader: TermReader

    def indexed_notes(self, user: str) -> dict[str, IndexedNote]:
        """Every note of a user by name; none where there is no index. A damaged index is deleted."""
        if not self.file.path.exists():
            return {}
        try:
            with self.file.reading() as db:
                rows = db.execute("SELECT name, mark, header, fault FROM notes WHERE user_id = ?", [user]).fetchall()
        except DamagedIndexError:
            with self.file.locked():
                self.file.discard()
            return {}
        return {name: IndexedNote(mark, _header(header), fault) for name, mark, header, fault in rows}

    def put(self, user: str, rows: Sequence[NoteRow], deleted: Iterable[str] = ()) -> None:
        """Replace the rows of these notes and delete those of the notes `deleted`, in one transaction."""
        replaced_names = [*(row.name for row in rows), *deleted]
        headers = [_HEADER_JSON.dump_json(row.note.header).decode() if row.note else "" for row in rows]
        parts = [(row.name, *part) for row in rows if row.note for part in self._parts(row.note)]
        with self.file.writing() as db:
            for table in (_NOTES, _PASSAGES, _TERMS):
                table.delete(db, user_id=[user] * len(replaced_names), name=replaced_names)
            _NOTES.insert(db, [(user, row.name, row.mark, header, row.fault) for row, header in zip(rows, headers, strict=True)])
            _PASSAGES.insert(db, [(user, *part[:-1]) for part in parts])
            if parts:
                db.execute(_INSERT_TERMS, [user, *([part[place] for part in parts] for place in (0, 1, -1))])

    def matching_notes(self, user: str, query: str) -> tuple[NotePassage, ...]:
        """The notes that match `query`, best first: by their header, or by a passage with enough of its terms."""
        terms = list(self.reader.counts(query))
        if not terms or not self.file.path.exists():
            return ()
        with self.file.reading() as db:
            passage_count, mean_length = db.execute(_SELECT_SIZES, [user]).fetchone() or (0, 0.0)
            rows = db.execute(_SELECT_MATCHES, [user, terms]).fetchall()
        return _rank_notes(terms, rows, int(passage_count or 0), float(mean_length or 1.0))

    def _parts(self, note: Note) -> Iterable[tuple[int, int, int, int, str]]:
        """Place, start, end, length and terms of the header (place 0) and of each passage."""
        head = note.header
        name = head.name.rpartition("/")[2].removesuffix(".md").replace("_", " ").replace("-", " ")
        yield 0, 0, 0, *self._term_counts(f"{name} {head.title} {' '.join(head.tags)}")
        for place, (start, stop) in enumerate(passages(note.text), 1):
            yield place, start, stop, *self._term_counts(note.text[start:stop])

    def _term_counts(self, text: str) -> tuple[int, str]:
        """The number of terms of a text, and its terms with their counts, one pair in a line."""
        counts = self.reader.counts(text)
        return counts.total(), "\n".join(f"{term} {count}" for term, count in counts.items())


def _rank_notes(
    terms: Sequence[str], rows: Sequence[tuple[str, str, int, int, int, int, int]], passage_count: int, mean_length: float
) -> tuple[NotePassage, ...]:
    """Notes by score, the best with 1. `rows`: the selected matches of the query's `terms`."""
    passages_with: dict[str, int] = defaultdict(int)
    for term, *_ in rows:
        passages_with[term] += 1
    rarity = {term: idf(passage_count, passages_with.get(term, 1)) for term in terms}
    total_rarity = sum(rarity.values()) or 1.0
    scores: dict[tuple[str, int], float] = defaultdict(float)
    shares: dict[tuple[str, int], float] = defaultdict(float)
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for term, name, place, frequency, length, start, stop in rows:
        length_norm = K1 * (1 - B + B * length / mean_length)
        scores[name, place] += rarity[term] * frequency * (K1 + 1) / (frequency + length_norm)
        shares[name, place] += rarity[term] / total_rarity
        spans[name, place] = start, stop
    best: dict[str, tuple[float, int]] = {}
    for (name, place), score in scores.items():
        if place and shares[name, place] > _MIN_QUERY_SHARE:
            best[name] = max(best.get(name, (0.0, 0)), (score, -place))
    totals = {
        name: scores.get((name, 0), 0.0) + best.get(name, (0.0, 0))[0] for name in {*best, *(name for name, place in scores if not place)}
    }
    highest = max(totals.values(), default=0.0)
    ranked_names = sorted((name for name in totals if totals[name] > 0), key=lambda name: (-totals[name], name))
    return tuple(NotePassage(name, totals[name] / highest, spans[name, -best[name][1]] if name in best else None) for name in ranked_names)


def _header(text: str) -> NoteHeader | None:
    return _HEADER_JSON.validate_json(text) if text else None
