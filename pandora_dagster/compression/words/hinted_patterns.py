"""A form of words behind its hints: it is tried only where one of the words stands without which it finds nothing.

Looking for a few words costs next to nothing beside a form with many branches, and most sentences have none of them.
"""

import re
from dataclasses import dataclass

from pandora_dagster.compression.words.normalization import has_other_script


@dataclass(frozen=True, slots=True)
class HintedPattern:
    """`hints` are in small letters; every text that `form` finds something in has one of them."""

    form: re.Pattern[str]
    hints: tuple[str, ...]

    def search(self, text: str) -> re.Match[str] | None:
        return self.form.search(text) if self.may_stand_in(text) else None

    def without(self, text: str) -> str:
        """`text` with a blank for each place where the form stands."""
        return self.form.sub(" ", text) if self.may_stand_in(text) else text

    def may_stand_in(self, text: str) -> bool:
        return any(map(text.lower().__contains__, self.hints))


def hinted(form: re.Pattern[str], hints: str) -> HintedPattern:
    """A form with its hints, which `|` parts."""
    return HintedPattern(form, tuple(hints.split("|")))


@dataclass(frozen=True, slots=True)
class Scripts:
    """A form of words, and one that also has those of scripts without word borders: that is asked only where they may stand."""

    latin: re.Pattern[str]
    every: re.Pattern[str]

    @classmethod
    def of(cls, latin: str, other: str) -> "Scripts":
        return cls(re.compile(latin, re.IGNORECASE), re.compile(f"{latin}|{other}", re.IGNORECASE))

    def form(self, text: str) -> re.Pattern[str]:
        return self.every if has_other_script(text) else self.latin

    def search(self, text: str) -> re.Match[str] | None:
        return self.form(text).search(text)
