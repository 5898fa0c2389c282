"""Compares a statement with the unit that it was made from, by form: exchanged values, units, signs, letters, names, negations, force.

In: the forms of a source and of a statement. Both are aligned in order; each stretch that differs is compared form by form. Out: a
`Difference` for each, `is_change` where the meaning changed by form. Whether other words turn the meaning is not judged here.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from pandora_dagster.compression.verification.forms import Form, FormKind, pattern_of, subject_of
from pandora_dagster.language.cues import Cue, cues, negations

_MAX_FORMS = 400
"""Forms up to which two units are compared."""
_MIN_COMMON_SHARE = 0.6
"""Share of a statement's forms in the order of its source from which a difference is a change and not another sentence."""
_MAX_FUNCTION_WORDS = 4
"""So many function words may turn a statement; more of them are a clause."""
_MAX_NAMED_WORDS = 12
"""Words that one difference names."""
_MAX_DELETED_WORDS = 2
"""Content words that a change may delete; more are a clause that was left out."""
_MIN_CLOSE_SHARE = 0.8
"""Share of both statements' forms in one order from which a negation that only moved is a change."""


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


def find_differences(
    source: str, source_forms: Sequence[Form], statement: str, statement_forms: Sequence[Form], language: str, *, forbids: bool = False
) -> tuple[Difference, ...]:
    """How `statement` differs from `source`, given the forms of both; empty where it is another sentence. A source that `forbids` may be
    reported with a word of force."""
    if max(len(source_forms), len(statement_forms)) > _MAX_FORMS:
        return ()
    matcher = SequenceMatcher(None, [f.signed for f in source_forms], [f.signed for f in statement_forms], autojunk=False)
    blocks = matcher.get_opcodes()
    common = sum(end - start for tag, start, end, _, _ in blocks if tag == "equal")
    if common < _MIN_COMMON_SHARE * len(statement_forms) or not statement_forms:
        return ()
    pair = _Pair(
        Counter(f.signed for f in source_forms),
        Counter(f.signed for f in statement_forms),
        common >= _MIN_CLOSE_SHARE * max(len(source_forms), len(statement_forms)),
        forbids,
        language,
    )
    differences: list[Difference] = []
    positions: list[int] = []
    for tag, source_start, source_end, start, end in blocks:
        if tag != "equal":
            old, new = _Stretch(source, source_forms[source_start:source_end]), _Stretch(statement, statement_forms[start:end])
            differences += _compare_stretch(old, new, pair)
            positions += [sum(f.is_content for f in statement_forms[:start])] * (len(differences) - len(positions))
    return tuple(_with_exchanges(differences, positions))


def _with_exchanges(differences: Sequence[Difference], positions: Sequence[int]) -> Iterator[Difference]:
    """The differences, those that are each other's reverse as changes: two stretches of words with content words between them are in
    each other's place. `positions`: content words before each difference."""
    texts = {(d.was.casefold(), d.is_now.casefold(), position) for d, position in zip(differences, positions, strict=True)}
    for difference, position in zip(differences, positions, strict=True):
        was, is_now = difference.was.casefold(), difference.is_now.casefold()
        is_turned = was and is_now and any((o, n) == (is_now, was) and p != position for o, n, p in texts)
        is_exchange = is_turned and not difference.is_change
        yield replace(difference, reason="exchanged with each other", is_change=True) if is_exchange else difference


def find_exchanged_values(sources: Sequence[Sequence[Form]], statement_forms: Sequence[Form]) -> Iterator[Difference]:
    """Values of a statement whose nearest word is, in its sources, that of another value of their kind."""
    if max(map(len, (statement_forms, *sources))) > _MAX_FORMS:
        return
    values = [(form, subject_of(n, forms)) for forms in sources for n, form in enumerate(forms) if form.kind is FormKind.VALUE]
    for n, form in enumerate(statement_forms):
        subjects = [subject for rival, subject in values if rival.key == form.key] if form.kind is FormKind.VALUE else []
        nearest = next(iter(subject_of(n, statement_forms)), "") if subjects else ""
        if nearest and not any(nearest in subject for subject in subjects):
            rival = next((f for f, s in values if f.key != form.key and pattern_of(f) == pattern_of(form) and s[:1] == (nearest,)), None)
            if rival is not None:
                yield Difference(rival.text, form.text, "exchanged with another of its kind", is_change=True, forms=(rival,))


def find_unsourced_words(sources: Sequence[Sequence[Form]], statement_forms: Sequence[Form]) -> Iterator[Difference]:
    """The content words of a statement that none of its sources has, as one difference to be read."""
    source_keys = {form.key for forms in sources for form in forms}
    words = dict.fromkeys(f.text for f in statement_forms if f.is_content and f.key not in source_keys)
    if words and sources:
        yield Difference("", ", ".join(list(words)[:_MAX_NAMED_WORDS]), "not in its sources", is_change=False)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Consecutive forms of a text."""

    whole: str
    forms: Sequence[Form]

    @property
    def text(self) -> str:
        return self.whole[self.forms[0].start : self.forms[-1].end] if self.forms else ""

    def count_content(self, counts: Counter[str], other_counts: Counter[str]) -> int:
        """Content words that the other text has less often: what only moved is not counted."""
        return sum(f.is_content and not f.is_letter and other_counts[f.signed] < counts[f.signed] for f in self.forms)


@dataclass(frozen=True, slots=True)
class _Pair:
    """What the stretches of one comparison share: how often each form is in the source and in the statement, whether both are nearly
    the same, and whether the source forbids."""

    source_counts: Counter[str]
    statement_counts: Counter[str]
    is_close: bool
    forbids: bool
    language: str

    def function_words(self, stretch: _Stretch, counts: Counter[str], other_counts: Counter[str]) -> str:
        """The words of a stretch without other content; where the statements are not close, without those that only moved."""
        return " ".join(f.text for f in stretch.forms if self.is_close or other_counts[f.signed] < counts[f.signed])

    def has_force(self, words: str) -> bool:
        return Cue.FORCE in cues(words, self.language)


def _compare_stretch(old: _Stretch, new: _Stretch, pair: _Pair) -> Iterator[Difference]:
    source_counts, statement_counts = pair.source_counts, pair.statement_counts
    lost_words, added_words = old.count_content(source_counts, statement_counts), new.count_content(statement_counts, source_counts)
    lost_forms = [f for f in old.forms if f.is_hard and statement_counts[f.signed] < source_counts[f.signed]]
    added_forms = [f for f in new.forms if f.is_hard and source_counts[f.signed] < statement_counts[f.signed]]
    moved_forms = [f for f in new.forms if f.is_hard and source_counts[f.signed] and statement_counts[f.signed] == source_counts[f.signed]]
    for form in added_forms:
        rival = next((f for f in lost_forms if _may_replace(f, form)), None)
        if rival is not None:
            lost_forms.remove(rival)
            reason = f"another {form.kind.value} in its place" if form.key != rival.key else "another sign of its line"
            is_change = not _is_same_number(rival, form)
            yield Difference(rival.text, form.text, reason, is_change=is_change, forms=(rival,) if is_change else ())
    for form in moved_forms:
        rival = next((f for f in old.forms if f.is_hard and f.key != form.key and pattern_of(f) == pattern_of(form)), None)
        if rival is not None and statement_counts[rival.signed] == source_counts[rival.signed]:
            yield Difference(rival.text, form.text, "exchanged with another of its kind", is_change=True, forms=(rival,))
    for form in lost_forms:
        if form.is_letter and lost_words <= _MAX_DELETED_WORDS:
            yield Difference(form.text, "", "the letter is gone", is_change=True, forms=(form,))
    is_short = lost_words == added_words == 0 and max(len(old.forms), len(new.forms)) <= _MAX_FUNCTION_WORDS
    was = pair.function_words(old, source_counts, statement_counts)
    is_now = pair.function_words(new, statement_counts, source_counts)
    if is_short and negations(was) != negations(is_now):
        yield Difference(old.text, new.text, "another polarity", is_change=True)
    elif is_short and pair.has_force(was) != pair.has_force(is_now) and not (pair.forbids and pair.has_force(is_now)):
        yield Difference(old.text, new.text, "another force", is_change=True)
    elif old.forms and new.forms and not added_forms and not moved_forms:
        yield Difference(old.text, new.text, "other words", is_change=False)


def _is_same_number(old: Form, new: Form) -> bool:
    """Whether two values are one number, and only one of them has a word after it that it counts."""
    return old.text == new.text and old.text.lower() in (old.key, new.key)


def _may_replace(old: Form, new: Form) -> bool:
    """Whether a form is in another's place: both numbers or codes, or both names."""
    numeric = (FormKind.VALUE, FormKind.CODE)
    return old.kind is new.kind or (old.kind in numeric and new.kind in numeric)
