"""Traces of one user as patterns over bytes: the user's id, and facts that only this user stated.

The patterns match plain UTF-8 text and text that is JSON-escaped once or twice, at word borders. A search takes time linear in the text:
the patterns of all facts are one regular expression in which facts with a common prefix share it (`_alternation`).
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

ERASED = "erased"
"""Replacement of a trace in a record that also belongs to other users."""
MIN_TRACE_BYTES = 5
"""A shorter text occurs by chance and is not a trace."""
_MIN_UNBORDERED_BYTES = 8
"""A text of this length needs no word border around it."""
_ID_CHARACTERS = r"A-Za-z0-9_.@+\-"
_QUOTE = r'\\{0,3}"'
_USER_KEYS = r"(?:user|user_id|owner|pandora/user)"


@dataclass(frozen=True)
class UserTraces:
    """The traces of `user`. `is_id_distinctive`: the id is a trace wherever it is a word, since no other user's documents contain it."""

    user: str
    facts: tuple[str, ...] = ()
    is_id_distinctive: bool = False

    def found_in(self, data: bytes) -> bool:
        """Whether the data contains a trace, in any case."""
        return self._lower_case_pattern.search(data.lower()) is not None

    def scrub(self, text: str) -> str:
        """Replace every trace by `ERASED`; JSON stays JSON."""
        return self._any_case_pattern.sub(self._replacement, text.encode(errors="surrogatepass")).decode(errors="surrogatepass")

    def names_user(self, text: str) -> bool:
        """Whether the text contains the user's id."""
        return self._user_id_pattern.search(text.encode(errors="surrogatepass")) is not None

    @staticmethod
    def _replacement(match: "re.Match[bytes]") -> bytes:
        return (match["before"] or b"") + ERASED.encode() if "before" in match.re.groupindex else ERASED.encode()

    @cached_property
    def _user_id_pattern(self) -> "re.Pattern[bytes]":
        return re.compile(_id_pattern(self.user, is_distinctive=self.is_id_distinctive))

    @cached_property
    def _lower_case_pattern(self) -> "re.Pattern[bytes]":
        return re.compile(b"|".join([_id_pattern(self.user.lower(), is_distinctive=self.is_id_distinctive), *fact_patterns(self.facts)]))

    @cached_property
    def _any_case_pattern(self) -> "re.Pattern[bytes]":
        return re.compile(
            b"|".join([_id_pattern(self.user, is_distinctive=self.is_id_distinctive), *fact_patterns(self.facts)]), re.IGNORECASE
        )


def _id_pattern(user: str, *, is_distinctive: bool) -> bytes:
    """A pattern of the id where it names the user: before a turn, in a path of the store, as a key's value; a distinctive id as any
    word. `level`: the tables of narratives and digests, and their links, as earlier versions recorded them in Dagster."""
    name = re.escape(user)
    start = f"(?<![{_ID_CHARACTERS}]){name}"
    end = f"(?![{_ID_CHARACTERS}])" if not user.endswith(".") else ""
    level = rf"{_QUOTE}of{_QUOTE}\s*:\s*{_QUOTE}(?={name}(?:{_QUOTE}|, session ))|\[(?={name}(?:, session [^\]\n]*)?\]\(http)"
    forms = [
        rf"{start}:turn_[0-9]+",
        rf"{start}:(?:session/|digest\b)",
        rf"(?P<before>(?:users|cold)(?:/|\\{{1,4}}/)|{_QUOTE}{_USER_KEYS}{_QUOTE}\s*:\s*{_QUOTE}|{level}){name}{end}",
    ]
    return "|".join([*forms, *([start + end] if is_distinctive else [])]).encode()


def fact_patterns(facts: Iterable[str]) -> list[bytes]:
    """Patterns over lower-case bytes that match any of the facts, in any encoded form."""
    forms = sorted({form for fact in facts for form in encoded_forms(fact)})
    short_forms = [form for form in forms if len(form) < _MIN_UNBORDERED_BYTES]
    long_forms = [form for form in forms if len(form) >= _MIN_UNBORDERED_BYTES]
    bordered = [b"(?<![0-9a-z])" + _alternation(short_forms) + b"(?![0-9a-z])"] if short_forms else []
    return [*bordered, *([_alternation(long_forms)] if long_forms else [])]


def encoded_forms(fact: str) -> set[bytes]:
    """A fact's bytes as text, as JSON with and without escaped letters, and as JSON inside JSON; in lower case."""
    forms = {fact}
    for _ in range(2):
        forms |= {json.dumps(form, ensure_ascii=escaped)[1:-1] for form in forms for escaped in (True, False)}
    return {form.encode(errors="surrogatepass").lower() for form in forms}


def occurring_facts(facts: Sequence[str], contents: Iterable[bytes]) -> frozenset[str]:
    """The facts that occur in the contents; overlapping occurrences count."""
    patterns = [re.compile(b"(?=(" + pattern + b"))") for pattern in fact_patterns(facts)]
    matched_texts: set[bytes] = set()
    for data in contents if patterns else ():
        lower = data.lower()
        matched_texts.update(match[1] for pattern in patterns for match in pattern.finditer(lower))
    facts_by_form: dict[bytes, set[str]] = {}
    for fact in facts:
        for form in encoded_forms(fact):
            facts_by_form.setdefault(form, set()).add(fact)
    return frozenset(fact for text in matched_texts for form in _prefixes(text) for fact in facts_by_form.get(form, ()))


def _prefixes(text: bytes) -> Iterator[bytes]:
    """The prefixes of a matched text. Where several facts begin at one place, the pattern matches the longest; the others are its
    prefixes."""
    return (text[:end] for end in range(MIN_TRACE_BYTES, len(text) + 1))


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
    for index, byte in enumerate(low):
        if byte != high[index]:
            return low[:index]
    return low
