"""The documents of a turn as the index searches them: the turn itself, then each of its messages, with their terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from pandora_dagster.contracts.turns import IndexedMessage, TurnRow
from pandora_dagster.language.dates import date_terms
from pandora_dagster.language.relative_days import mentioned_date_terms
from pandora_dagster.language.terms import TermReader, prefix_of
from pandora_dagster.retrieval.messages.document_numbers import document_number

ASKS, OWN_WORDS = 1, 2
"""Bits of `SearchDocument.manner`: a question; a statement in the first person; a statement with a date."""
_FIRST_PERSON = frozenset({"i", "me", "my", "mine", "we", "us", "our", "ours"})


@dataclass(frozen=True, slots=True)
class SearchDocument:
    """One document as its row has it, and its terms. `doc` is counted from the user's first document."""

    doc: int
    session_id: str
    message_id: str
    role: str
    speaker: str
    created_at: str
    length: int
    manner: int
    """What kind of statement it is, as bits."""
    text: str
    term_counts: Mapping[str, int]


def search_documents(row: TurnRow, reader: TermReader) -> Iterator[SearchDocument]:
    """The documents of a turn. The summary of a recorded turn quotes its messages, which are documents already, and is left out."""
    texts = () if row.messages else (row.text,)
    text = "" if row.recorded and row.messages else "\n".join((row.summary, " ".join(row.topics), *texts))
    turn = IndexedMessage(id="", role="", text=text, created_at=row.created_at)
    yield _message_document(row, 0, turn, (*date_terms(row.created_at), session_term(row.session_id)), reader)
    for place, message in enumerate(row.messages, 1):
        yield _message_document(row, place, message, (), reader)


def session_term(session: str) -> str:
    """The term that every turn of a session has, such as `&0123456789abcdef`."""
    return f"&{sha256(session.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _message_document(row: TurnRow, place: int, message: IndexedMessage, marks: tuple[str, ...], reader: TermReader) -> SearchDocument:
    """The document at a place of a turn. `marks`: terms beside those of its text, such as the dates of its day."""
    reading = reader.read(message.text)
    counts = reading.counts
    for term, count in [*counts.items()]:
        if prefix := prefix_of(term):
            counts[prefix] += count
    if place:
        marks = mentioned_date_terms(message.text, message.created_at)
    manner = ASKS * message.text.rstrip().endswith("?")
    manner |= OWN_WORDS * (not _FIRST_PERSON.isdisjoint(reading.words))
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
        term_counts={**counts, **dict.fromkeys(marks, 1)},
    )
