"""What the recipes of research read, one JSON object a line. Text of pages is a value in such a line, never anything else."""

from pandora_dagster.contracts.strict_model import StrictModel


class SourceLine(StrictModel):
    """A page that the run knows."""

    host: str
    title: str
    date: str = ""
    read: bool = False


class HitLine(StrictModel):
    """A result of the search."""

    number: int
    url: str
    title: str
    snippet: str = ""


class LinkLine(StrictModel):
    """A link of a page."""

    number: int
    url: str


class PageLine(StrictModel):
    """A page: what it is, and the fields that were read from it."""

    number: int = 0
    url: str
    title: str
    page_type: str
    language: str = ""
    price: str = ""
    old_price: str = ""
    currency: str = ""
    availability: str = ""
    author: str = ""
    date: str = ""
    modified: str = ""


class UnitLine(StrictModel):
    """A unit of a page: a sentence, a line, or a cell of a table with its row."""

    number: int
    zone: str = ""
    """Which part of the page it is in; "" for main text."""
    under: str = ""
    """Its heading, or the headings of its row and column."""
    text: str
    cell: str = ""
    """The cell of `text` that is meant; "" where it is all of it."""


class ZoneLine(StrictModel):
    """A zone of a page."""

    number: int
    kind: str
    text: str
    """Its beginning."""


class ClaimLine(StrictModel):
    """A claim with its quote and its page."""

    number: int
    need: int
    value: str
    quote: str
    under: str = ""
    title: str
    url: str
    page_type: str
    language: str = ""
    date: str = ""
    worth: float = 0.0
    about_subject: bool = False
    outdated: bool = False
    """Whether a newer page overtakes it, as a recipe judged."""


class NeedLine(StrictModel):
    """A need of the plan."""

    number: int
    need: str


class SearchLine(StrictModel):
    """A query that was sent, and how many results it had."""

    query: str
    hits: int
