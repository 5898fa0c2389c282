"""Traces of one user as patterns over bytes: the user's id, and facts that only this user stated.

Patterns match UTF-8 text and text that is JSON-escaped once or twice, at word borders. Time is linear in the text.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

ERASED = "erased"
"""Replacement of a trace in a record that also belongs to other users."""
SHORTEST, UNBORDERED = 5, 8
"""Bytes: a shorter text occurs by chance and is not a trace; a text of `UNBORDERED` bytes or more needs no word border around it."""
_IN_ID = r"A-Za-z0-9_.@+\-"
_QUOTE = r'\\{0,3}"'
_KEYS = r"(?:user|user_id|owner|pandora/user)"


@dataclass(frozen=True)
class UserTraces:
    """The traces of `user`. `plain`: the id is a trace wherever it is a word, since no other user's documents contain it."""

    user: str
    facts: tuple[str, ...] = ()
    plain: bool = False

    def found_in(self, data: bytes) -> bool:
        """Whether the data contains a trace, in any case."""
        return self._lower.search(data.lower()) is not None

    def scrub(self, text: str) -> str:
        """Replace every trace by `ERASED`; JSON stays JSON."""
        return self._any_case.sub(self._replaced, text.encode(errors="surrogatepass")).decode(errors="surrogatepass")

    def names_user(self, text: str) -> bool:
        """Whether the text contains the user's id."""
        return self._id.search(text.encode(errors="surrogatepass")) is not None

    @staticmethod
    def _replaced(found: "re.Match[bytes]") -> bytes:
        return (found["before"] or b"") + ERASED.encode() if "before" in found.re.groupindex else ERASED.encode()

    @cached_property
    def _id(self) -> "re.Pattern[bytes]":
        return re.compile(_id_pattern(self.user, plain=self.plain))

    @cached_property
    def _lower(self) -> "re.Pattern[bytes]":
        return re.compile(b"|".join([_id_pattern(self.user.lower(), plain=self.plain), *fact_patterns(self.facts)]))

    @cached_property
    def _any_case(self) -> "re.Pattern[bytes]":
        return re.compile(b"|".join([_id_pattern(self.user, plain=self.plain), *fact_patterns(self.facts)]), re.IGNORECASE)


def _id_pattern(user: str, *, plain: bool) -> bytes:
    """A pattern of the id where it names the user: before a turn, in a path of the store, as a key's value; with `plain` as any word."""
    name = re.escape(user)
    alone = f"(?<![{_IN_ID}]){name}"
    ends = f"(?![{_IN_ID}])" if not user.endswith(".") else ""
    forms = [
        rf"{alone}:turn_[0-9]+",
        rf"{alone}:(?:session/|digest\b)",
        rf"(?P<before>(?:users|cold)(?:/|\\{{1,4}}/)|{_QUOTE}{_KEYS}{_QUOTE}\s*:\s*{_QUOTE}){name}{ends}",
    ]
    return "|".join([*forms, *([alone + ends] if plain else [])]).encode()


def fact_patterns(facts: Iterable[str]) -> list[bytes]:
    """Patterns over lower-case bytes that match any of the facts, in any encoded form."""
    forms = sorted({form for fact in facts for form in encoded_forms(fact)})
    short = [form for form in forms if len(form) < UNBORDERED]
    long = [form for form in forms if len(form) >= UNBORDERED]
    made = [b"(?<![0-9a-z])" + _alternation(short) + b"(?![0-9a-z])"] if short else []
    return [*made, *([_alternation(long)] if long else [])]


def encoded_forms(fact: str) -> set[bytes]:
    """A fact's bytes as text, as JSON with and without escaped letters, and as JSON inside JSON; in lower case."""
    forms = {fact}
    for _ in range(2):
        forms |= {json.dumps(form, ensure_ascii=plain)[1:-1] for form in forms for plain in (True, False)}
    return {form.encode(errors="surrogatepass").lower() for form in forms}


def occurring_facts(facts: Sequence[str], contents: Iterable[bytes]) -> frozenset[str]:
    """The facts that occur in the contents, also inside or across one another."""
    patterns = [re.compile(b"(?=(" + pattern + b"))") for pattern in fact_patterns(facts)]
    seen: set[bytes] = set()
    for data in contents if patterns else ():
        lower = data.lower()
        seen.update(match[1] for pattern in patterns for match in pattern.finditer(lower))
    by_form: dict[bytes, set[str]] = {}
    for fact in facts:
        for form in encoded_forms(fact):
            by_form.setdefault(form, set()).add(fact)
    return frozenset(fact for text in seen for form in _prefixes(text) for fact in by_form.get(form, ()))


def _prefixes(text: bytes) -> Iterator[bytes]:
    """The prefixes of a text: of several facts that begin at one place the pattern matched the longest."""
    return (text[:end] for end in range(SHORTEST, len(text) + 1))


def _alternation(words: Sequence[bytes]) -> bytes:
    """A pattern of sorted words that reads each byte once: words with a common prefix share it."""
    if len(words) == 1:
        return re.escape(words[0])
    branches: list[bytes] = []
    for first, group in groupby((w for w in words if w), key=lambda word: word[:1]):
        suffixes = [word[1:] for word in group]
        shared = _common_prefix(suffixes)
        tails = [word[len(shared) :] for word in suffixes]
        branches.append(re.escape(first + shared) + (_alternation(tails) if tails != [b""] else b""))
    optional = b"?" if any(not word for word in words) else b""
    return b"(?:" + b"|".join(branches) + b")" + optional


def _common_prefix(words: Sequence[bytes]) -> bytes:
    low, high = min(words), max(words)
    for place, byte in enumerate(low):
        if byte != high[place]:
            return low[:place]
    return low
