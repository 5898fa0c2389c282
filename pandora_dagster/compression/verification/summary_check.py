"""Checks that a condensed text is a summary at all, and no reply, refusal, echo, heap of words or bare list of values.

Judges by the words of the source, not by a list of phrases: a first or last sentence whose words the source lacks speaks to the reader,
such as "Here is your summary".
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pandora_dagster.compression.verification.alignment import Alignment, align, is_mark
from pandora_dagster.compression.verification.forms import Form, FormKind
from pandora_dagster.compression.verification.text_facts import TextFacts
from pandora_dagster.compression.verification.unit_index import LITERAL, UnitIndex
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.redaction.credentials import credential_spans
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.language.detection import language_of

Statement = TypeVar("Statement")
_MIN_SHARE, _MIN_SHARE_AT_ENDS = 0.5, 0.4
"""Least share of the content words that the source must have: of all statements, and of the first and the last one."""
_MIN_WORDS = 3
"""Content words from which a statement can be judged by their share."""
_MAX_BARE_SHARE = 0.10
"""Share of the tokens that may be in lines of values without words."""
_MAX_UNMEASURED_TOKENS = 25
"""A text of at most this many tokens may be a list of values."""
_MIN_HEAP_WORDS, _MIN_FUNCTION_WORD_SHARE = 14, 0.22
"""So many words without punctuation between them are a heap if less than this share of them are function words, such as "the"."""
_SAMPLE_UNITS = 400
"""Units of the source in which its share of function words is measured."""
_MIN_REPEATS, _MAX_UNCOUNTED_LINE = 3, 20
"""Repeats of a line that are an echo, and the characters up to which a line is not counted."""
_BREAKS = frozenset('.,;:!?|()[]{}"\n=\u2013\u2014\u3001\u3002')


def check_summary(candidate: str, source: str | TextFacts, target: int, counter: TokenMeasure, *, reference: str = "") -> tuple[str, ...]:
    """Every reason why `candidate` cannot replace `source` in `target` tokens; none for a sound one.

    `reference` is the line of `candidate` that names the original; it is not checked."""
    text = source.text if isinstance(source, TextFacts) else source
    if not candidate.strip():
        return () if not text.strip() else ("empty: expected a text",)
    tokens = counter.count(candidate)
    over = (f"inflated: {tokens} tokens: expected at most {target}",) if tokens > target else ()
    if candidate == text:
        return tuple(f"echo: the source itself, {reason}" for reason in over)
    original = source.index if isinstance(source, TextFacts) else UnitIndex(text, language_of(text))
    judged = _Candidate(original, UnitIndex(candidate, original.language), reference)
    reasons = (
        *over,
        "inflated: longer than its source" if len(candidate) > len(text) and tokens > counter.count(text) else "",
        judged.bare_values(tokens, counter),
        judged.unsupported(),
        judged.heap(),
        _echo(candidate, text),
        "credential: it contains a key or a password" if credential_spans(candidate) else "",
    )
    return tuple(filter(None, reasons))


def sound_part(
    statements: Sequence[Statement], reasons_against: Callable[[Sequence[Statement]], tuple[str, ...]]
) -> tuple[Sequence[Statement], Sequence[Statement], tuple[str, ...]]:
    """The statements that are a summary, those taken out because they spoil it, and the reasons against all of them together.

    One is taken out where that is enough, else the first ones: a reply to the reader comes first. None where no choice is a summary.
    """
    if not (reasons := reasons_against(statements)):
        return statements, (), ()
    count = len(statements)
    for start, end in (*((n, n + 1) for n in range(count)), *((0, n) for n in range(2, count))):
        rest = [*statements[:start], *statements[end:]]
        if rest and not reasons_against(rest):
            return rest, statements[start:end], reasons
    return statements, (), reasons


class _Candidate:
    """The statements of a text that are not verbatim in its source."""

    def __init__(self, original: UnitIndex, shortened: UnitIndex, reference: str) -> None:
        self._original, self._shortened = original, shortened
        self._aligned = align(original, shortened, reference=reference)
        self._reworded = [a for a in self._aligned if not a.is_verbatim]

    def unsupported(self) -> str:
        """The reason if too few words of the text, or of its first or last sentence, are in the source; else ""."""
        if not any(any(f.is_content for f in self._shortened.forms(u.order)) for u in self._shortened.units):
            return "no words: expected a text"
        share = self._source_share([f for a in self._reworded for f in self._shortened.forms(a.order)])
        if share < _MIN_SHARE:
            return f"unsupported: the source has {share:.0%} of its words: expected at least {_MIN_SHARE:.0%}"
        for alignment in (a for a in self._aligned[:1] + self._aligned[-1:] if not a.is_verbatim):
            content = [f for f in self._shortened.forms(alignment.order) if f.is_content]
            text = self._shortened.units[alignment.order].text
            is_question = text.rstrip().endswith(("?", "\uff1f", "\u061f"))
            in_source = [f for f in content if f.key in self._original.everywhere]
            is_unlike_source = len(content) >= _MIN_WORDS and self._source_share(content) < _MIN_SHARE_AT_ENDS
            if not in_source or is_unlike_source or (is_question and len(in_source) <= 1):
                return f"unsupported: says to the reader what the source does not say: {text[:80]}"
        return ""

    def _source_share(self, forms: list[Form]) -> float:
        """The share of the content words, values excepted, that the source has; 1 without any."""
        content = [f for f in forms if f.is_content and f.kind is not FormKind.VALUE]
        return sum(f.key in self._original.everywhere for f in content) / len(content) if content else 1.0

    def bare_values(self, tokens: int, counter: TokenMeasure) -> str:
        """The reason if more than a tenth of the text is values without words that say what they are; else ""."""
        bare = sum(counter.count(self._shortened.units[a.order].text) for a in self._reworded if self._is_bare(a))
        if tokens <= _MAX_UNMEASURED_TOKENS or bare <= _MAX_BARE_SHARE * tokens:
            return ""
        return f"bare list of values: {bare} of {tokens} tokens: expected at most {int(_MAX_BARE_SHARE * tokens)}"

    def _is_bare(self, alignment: Alignment) -> bool:
        unit, forms = self._shortened.units[alignment.order], self._shortened.forms(alignment.order)
        if unit.kind in LITERAL or (unit.kind is UnitKind.ROW and unit.needs):
            return False
        values = sum(f.is_hard for f in forms)
        words = sum(f.is_content for f in forms) - values
        return values > 0 and words * 4 <= values

    def heap(self) -> str:
        """The reason if a run of words has nearly no function words, although the source has them; else ""."""
        if _lacks_function_words([f for u in self._original.content[:_SAMPLE_UNITS] for f in self._original.forms(u.order)]):
            return ""
        for alignment in self._reworded:
            text = self._shortened.units[alignment.order].text
            for run in _runs(text, self._shortened.forms(alignment.order)):
                if len(run) >= _MIN_HEAP_WORDS and _lacks_function_words(run):
                    return f"heap of words: {len(run)} words without a sentence: {text[:80]}"
        return ""


def _lacks_function_words(forms: Sequence[Form]) -> bool:
    return sum(not f.is_content for f in forms) < _MIN_FUNCTION_WORD_SHARE * len(forms)


def _runs(text: str, forms: Sequence[Form]) -> Iterator[list[Form]]:
    """Forms of a text without punctuation between them."""
    run: list[Form] = []
    for form in forms:
        if run and not _BREAKS.isdisjoint(text[run[-1].end : form.start]):
            yield run
            run = []
        run.append(form)
    yield run


def _echo(candidate: str, source: str) -> str:
    """The reason if a line is repeated in the candidate, and less often in the source; else ""."""
    lines = Counter(line.strip() for line in candidate.split("\n") if len(line.strip()) > _MAX_UNCOUNTED_LINE and not is_mark(line))
    for line, times in lines.items():
        # the source may have the line without the label before it, such as "user: "
        if times >= _MIN_REPEATS and times > source.count(line.partition(": ")[2] or line):
            return f"echo: one line is there {times} times"
    return ""
