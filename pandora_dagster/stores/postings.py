"""A turn as the documents that the index holds: the turn itself, then each of its messages, with their terms. Knows no SQL."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.contracts.turns import IndexedMessage, TurnRow
from pandora_dagster.selection.message_ranking import PLACE_BITS
from pandora_dagster.text.dates import date_terms, relative_dates
from pandora_dagster.text.words import TermReader, prefix_of

_OWN_WORDS = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Posted:
    """One document: what is kept of it, and its terms with their counts in `bag`, separated by spaces."""

    user_id: str
    doc: int
    number: int
    session_id: str
    message_id: str
    role: str
    speaker: str
    created_at: str
    length: int
    asks: bool
    own_words: bool
    text: str
    bag: str


def posted(row: TurnRow, reader: TermReader) -> Iterator[Posted]:
    """The documents of a turn. A recorded turn's summary is made of its messages' own words and is not searched again."""
    text = "" if row.recorded and row.messages else "\n".join((row.summary, " ".join(row.topics), row.text))
    yield _posted(row, 0, IndexedMessage(id="", role="", text=text, created_at=row.created_at), date_terms(row.created_at), reader)
    for place, message in enumerate(row.messages, 1):
        yield _posted(row, place, message, relative_dates(message.text, message.created_at), reader)


def _posted(row: TurnRow, place: int, message: IndexedMessage, dates: tuple[str, ...], reader: TermReader) -> Posted:
    counts = reader.counts(message.text)
    length = sum(counts.values())
    for term, count in [*counts.items()]:
        if prefix := prefix_of(term):
            counts[prefix] += count
    return Posted(
        user_id=row.user_id,
        doc=(row.number << PLACE_BITS) + place,
        number=row.number,
        session_id=row.session_id,
        message_id=message.id,
        role=message.role,
        speaker=message.name,
        created_at=message.created_at,
        length=length,
        asks=message.text.rstrip().endswith("?"),
        own_words=bool(_OWN_WORDS.search(message.text)),
        text=message.text if place else "",
        bag=" ".join([f"{term} {count}" for term, count in counts.items()] + [f"{date} 1" for date in dates]),
    )
