"""A text as units with their tokens: what salience and selection both read, so that every unit is tokenized once."""

from dataclasses import dataclass

from pandora_dagster.documents.units.unit import Unit
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.language.detection import language_of
from pandora_dagster.language.tokens import Token, tokens


@dataclass(frozen=True, slots=True)
class TextReading:
    """The units of a text, in order, each with its tokens."""

    units: tuple[Unit, ...]
    tokens: tuple[tuple[Token, ...], ...]
    language: str
    """ISO 639-1, "" where it is not known."""


def read_text(text: str) -> TextReading:
    """The reading of a text in the language that most of it is written in; half a surrogate pair is read as `?`."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    language = language_of(text)
    return tokenized(read_units(text, language), language)


def tokenized(units: tuple[Unit, ...], language: str) -> TextReading:
    """The reading of units that are at hand already."""
    return TextReading(units, tuple(tokens(u.text, language) for u in units), language)
