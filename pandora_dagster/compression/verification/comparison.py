"""Compares a statement with the unit that it was made from, by form: exchanged values, units, signs, letters, names, negations, force.

Knows two sequences of forms; knows no facts. Whether other words turn the meaning is not judged here.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from pandora_dagster.compression.verification.forms import Form, FormKind, pattern_of, subject_of
from pandora_dagster.language.cues import Cue, cues, negations

_LONGEST = 400
"""Forms of a unit that are compared in order; of a longer one only the values."""
_NEAR = 0.6
"""Share of a statement's forms in the order of its source from which a difference is a change and not another sentence."""
_SHORT = 4
"""Small words that turn a statement; more of them are a clause."""
_FEW = 2
"""Words of content that a change may delete; more are a clause that was left out."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a source says and a statement says instead, as text; `forms` are the source's forms that it concerns."""

    was: str
    is_now: str
    reason: str
    is_change: bool
    forms: tuple[Form, ...] = ()

    def __str__(self) -> str:
        return f"{self.was or '(nothing)'} -> {self.is_now or '(nothing)'}: {self.reason}"


def differences(source: str, theirs: Sequence[Form], statement: str, own: Sequence[Form], language: str) -> tuple[Difference, ...]:
    """How `statement` differs from `source`, given the forms of both; empty where it is another sentence."""
    if max(len(theirs), len(own)) > _LONGEST:
        return ()
    matcher = SequenceMatcher(None, [f.signed for f in theirs], [f.signed for f in own], autojunk=False)
    blocks = matcher.get_opcodes()
    same = sum(b - a for tag, a, b, _, _ in blocks if tag == "equal")
    if same < _NEAR * len(own) or not own:
        return ()
    moved = Counter(f.signed for f in theirs), Counter(f.signed for f in own)
    found: list[Difference] = []
    for tag, a, b, c, d in blocks:
        if tag != "equal":
            found += _of_stretch(_Stretch(source, theirs[a:b]), _Stretch(statement, own[c:d]), moved, language)
    return tuple(found)


def exchanged(sources: Sequence[Sequence[Form]], own: Sequence[Form]) -> Iterator[Difference]:
    """Values of a statement whose nearest word is, in its sources, that of another value of their kind."""
    if max(map(len, (own, *sources))) > _LONGEST:
        return
    placed = [(form, subject_of(n, theirs)) for theirs in sources for n, form in enumerate(theirs) if form.kind is FormKind.VALUE]
    for n, form in enumerate(own):
        subjects = [subject for rival, subject in placed if rival.key == form.key] if form.kind is FormKind.VALUE else []
        head = next(iter(subject_of(n, own)), "") if subjects else ""
        if head and not any(head in subject for subject in subjects):
            rival = next((f for f, s in placed if f.key != form.key and pattern_of(f) == pattern_of(form) and s[:1] == (head,)), None)
            if rival is not None:
                yield Difference(rival.text, form.text, "exchanged with another of its kind", is_change=True, forms=(rival,))


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Forms of a text behind one another."""

    whole: str
    forms: Sequence[Form]

    @property
    def text(self) -> str:
        return self.whole[self.forms[0].start : self.forms[-1].end] if self.forms else ""

    def content(self, own: Counter[str], other: Counter[str]) -> int:
        """Words of content that the other text has less often: what only moved is not counted."""
        return sum(f.is_content and not f.is_letter and other[f.signed] < own[f.signed] for f in self.forms)


def _of_stretch(old: _Stretch, new: _Stretch, counts: tuple[Counter[str], Counter[str]], language: str) -> Iterator[Difference]:
    theirs, own = counts
    gone_words, added_words = old.content(theirs, own), new.content(own, theirs)
    gone = [f for f in old.forms if f.is_hard and own[f.signed] < theirs[f.signed]]
    added = [f for f in new.forms if f.is_hard and theirs[f.signed] < own[f.signed]]
    exchanged = [f for f in new.forms if f.is_hard and theirs[f.signed] and own[f.signed] == theirs[f.signed]]
    for form in added:
        rival = next((f for f in gone if _may_replace(f, form)), None)
        if rival is not None:
            gone.remove(rival)
            reason = f"another {form.kind.value} in its place" if form.key != rival.key else "another sign of its line"
            yield Difference(rival.text, form.text, reason, is_change=True, forms=(rival,))
    for form in exchanged:
        rival = next((f for f in old.forms if f.is_hard and f.key != form.key and pattern_of(f) == pattern_of(form)), None)
        if rival is not None and own[rival.signed] == theirs[rival.signed]:
            yield Difference(rival.text, form.text, "exchanged with another of its kind", is_change=True, forms=(rival,))
    for form in gone:
        if form.is_letter and gone_words <= _FEW:
            yield Difference(form.text, "", "the letter is gone", is_change=True, forms=(form,))
    is_short = gone_words == added_words == 0 and max(len(old.forms), len(new.forms)) <= _SHORT
    if is_short and negations(old.text) != negations(new.text):
        yield Difference(old.text, new.text, "another polarity", is_change=True)
    elif is_short and (Cue.FORCE in cues(old.text, language)) != (Cue.FORCE in cues(new.text, language)):
        yield Difference(old.text, new.text, "another force", is_change=True)
    elif old.forms and new.forms and not added and not exchanged:
        yield Difference(old.text, new.text, "other words", is_change=False)


def _may_replace(old: Form, new: Form) -> bool:
    """Whether a form is in another's place: both numbers or codes, or both names."""
    numeric = (FormKind.VALUE, FormKind.CODE)
    return old.kind is new.kind or (old.kind in numeric and new.kind in numeric)
