"""A turn as the documents that the index holds: the turn itself, then each of its messages, with their terms. Knows no SQL."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from pandora_dagster.contracts.turns import IndexedMessage, TurnRow
from pandora_dagster.selection.places import document_number
from pandora_dagster.text.dates import date_terms, has_relative_date_words, relative_date_terms, has_date_words
from pandora_dagster.text.words import TermReader, prefix_of

ASKS, OWN_WORDS, TELLS_TIME = 1, 2, 4
"""Bits of `Posted.manner`: it is a question; it is told in the first person; it says when something was."""
_OWN = frozenset({"i", "me", "my", "mine", "we", "us", "our", "ours"})


@dataclass(frozen=True, slots=True)
class SearchDocument:
    """One document: what is kept of it, and its terms with their counts in `bag`, separated by spaces. `doc` is the user's own."""

    doc: int
    session_id: str
    message_id: str
    role: str
    speaker: str
    created_at: str
    length: int
    manner: int
    text: str
    bag: str


def search_documents(row: TurnRow, reader: TermReader) -> Iterator[SearchDocument]:
    """The documents of a turn. A recorded turn's summary is made of its messages' own words and is not searched again."""
    told = () if row.messages else (row.text,)
    text = "" if row.recorded and row.messages else "\n".join((row.summary, " ".join(row.topics), *told))
    turn = IndexedMessage(id="", role="", text=text, created_at=row.created_at)
    yield _message_document(row, 0, turn, (*date_terms(row.created_at), session_term(row.session_id)), reader)
    for place, message in enumerate(row.messages, 1):
        yield _message_document(row, place, message, (), reader)


def session_term(session: str) -> str:
    """The term under which the turns of a session are listed."""
    return f"&{sha256(session.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _message_document(row: TurnRow, place: int, message: IndexedMessage, marks: tuple[str, ...], reader: TermReader) -> SearchDocument:
    reading = reader.read(message.text)
    counts = reading.counts
    for term, count in [*counts.items()]:
        if prefix := prefix_of(term):
            counts[prefix] += count
    if place and has_relative_date_words(reading.words):
        marks = relative_date_terms(message.text, message.created_at)
    manner = ASKS * message.text.rstrip().endswith("?")
    manner |= OWN_WORDS * (not _OWN.isdisjoint(reading.words)) | TELLS_TIME * has_date_words(reading.words)
    return SearchDocument(
        doc=document_number(row.number, place),
        session_id=row.session_id,
        message_id=message.id,
        role=message.role,
        speaker=message.name,
        created_at=message.created_at,
        length=reading.length,
        manner=manner,
        text=message.text if place else "",
        bag=" ".join([f"{term} {count}" for term, count in counts.items()] + [f"{mark} 1" for mark in marks]),
    )
