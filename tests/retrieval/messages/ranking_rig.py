"""Units and matches of the ranking as its tests name them: one record for each unit, counts by term and document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pandora_dagster.retrieval.messages.message_ranking import MessageUnits, TermMatches
from pandora_dagster.retrieval.messages.search_question import SearchQuestion


@dataclass(frozen=True, slots=True)
class Unit:
    """One message or turn."""

    doc: int
    session: str = "s"
    speaker: str = ""
    length: int = 0
    asks: bool = False
    first_person: bool = False


def message_units(units: Sequence[Unit]) -> MessageUnits:
    return MessageUnits(
        docs=np.array([unit.doc for unit in units], dtype=np.int64),
        sessions=np.array([unit.session for unit in units], dtype=np.object_),
        speakers=np.array([unit.speaker for unit in units], dtype=np.object_),
        lengths=np.array([unit.length for unit in units], dtype=np.int64),
        asks=np.array([unit.asks for unit in units], dtype=np.bool_),
        first_person=np.array([unit.first_person for unit in units], dtype=np.bool_),
    )


def term_matches(question: SearchQuestion, units: Sequence[Unit], places: Mapping[str, Mapping[int, int]]) -> TermMatches:
    """`places`: term -> document -> its count there; each of these terms is equally rare."""
    terms = question.terms()
    counts = [[float(places.get(term, {}).get(unit.doc, 0)) for unit in units] for term in terms]
    return TermMatches(terms, np.array(counts).reshape(len(terms), len(units)), dict.fromkeys(places, 1.0))
