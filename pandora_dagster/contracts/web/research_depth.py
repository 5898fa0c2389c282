"""How much a research run reads; apart from its records, so that `pandora --help` loads no model of theirs."""

from enum import StrEnum


class Depth(StrEnum):
    """How many pages a run reads where no number is given."""

    QUICK = "quick"
    STANDARD = "standard"
    DEEP = "deep"
