"""Puts back what a condensed text lost: each fact on a line of its own, with the words it stood among.

Knows facts and their spans; adds nothing that the original does not say.
"""

import re
from collections.abc import Iterable

from pandora_dagster.compression.dialogue_lines import ALSO
from pandora_dagster.compression.facts import LINES, Fact, FactKind
from pandora_dagster.compression.language import is_negation
from pandora_dagster.compression.telegraph import telegraph
from pandora_dagster.contracts.ports import CountsTokens
from pandora_dagster.text.credentials import redacted

_BEFORE, _AFTER = 60, 30
_SHORTEST_LINE = 4
_SIGNS = re.compile(r"[{}\[\]\"\\]+")
_SENTENCE_BORDER = re.compile(r"[.!?][\"')\]]*\s+|\n")
_WORDS_BEFORE, _WORDS_AFTER = 2, 1


def restored(body: str, facts: Iterable[Fact], source: str, target: int, counter: CountsTokens) -> str:
    """`body` with a line for each fact, as many as fit in `target` tokens, in the given order. The query of
    context.md stands before all else, as it was."""
    source = redacted(source)
    lines = [body] if body.strip() else []
    used = counter.count(body)
    said: set[str] = set()
    for fact in facts:
        if fact.kind is FactKind.QUERY:
            asked = fact.text.strip("\n")
            if used + (tokens := counter.count(asked) + 2) <= target:
                lines.insert(0, asked + "\n")
                used += tokens
            continue
        if used + _SHORTEST_LINE > target:
            break
        line = ALSO + snippet(fact, source)
        tokens = counter.count(line) + 1
        if line in said or used + tokens > target:
            continue
        said.add(line)
        lines.append(line)
        used += tokens
    return "\n".join(lines)


def snippet(fact: Fact, source: str) -> str:
    """A fact with the words around it, on one line; a sentence as it is."""
    start = _place(fact, source)
    if fact.kind in LINES or start < 0:
        return " ".join(fact.text.split())
    end = start + len(fact.text)
    before = _SENTENCE_BORDER.split(source[max(0, start - _BEFORE) : start])[-1]
    after = _SENTENCE_BORDER.split(source[end : end + _AFTER])[0]
    ahead = _from_denial(_words(before, cut_first=start > _BEFORE))
    return " ".join((*ahead, fact.text, *_words(after, cut_first=False)[:_WORDS_AFTER])).strip()


def _from_denial(ahead: list[str]) -> list[str]:
    """The last words before a fact; where something is denied in them, all from there on."""
    denied = next((n for n in range(len(ahead) - 1, -1, -1) if is_negation(ahead[n])), len(ahead))
    return ahead[min(denied, max(len(ahead) - _WORDS_BEFORE, 0)) :]


def _place(fact: Fact, source: str) -> int:
    """Where a fact stands: in its span, else (in a later generation of its original) where its text stands first; -1 for nowhere."""
    at = source[fact.start : fact.end].find(fact.text)
    return fact.start + at if at >= 0 else source.find(fact.text)


def _words(text: str, *, cut_first: bool) -> list[str]:
    """Content words of a stretch; a word cut in two at its beginning is left out."""
    plain = _SIGNS.sub(" ", text)
    if cut_first and len(text) == _BEFORE:
        plain = plain.partition(" ")[2]
    return telegraph(plain, ()).split()
