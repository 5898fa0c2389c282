"""Vectors of the messages of turns, in a DuckDB file beside the turn index: made after the answer, compared in a search.

A vector belongs to one user's message and one model; the EmbeddingModel port makes it. No error here fails a turn or a search: it is
reported, and the search uses words alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite, sqrt
from time import monotonic

import duckdb

from pandora_dagster.contracts.ports.model_runtime import EmbeddingModel
from pandora_dagster.contracts.turns import TurnRow
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.errors import BadAnswerError, DamagedIndexError, ModelError, PandoraError, StoreError
from pandora_dagster.retrieval.messages.document_numbers import PLACE_BITS, document_number, turn_number
from pandora_dagster.stores.disk.column_table import ColumnTable
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile, Schema, batches

_VECTORS = ColumnTable("vectors", {"user_id": "VARCHAR", "doc": "BIGINT", "digest": "VARCHAR", "vector": "FLOAT[]"})
VECTOR_SCHEMA = Schema(1, ("CREATE TABLE model (name VARCHAR)", _VECTORS.creation))
LONGEST = 2_000
"""Characters that are embedded at once; models of this kind read a few hundred tokens. A longer message has several vectors."""
QUERY_S, BATCH_S = 3.0, 60.0
"""Seconds that a search waits for the query's vector, and that one batch of messages may take."""
_TURNS = 100
"""Turns that are stored at once."""
_TEXTS = 200
"""Texts that are embedded at once."""
_PAUSE_S = 60.0
"""After a failure nothing is asked of the model for so long: a search does not wait for a server again and again."""
_LIKE = "SELECT doc, max(list_inner_product(vector, ?::FLOAT[])) FROM vectors WHERE user_id = ? GROUP BY doc"
_GIVEN = "(SELECT unnest(?::VARCHAR[]) AS user_id, unnest(?::BIGINT[]) AS doc)"
_STORED = f"SELECT user_id, doc, digest, vector FROM vectors SEMI JOIN {_GIVEN} USING (user_id, doc)"  # noqa: S608 - constants
_DROP_TURNS = f"DELETE FROM vectors WHERE (user_id, doc >> {PLACE_BITS} << {PLACE_BITS}) IN {_GIVEN}"  # noqa: S608
Row = tuple[str, int, str, list[float]]
"""User, the user's own document, digest of the text, vector of length 1."""


@dataclass(frozen=True, slots=True)
class _MessageText:
    """One message, or a part of a long one, to embed: its user, its place, its text without credentials."""

    user: str
    doc: int
    text: str

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()[:32]

    @property
    def key(self) -> tuple[str, int, str]:
        return self.user, self.doc, self.digest


class TurnVectors:
    """The VectorIndex port, and similarities for a search. `report` receives one sentence per error, each sentence once."""

    def __init__(
        self, file: DuckDBFile, embeds: EmbeddingModel, *, report: Callable[[str], None], timer: Callable[[], float] = monotonic
    ) -> None:
        self.file = file
        self._embeds = embeds
        self._report = report
        self._timer = timer
        self._reported: set[str] = set()
        self._quiet_until = float("-inf")

    @property
    def name(self) -> str:
        """The model whose vectors these are."""
        return self._embeds.name

    def put(self, rows: Sequence[TurnRow]) -> None:
        """Embed the messages of these turns, in the place of older ones. What cannot be embedded now is embedded by the next rebuild."""
        try:
            for batch in batches(rows, _TURNS):
                found = self._rows(batch, self._stored(batch))
                with self.file.writing() as db:
                    self._same_model(db)
                    db.execute(_DROP_TURNS, [[row.user_id for row in batch], [document_number(row.number) for row in batch]])
                    _insert(db, found, self.name)
        except PandoraError as error:
            self._report_once(error)

    def similarities(self, user: str, *wordings: str) -> Mapping[int, float]:
        """The user's own document -> cosine of its vector most like the query's, -1 to 1; {} where there is none.

        The vector of a query in several wordings is the mean direction of their vectors.
        """
        try:
            texts = list(dict.fromkeys(part for wording in wordings if wording.strip() for part in _readable_parts(wording)))
            if not texts or not self._any_of(user):
                return {}
            query = _unit([sum(values) for values in zip(*self._embedded(texts, QUERY_S), strict=True)])
            if not query:
                return {}
            with self.file.reading() as db:
                return dict(db.execute(_LIKE, [query, user]).fetchall())
        except PandoraError as error:
            self._report_once(error)
            return {}

    def rebuild(self, rows: Iterable[TurnRow]) -> int:
        """Make the file again beside the old one; what has the same text and model is taken over. Returns how many vectors there are.

        Messages that cannot be embedded have no vector. Raises StoreError.
        """

        def fill(fresh: DuckDBFile) -> int:
            count = 0
            for batch in batches(rows, _TURNS):
                try:
                    stored = self._stored(batch)
                except StoreError:  # another model's, or damaged: nothing to take over
                    stored = {}
                found = self._rows(batch, stored)
                with fresh.writing() as db:
                    _insert(db, found, self.name)
                count += len(found)
            return count

        return self.file.rebuild(fill)[0]

    def check(self) -> int:
        """The length of the vector that the model makes of one word; raises ModelError."""
        return len(_checked(self._embeds.embed(["search"], timeout_s=BATCH_S), 1, self.name)[0])

    def check_stored_model(self) -> None:
        """Raises DamagedIndexError where the kept vectors are another model's."""
        if self.file.path.exists():
            with self.file.reading() as db:
                self._same_model(db)

    def verify(self, rows: Iterable[TurnRow]) -> tuple[str, ...]:
        """Every turn whose messages and vectors differ, each as one sentence; empty where they agree. Raises StoreError."""
        kept: dict[tuple[str, int], set[tuple[int, str]]] = {}
        if self.file.path.exists():
            with self.file.reading() as db:
                self._same_model(db)
                for user, doc, digest in db.execute("SELECT user_id, doc, digest FROM vectors").fetchall():
                    kept.setdefault((user, turn_number(doc)), set()).add((doc, digest))
        faults: list[str] = []
        for row in rows:
            wanted = {(message.doc, message.digest) for message in _message_texts(row)}
            found = kept.pop((row.user_id, row.number), set[tuple[int, str]]())
            if wanted != found:
                fault = f"{len(found)} vectors of messages, {len(wanted & found)} of them of what is there: expected {len(wanted)}"
                faults.append(f"{row.user_id}:{row.turn_id}: {fault}")
        return (*faults, *(f"{user}:turn_{number:06d}: vectors of messages, but no readable turn: expected none" for user, number in kept))

    def _rows(self, batch: Sequence[TurnRow], stored: Mapping[tuple[str, int, str], list[float]]) -> list[Row]:
        """The rows of all messages of these turns, those that are stored as they are; without the others where the model fails."""
        messages = [message for row in batch for message in _message_texts(row)]
        kept = [(m.user, m.doc, m.digest, stored[m.key]) for m in messages if m.key in stored]
        new = [m for m in messages if m.key not in stored]
        made = [
            (m, v) for part in batches(new, _TEXTS) for m, v in zip(part, self._embedded([m.text for m in part], BATCH_S), strict=False)
        ]
        return [*kept, *((m.user, m.doc, m.digest, vector) for m, vector in made)]

    def _embedded(self, texts: Sequence[str], timeout_s: float) -> list[list[float]]:
        """One vector per text; none where the model fails, which is reported, or failed a moment ago."""
        if not texts or self._timer() < self._quiet_until:
            return []
        try:
            return _checked(self._embeds.embed(texts, timeout_s=timeout_s), len(texts), self.name)
        except ModelError as error:
            self._quiet_until = self._timer() + _PAUSE_S
            self._report_once(error)
            return []

    def _stored(self, batch: Sequence[TurnRow]) -> dict[tuple[str, int, str], list[float]]:
        if not self.file.path.exists():
            return {}
        messages = [message for row in batch for message in _message_texts(row)]
        with self.file.reading() as db:
            self._same_model(db)
            found = db.execute(_STORED, [[m.user for m in messages], [m.doc for m in messages]]).fetchall()
        return {(user, doc, digest): vector for user, doc, digest, vector in found}

    def _any_of(self, user: str) -> bool:
        if not self.file.path.exists():
            return False
        with self.file.reading() as db:
            self._same_model(db)
            return db.execute("SELECT 1 FROM vectors WHERE user_id = ? LIMIT 1", [user]).fetchone() is not None

    def _same_model(self, db: duckdb.DuckDBPyConnection) -> None:
        found = db.execute("SELECT name FROM model").fetchone()
        if found and found[0] != self.name:
            hint = "run `pandora index rebuild`: it makes the vectors again"
            raise DamagedIndexError(f"{self.file.path}: vectors of {found[0]}, expected {self.name}", hint=hint)

    def _report_once(self, error: PandoraError) -> None:
        sentence = f"search without vectors: {error.with_hint}"
        if sentence not in self._reported:
            self._reported.add(sentence)
            self._report(sentence)


def _insert(db: duckdb.DuckDBPyConnection, rows: Sequence[Row], model: str) -> None:
    if db.execute("SELECT 1 FROM model").fetchone() is None:
        db.execute("INSERT INTO model VALUES (?)", [model])
    _VECTORS.insert(db, rows)


def _message_texts(row: TurnRow) -> Iterator[_MessageText]:
    """The messages of a turn that have text, long ones in parts."""
    for place, message in enumerate(row.messages, 1):
        for part in dict.fromkeys(_readable_parts(message.text, message.name)) if message.text.strip() else ():
            yield _MessageText(row.user_id, document_number(row.number, place), part)


def _readable_parts(text: str, name: str = "") -> Iterator[str]:
    """What a model is given of a text: no credential, and at once no more than it reads: whole units, each part under the name."""
    head = f"{name}: " if name else ""
    whole = redact(head + text).encode(errors="replace").decode()
    if len(whole) <= LONGEST:
        yield whole
        return
    room, held = max(LONGEST - len(head), LONGEST // 2), ""
    for unit in read_units(whole.removeprefix(head)):
        for start in range(0, len(unit.text), room):  # a unit of more is a block of code or a blob without an end
            part = unit.text[start : start + room]
            if held and len(held) + 1 + len(part) > room:
                yield head + held
                held = ""
            held = f"{held}\n{part}" if held else part
    if held:
        yield head + held


def _checked(vectors: Sequence[Sequence[float]], count: int, model: str) -> list[list[float]]:
    """Vectors scaled to length 1; raises BadAnswerError for others than `count` of one length, or for one that is no direction."""
    lengths = {len(vector) for vector in vectors}
    if len(vectors) != count or len(lengths) != 1 or 0 in lengths:
        raise BadAnswerError(f"{model}: {len(vectors)} vectors of lengths {sorted(lengths)[:5]}: expected {count} of one length")
    scaled = [_unit(vector) for vector in vectors]
    if not all(scaled):
        raise BadAnswerError(f"{model}: a vector that is 0 or not finite: expected a direction")
    return scaled


def _unit(vector: Sequence[float]) -> list[float]:
    length = sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length and isfinite(length) else []
