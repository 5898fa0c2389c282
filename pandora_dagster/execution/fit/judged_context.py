"""context.md for a call that judges its answer: section 5 whole, then the passages that it cites, then the others, as far as they fit.

Every passage is sent verbatim or left out whole: a model that compares character by character cannot judge a shortened text. The order is
that of decision 2 (docs/decisions/02-selection-then-compression.md): selection before compression.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pandora_dagster.compression.verification.cited_passages import LabelledLine, labelled_lines
from pandora_dagster.documents.citations import REFERENCES_TITLE, cited_labels
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.execution.fit.call_budget import TokenCountFunction
from pandora_dagster.language.tokens import all_words

CITED_PASSAGES = "cited_passages"
"""The name by which `preserve` of a recipe asks for this selection."""
_ANSWER = 5
_WHOLE_SECTIONS = (0, _ANSWER)
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_TABLE_RULE = re.compile(r"^\|[\s:|-]+\|\s*$")


@dataclass(frozen=True, slots=True)
class _Passage:
    """A line of a section, or a fenced block; `rank` sorts the first to keep first, None where it must be kept."""

    section: int
    text: str
    rank: tuple[bool, int] | None


def select_for_judgement(text: str, limit: int, count: TokenCountFunction) -> str | None:
    """context.md with as many whole passages as fit into `limit` tokens; None where section 5 and the list of sources alone do not fit."""
    context = ContextDocument.parse(text)
    cited, words = set(cited_labels(context.body(_ANSWER))), set(all_words(context.body(_ANSWER)))
    numbers = (section.number for section in context.sections if section.number not in _WHOLE_SECTIONS)
    passages = [passage for number in numbers for passage in _passages(context, number, cited, words)]
    kept = {n for n, passage in enumerate(passages) if passage.rank is None}
    remaining = limit - count(_render(context, passages, kept))
    if remaining < 0:
        return None
    chosen: list[int] = []
    ranked = ((passage.rank, n) for n, passage in enumerate(passages) if passage.rank is not None)
    for _, n in sorted(ranked):
        cost = count(passages[n].text + "\n")
        if cost <= remaining:
            remaining -= cost
            chosen.append(n)
    while chosen and count(_render(context, passages, kept | set(chosen))) > limit:
        chosen.pop()
    return _render(context, passages, kept | set(chosen))


def _passages(context: ContextDocument, number: int, cited: set[str], words: set[str]) -> Iterator[_Passage]:
    """The passages of a section: cited ones before others, and of these the ones that share more words with the answer."""
    lines = list(labelled_lines(context.body(number)))
    table_heads = {line.text for line, next_line in pairwise(lines) if _TABLE_RULE.match(next_line.text)}
    for block in _blocks(lines):
        first, text = block[0], "\n".join(line.text for line in block)
        is_heading = first.text.startswith("### ") or first.text in table_heads or _TABLE_RULE.match(first.text) is not None
        is_fixed = is_heading or first.title == REFERENCES_TITLE or not text.strip()
        shared = len(words.intersection(all_words(text)))
        yield _Passage(number, text, None if is_fixed else (cited.isdisjoint(first.labels), -shared))


def _blocks(lines: Sequence[LabelledLine]) -> Iterator[list[LabelledLine]]:
    """The lines, those of a fence together."""
    fence: list[LabelledLine] = []
    for line in lines:
        is_border = _FENCE.match(line.text) is not None
        if fence or is_border:
            fence.append(line)
        else:
            yield [line]
        if is_border and len(fence) > 1:
            yield fence
            fence = []
    yield from ([line] for line in fence)


def _render(context: ContextDocument, passages: Sequence[_Passage], kept: set[int]) -> str:
    """context.md with the kept passages; a section says how many others it has."""
    for number in {passage.section for passage in passages}:
        own = [(n in kept, passage.text) for n, passage in enumerate(passages) if passage.section == number]
        left_out = sum(not is_kept for is_kept, _ in own)
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(text for is_kept, text in own if is_kept)).strip("\n")
        mark = f"[{left_out} passage{'s' * (left_out > 1)} left out for room]"
        context = context.with_section(number, f"{body}\n\n{mark}".strip("\n") if left_out else body)
    return context.render()
