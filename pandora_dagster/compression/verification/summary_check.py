"""Checks that a condensed text is a summary at all, and no reply, refusal, echo, heap of words or bare list of values.

Judges by what the source has, not by phrases: a first or last sentence whose words the source does not have is said to the reader.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from pandora_dagster.compression.selection.omission_marks import without_marks
from pandora_dagster.compression.verification.alignment import Alignment, align, is_mark
from pandora_dagster.compression.verification.forms import Form, FormKind
from pandora_dagster.compression.verification.ledger import Ledger
from pandora_dagster.compression.verification.unit_index import LITERAL, UnitIndex
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.redaction.credentials import credential_spans
from pandora_dagster.documents.units.unit import UnitKind
from pandora_dagster.language.detection import language_of

_LEAST, _LEAST_AT_ENDS = 0.5, 0.4
"""Least share of the content words that the source must have: of all statements, and of the first and the last one."""
_FEWEST = 3
"""Words of content from which a statement can be judged by their share."""
_VALUES_ALLOWED = 0.10
_SHORTEST = 25
"""Tokens from which a list of values is measured."""
_LONGEST_RUN, _GLUE = 14, 0.22
"""Words without a sign between that make a heap where fewer than a share of them are small words."""
_REPEATS, _SHORTEST_LINE = 3, 20
_BREAKS = frozenset('.,;:!?|()[]{}"\n=\u2013\u2014\u3001\u3002')


def check_summary(candidate: str, source: str | Ledger, target: int, counter: TokenMeasure, *, reference: str = "") -> tuple[str, ...]:
    """Every reason why `candidate` cannot replace `source` in `target` tokens; none for a sound one. `reference` leads to the original."""
    text = source.text if isinstance(source, Ledger) else source
    if not candidate.strip():
        return () if not text.strip() else ("empty: expected a text",)
    tokens = counter.count(candidate)
    over = (f"inflated: {tokens} tokens: expected at most {target}",) if tokens > target else ()
    if candidate == text:
        return tuple(f"echo: the source itself, {reason}" for reason in over)
    original = source.index if isinstance(source, Ledger) else UnitIndex(text, language_of(text))
    found = _Candidate(original, UnitIndex(without_marks(candidate)[0], original.language), reference)
    reasons = (
        *over,
        "inflated: longer than its source" if len(candidate) > len(text) and tokens > counter.count(text) else "",
        found.bare_values(tokens, counter),
        found.is_unsupported(),
        found.heap(),
        _repeated(candidate, text),
        "credential: it contains a key or a password" if credential_spans(candidate) else "",
    )
    return tuple(filter(None, reasons))


class _Candidate:
    """The statements of a text that are not verbatim in its source."""

    def __init__(self, original: UnitIndex, shortened: UnitIndex, reference: str) -> None:
        self._original, self._shortened = original, shortened
        self._aligned = align(original, shortened, reference=reference)
        self._own = [a for a in self._aligned if not a.is_verbatim]

    def is_unsupported(self) -> str:
        if not any(any(f.is_content for f in self._shortened.forms(u.order)) for u in self._shortened.units):
            return "no words: expected a text"
        if self._own and (share := self._share([f for a in self._own for f in self._shortened.forms(a.order)])) < _LEAST:
            return f"unsupported: the source has {share:.0%} of its words: expected at least {_LEAST:.0%}"
        ends = dict.fromkeys(a for a in (self._aligned[:1] + self._aligned[-1:]) if not a.is_verbatim)
        for one in ends:
            content = [f for f in self._shortened.forms(one.order) if f.is_content]
            text = self._shortened.units[one.order].text
            is_asked = text.rstrip().endswith(("?", "\uff1f", "\u061f"))
            known = [f for f in content if f.key in self._original.everywhere]
            is_other = len(content) >= _FEWEST and self._share(content) < _LEAST_AT_ENDS
            if not known or is_other or (is_asked and len(known) <= 1):
                return f"unsupported: says to the reader what the source does not say: {text[:80]}"
        return ""

    def _share(self, found: list[Form]) -> float:
        content = [f for f in found if f.is_content and f.kind is not FormKind.VALUE]
        return sum(f.key in self._original.everywhere for f in content) / len(content) if content else 1.0

    def bare_values(self, tokens: int, counter: TokenMeasure) -> str:
        """The reason if more than a tenth of the text is values without words that say what they are; else ""."""
        bare = sum(counter.count(self._shortened.units[a.order].text) for a in self._own if self._is_bare(a))
        if tokens <= _SHORTEST or bare <= _VALUES_ALLOWED * tokens:
            return ""
        return f"bare list of values: {bare} of {tokens} tokens: expected at most {int(_VALUES_ALLOWED * tokens)}"

    def _is_bare(self, one: Alignment) -> bool:
        unit = self._shortened.units[one.order]
        if unit.kind in LITERAL or (unit.kind is UnitKind.ROW and unit.needs):
            return False
        hard = [f for f in self._shortened.forms(one.order) if f.is_hard]
        words = [f for f in self._shortened.forms(one.order) if f.is_content and not f.is_hard]
        return bool(hard) and len(words) * 4 <= len(hard)

    def heap(self) -> str:
        """The reason if a run of words has nearly no function words, although the source has them; else ""."""
        sample = [f for u in self._original.content[:400] for f in self._original.forms(u.order)]
        if sum(not f.is_content for f in sample) < _GLUE * len(sample):
            return ""
        for one in self._own:
            text = self._shortened.units[one.order].text
            for run in _runs(text, self._shortened.forms(one.order)):
                if len(run) >= _LONGEST_RUN and sum(not f.is_content for f in run) < _GLUE * len(run):
                    return f"heap of words: {len(run)} words without a sentence: {text[:80]}"
        return ""


def _runs(text: str, found: Sequence[Form]) -> Iterator[list[Form]]:
    """Forms of a text without a sign between them."""
    run: list[Form] = []
    for form in found:
        if run and not _BREAKS.isdisjoint(text[run[-1].end : form.start]):
            yield run
            run = []
        run.append(form)
    yield run


def _repeated(candidate: str, source: str) -> str:
    return next((f"echo: one line is there {times} times" for times in _echoes(candidate, source)), "")


def _echoes(candidate: str, source: str) -> Iterator[int]:
    lines = Counter(line.strip() for line in candidate.split("\n") if len(line.strip()) > _SHORTEST_LINE and not is_mark(line))
    often = {line: times for line, times in lines.items() if times >= _REPEATS}
    theirs = Counter(line.strip() for line in source.split("\n")) if often else Counter[str]()
    return (times for line, times in often.items() if times > max(theirs[line], source.count(line.partition(": ")[2] or line)))
