"""Embedding vectors of the messages of turns, in a DuckDB file beside the turn index: made after the answer, compared in a search.

A vector is of one message, or of a part of a long one; the EmbeddingModel port makes it, and a file holds the vectors of one model. No
error here fails a turn or a search: it is reported, and the search uses words alone.
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
MAX_TEXT_CHARACTERS = 2_000
"""Characters of one embedded text: embedding models read a few hundred tokens. A longer message has several vectors."""
QUERY_TIMEOUT_S, BATCH_TIMEOUT_S = 3.0, 60.0
"""Seconds that a search waits for the query's vector, and that one batch of messages may take."""
_BATCH_TURNS = 100
"""Turns whose vectors are stored in one transaction."""
_BATCH_TEXTS = 200
"""Texts of one request to the model."""
_FAILURE_PAUSE_S = 60.0
"""Time without requests after a failure, so that searches do not wait for the server again and again."""
_SELECT_SIMILARITIES = "SELECT doc, max(list_inner_product(vector, ?::FLOAT[])) FROM vectors WHERE user_id = ? GROUP BY doc"
_GIVEN_DOCS = "(SELECT unnest(?::VARCHAR[]) AS user_id, unnest(?::BIGINT[]) AS doc)"
_SELECT_STORED = f"SELECT user_id, doc, digest, vector FROM vectors SEMI JOIN {_GIVEN_DOCS} USING (user_id, doc)"  # noqa: S608 - constants
_DELETE_TURNS = f"DELETE FROM vectors WHERE (user_id, doc >> {PLACE_BITS} << {PLACE_BITS}) IN {_GIVEN_DOCS}"  # noqa: S608
VectorRow = tuple[str, int, str, list[float]]
"""User, the message's number among the user's (`document_numbers`), digest of the text, vector of length 1: a row of the table."""


@dataclass(frozen=True, slots=True)
class _MessageText:
    """A text to embed: one message, or a part of a long one, without credentials.

    `doc`: the message's number among the user's (`document_numbers`).
    """

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
        self, file: DuckDBFile, model: EmbeddingModel, *, report: Callable[[str], None], timer: Callable[[], float] = monotonic
    ) -> None:
        self.file = file
        self._model = model
        self._report = report
        self._timer = timer
        self._reported: set[str] = set()
        self._paused_until = float("-inf")

    @property
    def name(self) -> str:
        """The name of the model whose vectors these are."""
        return self._model.name

    def put(self, rows: Sequence[TurnRow]) -> None:
        """Embed the messages of these turns and replace their older vectors. The next rebuild embeds what cannot be embedded now."""
        try:
            for batch in batches(rows, _BATCH_TURNS):
                messages = [message for row in batch for message in _message_texts(row)]
                vector_rows = self._build_rows(messages, self._stored_vectors(messages))
                with self.file.writing() as db:
                    self._check_model(db)
                    db.execute(_DELETE_TURNS, [[row.user_id for row in batch], [document_number(row.number) for row in batch]])
                    _insert(db, vector_rows, self.name)
        except PandoraError as error:
            self._report_once(error)

    def similarities(self, user: str, *wordings: str) -> Mapping[int, float]:
        """The number of a message among the user's -> highest cosine of its vectors with the query's, -1 to 1; {} where there are none.

        The vector of a query in several wordings is the mean direction of their vectors.
        """
        try:
            texts = list(dict.fromkeys(part for wording in wordings if wording.strip() for part in _readable_parts(wording)))
            if not texts or not self._has_vectors(user):
                return {}
            query = _normalize([sum(values) for values in zip(*self._embed(texts, QUERY_TIMEOUT_S), strict=True)])
            if not query:
                return {}
            with self.file.reading() as db:
                return dict(db.execute(_SELECT_SIMILARITIES, [query, user]).fetchall())
        except PandoraError as error:
            self._report_once(error)
            return {}

    def rebuild(self, rows: Iterable[TurnRow]) -> int:
        """Make the file again beside the old one, with the stored vectors of unchanged texts; returns the number of vectors.

        Messages that cannot be embedded have no vector. Raises StoreError.
        """

        def fill(fresh: DuckDBFile) -> int:
            count = 0
            for batch in batches(rows, _BATCH_TURNS):
                messages = [message for row in batch for message in _message_texts(row)]
                try:
                    stored = self._stored_vectors(messages)
                except StoreError:  # of another model, or damaged: no vector can be reused
                    stored = {}
                vector_rows = self._build_rows(messages, stored)
                with fresh.writing() as db:
                    _insert(db, vector_rows, self.name)
                count += len(vector_rows)
            return count

        return self.file.rebuild(fill)[0]

    def check(self) -> int:
        """Embed one word as a test and return the length of its vector; raises ModelError."""
        return len(_scale_vectors(self._model.embed(["search"], timeout_s=BATCH_TIMEOUT_S), 1, self.name)[0])

    def check_stored_model(self) -> None:
        """Raises DamagedIndexError where the stored vectors are of another model."""
        if self.file.path.exists():
            with self.file.reading() as db:
                self._check_model(db)

    def verify(self, rows: Iterable[TurnRow]) -> tuple[str, ...]:
        """Every turn whose messages and vectors differ, each as one sentence; empty where they agree. Raises StoreError."""
        stored: dict[tuple[str, int], set[tuple[int, str]]] = {}
        if self.file.path.exists():
            with self.file.reading() as db:
                self._check_model(db)
                for user, doc, digest in db.execute("SELECT user_id, doc, digest FROM vectors").fetchall():
                    stored.setdefault((user, turn_number(doc)), set()).add((doc, digest))
        faults: list[str] = []
        for row in rows:
            expected = {(message.doc, message.digest) for message in _message_texts(row)}
            existing = stored.pop((row.user_id, row.number), set[tuple[int, str]]())
            if expected != existing:
                fault = f"{len(existing)} vectors of messages, {len(expected & existing)} of them current: expected {len(expected)}"
                faults.append(f"{row.user_id}:{row.turn_id}: {fault}")
        faults += [f"{user}:turn_{number:06d}: vectors of messages, but no readable turn: expected none" for user, number in stored]
        return tuple(faults)

    def _build_rows(self, messages: Sequence[_MessageText], stored: Mapping[tuple[str, int, str], list[float]]) -> list[VectorRow]:
        """The rows of messages: stored vectors, and new ones for the other messages, unless the model fails."""
        vectors = {message.key: stored[message.key] for message in messages if message.key in stored}
        for new in batches([message for message in messages if message.key not in vectors], _BATCH_TEXTS):
            embedded = self._embed([message.text for message in new], BATCH_TIMEOUT_S)
            vectors |= {message.key: vector for message, vector in zip(new, embedded, strict=False)}
        return [(*message.key, vectors[message.key]) for message in messages if message.key in vectors]

    def _embed(self, texts: Sequence[str], timeout_s: float) -> list[list[float]]:
        """One vector per text; none at all where the model fails, which is reported, or within the pause after a failure."""
        if not texts or self._timer() < self._paused_until:
            return []
        try:
            return _scale_vectors(self._model.embed(texts, timeout_s=timeout_s), len(texts), self.name)
        except ModelError as error:
            self._paused_until = self._timer() + _FAILURE_PAUSE_S
            self._report_once(error)
            return []

    def _stored_vectors(self, messages: Sequence[_MessageText]) -> dict[tuple[str, int, str], list[float]]:
        """The stored vectors of messages, by the key of their text; raises StoreError."""
        if not self.file.path.exists():
            return {}
        with self.file.reading() as db:
            self._check_model(db)
            rows = db.execute(_SELECT_STORED, [[m.user for m in messages], [m.doc for m in messages]]).fetchall()
        return {(user, doc, digest): vector for user, doc, digest, vector in rows}

    def _has_vectors(self, user: str) -> bool:
        if not self.file.path.exists():
            return False
        with self.file.reading() as db:
            self._check_model(db)
            return db.execute("SELECT 1 FROM vectors WHERE user_id = ? LIMIT 1", [user]).fetchone() is not None

    def _check_model(self, db: duckdb.DuckDBPyConnection) -> None:
        row = db.execute("SELECT name FROM model").fetchone()
        if row and row[0] != self.name:
            hint = "run `pandora index rebuild`: it makes the vectors again"
            raise DamagedIndexError(f"{self.file.path}: vectors of {row[0]}, expected {self.name}", hint=hint)

    def _report_once(self, error: PandoraError) -> None:
        sentence = f"search without vectors: {error.with_hint}"
        if sentence not in self._reported:
            self._reported.add(sentence)
            self._report(sentence)


def _insert(db: duckdb.DuckDBPyConnection, rows: Sequence[VectorRow], model: str) -> None:
    if db.execute("SELECT 1 FROM model").fetchone() is None:
        db.execute("INSERT INTO model VALUES (?)", [model])
    _VECTORS.insert(db, rows)


def _message_texts(row: TurnRow) -> Iterator[_MessageText]:
    """The messages of a turn that have text, long ones in parts."""
    for place, message in enumerate(row.messages, 1):
        for part in dict.fromkeys(_readable_parts(message.text, message.name)) if message.text.strip() else ():
            yield _MessageText(row.user_id, document_number(row.number, place), part)


def _readable_parts(text: str, name: str = "") -> Iterator[str]:
    """A text without credentials, in parts of at most `MAX_TEXT_CHARACTERS`: whole units, each part after the speaker's name."""
    head = f"{name}: " if name else ""
    whole = redact(head + text).encode(errors="replace").decode()
    if len(whole) <= MAX_TEXT_CHARACTERS:
        yield whole
        return
    max_characters, part = max(MAX_TEXT_CHARACTERS - len(head), MAX_TEXT_CHARACTERS // 2), ""
    for unit in read_units(whole.removeprefix(head)):
        for start in range(0, len(unit.text), max_characters):  # a longer unit is a block of code or a blob without a line end
            piece = unit.text[start : start + max_characters]
            if part and len(part) + 1 + len(piece) > max_characters:
                yield head + part
                part = ""
            part = f"{part}\n{piece}" if part else piece
    if part:
        yield head + part


def _scale_vectors(vectors: Sequence[Sequence[float]], count: int, model: str) -> list[list[float]]:
    """The vectors scaled to length 1; raises BadAnswerError unless they are `count` of one length, each finite and not 0."""
    lengths = {len(vector) for vector in vectors}
    if len(vectors) != count or len(lengths) != 1 or 0 in lengths:
        raise BadAnswerError(f"{model}: {len(vectors)} vectors of lengths {sorted(lengths)[:5]}: expected {count} of one length")
    scaled = [_normalize(vector) for vector in vectors]
    if not all(scaled):
        raise BadAnswerError(f"{model}: a vector that is 0 or not finite: expected a direction")
    return scaled


def _normalize(vector: Sequence[float]) -> list[float]:
    """The vector scaled to length 1; [] where it is 0 or not finite."""
    length = sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length and isfinite(length) else []
