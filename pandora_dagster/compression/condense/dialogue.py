"""Condenses talk between named people: each sentence stands verbatim, or without its function words, or not at all.

Knows `Name: text` lines and plain lines (dates, headings). Gain of a sentence = new words + new pairs of words + new hard
facts, per token; more for what is settled, less for what is asked, and hardly any for what is only polite. Pure, deterministic,
linear in the text.
"""

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pandora_dagster.compression.condense.budget_selection import Selection, Unit
from pandora_dagster.compression.facts.fact_statements import DECISION, forced
from pandora_dagster.compression.facts.retractions import SpokenSentence, answers
from pandora_dagster.compression.facts.value_finder import find_values
from pandora_dagster.compression.read.dialogue_lines import Line, read_lines
from pandora_dagster.compression.words.courtesy import is_courtesy
from pandora_dagster.compression.words.hinted_patterns import hinted
from pandora_dagster.compression.words.normalization import key, words
from pandora_dagster.compression.words.sentence_compression import telegraph
from pandora_dagster.compression.words.word_classes import FUNCTION_WORDS, STOP_WORDS, is_negation, stem
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.language.sentences import mask_inner_points

_SENTENCE = re.compile(r"(?<=[.!?。！？؟])(?<!\b[A-HJ-Z]\.)[\"')\]]*\s+|(?<=[。！？؟])")
"""An initial (`J. Smith`) ends nothing."""
_FORM = 0.3
"""Of another form of a word (`painted` beside `painting`): it tells when, or how many."""
_HARD, _PAIR, _REPEATED, _MUST = 12.0, 0.2, 0.4, 1_000.0
"""A word that is new is worth 1 and grows with the logarithm of its pieces; a hard fact, a pair of words near each other."""
_LIMIT, _SETTLED = 1.0, 2.0
"""Of a piece that limits or forbids something, and of one that settles or promises something, beside its words."""
_ASKED, _REMARKED, _POLITE = 0.7, 0.8, 0.15
"""Of its worth, what a question counts (what is so stands in the answer), a remark on what the other has said, and a set phrase of
politeness."""
_GENERAL = 0.7
"""Of a sentence in which the speaker tells nothing of anybody that is here."""
_OWN = re.compile(r"\b(?:I|my|me|mine|we|our|us|he|she|his|her|they|their)\b", re.IGNORECASE)
_NAMING = 0.5
"""Of a set phrase that names somebody or something."""
_REMARK = re.compile(
    r"\W*(?:wow|oh|aw+|yeah|haha|lol)?\W*(?:(?:that|it|this|you|those|they)(?:'|\u2019)?(?:s|re)?\b|sounds?\b|"
    r"i(?:'|\u2019)m (?:so )?(?:glad|happy|proud)|glad\b|hope\b|keep\b|can(?:'|\u2019)t wait)",
    re.IGNORECASE,
)
_PROMISED = hinted(
    re.compile(
        r"\b(?:I|we)(?:(?:'|\u2019)ll| will| shall)\b|\b(?:agreed|deal|booked|promised?|deadline|due)\b|\bin favou?r\b|"
        r"\bby (?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
        re.IGNORECASE,
    ),
    "'ll|\u2019ll| will| shall|agreed|deal|booked|promise|deadline|due|in favo|by ",
)
"""What somebody takes on, beside the words of deciding."""
_LONG_TALK = 150
"""Lines of talk from which on a legend of short names is worth reading."""
_LINE_TOKENS = 4.0
"""What opening a line costs: its speaker, and the reader's change of subject."""
_LEAST = 0.02
_ROUNDS, _SMALLEST = 5, 4
"""Joining pieces saves tokens: what was saved is spent in further rounds, while more than this is left."""
_LONGEST_SENTENCE = 1_200
_WHOLE = 25
"""Words of a sentence that stands rather as it was said, where there is room."""
_LEAST_WORDS = 2
"""Words of content, other than the speakers' names, that a piece without a hard fact needs to tell anything."""
_ENDS, _CALLS = " .,;!", "?"
"""What a piece ends with that `; ` stands for, and what stays."""
_STOPS, _BORDERS = ".!?", ".!?;:,\"')]\u2019\u201d\u2026\u3002\uff01\uff1f\u061f"
"""What ends a sentence; what at the end of a piece sets it off from the next."""
_STEMMED_FUNCTION_WORDS = frozenset(stem(w) for w in FUNCTION_WORDS)


@dataclass(frozen=True, slots=True)
class _Manner:
    """How a piece is said, whichever form it stands in: what of its worth counts, and whether it settles or promises something."""

    factor: float
    settles: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence or clause of a line, in one of its two forms."""

    line: Line
    order: int
    text: str
    hard: frozenset[str]
    spoken: str
    """The piece as it was said."""
    manner: "_Manner"


class Dialogue:
    """Talk without credentials taken apart once, to be condensed to any number of targets. `must` are keys of values that come first."""

    def __init__(self, text: str, counter: TokenMeasure, *, must: frozenset[str] = frozenset()) -> None:
        lines = read_lines(text)
        self._counter = counter
        names = dict.fromkeys(line.speaker for line in lines if line.speaker)
        is_long = len(lines) > _LONG_TALK and not any(line.is_stamped for line in lines)
        self._names = _short_names(names) if is_long else {}
        self._legend = "; ".join(f"{short}={name}" for name, short in self._names.items())
        self._pieces = [piece for line in lines for piece in _pieces(line)]
        own = frozenset(k for name in names for k in (key(name), *key(name).split()))
        turns = _turns(lines)
        self._units, self._weights = _units(self._pieces, own, must, turns, counter)
        self._openings: dict[Hashable, float] = {
            turns[line.number]: max(_LINE_TOKENS, counter.count(self._opening(line))) for line in reversed(lines)
        }

    def condensed(self, target: int) -> str:
        """The talk in at most `target` tokens: the fullest of the rounds, the last of which is one that had to be cut back."""
        selection = Selection(self._units, self._weights, self._openings, least=_LEAST)
        best, used, left, standing = "", 0, target - self._counter.count(self._legend), list[int]()
        for _ in range(_ROUNDS):
            picked = selection.extend(left)
            text = self._composed(picked)
            if is_over := self._counter.count(text) > target:
                text = self._fitted(picked, target)
            if (tokens := self._counter.count(text)) > used:
                best, used, standing = text, tokens, picked
            left = target - tokens - 1
            if is_over or left < _SMALLEST:
                break
        return self._widened(standing, best, target)

    def _widened(self, picked: list[int], text: str, target: int) -> str:
        """The text in which sentences that lost words have them again, the dearest picks first, while there is room."""
        whole = {(piece.line.number, piece.order): number for number, piece in reversed(list(enumerate(self._pieces)))}
        left = target - self._counter.count(text)
        wider = list(picked)
        for place, number in enumerate(picked):
            piece = self._pieces[number]
            other = whole[piece.line.number, piece.order]
            more = self._units[other].tokens - self._units[number].tokens
            if other != number and more <= left and len(piece.spoken.split()) <= _WHOLE:
                wider[place] = other
                left -= more
        tried = self._composed(wider) if wider != picked else text
        return tried if text and self._counter.count(tried) <= target else text

    def _fitted(self, picked: list[int], target: int) -> str:
        """The composed text; the last of `picked` go until it fits."""
        text = self._composed(picked)
        while picked and (over := self._counter.count(text) - target) > 0:
            del picked[-max(1, over // 8) :]
            text = self._composed(picked)
        return text if picked else ""

    def _composed(self, picked: Iterable[int]) -> str:
        """Picks in their order, each behind its speaker's name; neighbours of one speaker share a line, but for lines with a time."""
        lines = [self._legend] if self._legend else []
        last: Piece | None = None
        for piece in sorted((self._pieces[n] for n in picked), key=lambda p: (p.line.number, p.order)):
            if last and last.line is piece.line and piece.order == last.order + 1:
                lines[-1] += (
                    "; "
                    if last.spoken[-1] in _STOPS
                    and lines[-1][-1] not in _BORDERS
                    and (piece.line.is_stamped or forced(last.text) or _negates(last.text) or piece.spoken[-1] == "?")
                    else " "
                ) + piece.text
            elif last and (last.line is piece.line or _goes_on(last.line, piece.line)):
                lines[-1] = (lines[-1] + " " if lines[-1][-1] in _CALLS else lines[-1].rstrip(_ENDS) + "; ") + piece.text
            else:
                lines.append(self._opening(piece.line) + piece.text)
            last = piece
        return "\n".join(lines)

    def _opening(self, line: Line) -> str:
        short = self._names.get(line.speaker)
        return f"{short}: " if short else line.opening


def _short_names(speakers: Iterable[str]) -> dict[str, str]:
    """Speaker -> the shortest beginning that is nobody else's."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for speaker in speakers:
        length = 1
        while (short := key(speaker).replace(" ", "")[:length].upper() or speaker) in taken and length < 31:
            length += 1
        names[speaker] = short
        taken.add(short)
    return names


def _goes_on(line: Line, other: Line) -> bool:
    """Whether the same person speaks, at no time of their own."""
    return bool(line.speaker) and line.speaker == other.speaker and (not other.is_stamped or other.opening == line.opening)


def _turns(lines: Sequence[Line]) -> dict[int, int]:
    """Number of a line -> of the line whose opening it shares: the first of those that one speaker says at one time."""
    turns: dict[int, int] = {}
    above: Line | None = None
    for line in lines:
        is_one = above is not None and line.is_stamped and line.opening == above.opening
        turns[line.number] = turns[above.number] if above and is_one else line.number
        above = line
    return turns


def _negates(text: str) -> bool:
    return any(is_negation(word) for word in text.split())


def _pieces(line: Line) -> Iterable[Piece]:
    spans = [(f.start, f.end, key(f.text)) for f in find_values(line.text, is_redacted=True)]
    ends = [*_borders(line.text, spans), len(line.text)]
    start = first = 0
    for order, end in enumerate(ends):
        raw = line.text[start:end]
        last = first
        while last < len(spans) and spans[last][0] < end:
            last += 1
        inside = [(a - start, b - start, k) for a, b, k in spans[first:last]]
        start, first = end, last
        if not raw.strip():
            continue
        hard = frozenset(k for _, _, k in inside if k)
        spoken, ahead = raw.strip(), len(raw) - len(raw.lstrip())
        short = telegraph(raw, [*((a, b) for a, b, _ in inside), *((a + ahead, b + ahead) for a, b in forced(spoken))])
        manner = _manner(spoken, is_hard=bool(hard))
        yield Piece(line, order, spoken, hard, spoken, manner)
        if short and short != spoken:
            yield Piece(line, order, short, hard, spoken, manner)


def _manner(spoken: str, *, is_hard: bool) -> _Manner:
    factor = 1.0
    if is_courtesy(spoken):
        factor = _NAMING if is_hard else _POLITE
    elif not is_hard and spoken.endswith("?"):
        factor = _ASKED
    elif not is_hard and _REMARK.match(spoken):
        factor = _REMARKED
    elif not is_hard and not _OWN.search(spoken):
        factor = _GENERAL
    return _Manner(factor, bool(factor >= _GENERAL and (DECISION.search(spoken) or _PROMISED.search(spoken))))


def _borders(text: str, spans: Sequence[tuple[int, int, str]]) -> list[int]:
    """Where sentences end: never inside a value; a sentence without end is cut at white space."""
    borders: list[int] = []
    ahead = iter([*spans, (len(text) + 1, len(text) + 1, "")])
    span = next(ahead)
    last = 0
    for border in (m.end() for m in _SENTENCE.finditer(mask_inner_points(text))):
        while span[1] < border:
            span = next(ahead)
        if border < len(text) and not span[0] < border <= span[1] - 1:
            borders += _cuts(text, last, border)
            borders.append(border)
            last = border
    return borders + _cuts(text, last, len(text))


def _cuts(text: str, start: int, end: int) -> list[int]:
    """Cuts in a piece longer than any sentence, at white space where there is some."""
    cuts: list[int] = []
    while end - start > _LONGEST_SENTENCE:
        space = text.rfind(" ", start + _LONGEST_SENTENCE // 2, start + _LONGEST_SENTENCE)
        start = space + 1 if space > 0 else start + _LONGEST_SENTENCE
        cuts.append(start)
    return cuts


def _units(
    pieces: Sequence[Piece], own: frozenset[str], must: frozenset[str], turns: Mapping[int, int], counter: TokenMeasure
) -> tuple[list[Unit], dict[Hashable, float]]:
    units: list[Unit] = []
    weights: dict[Hashable, float] = {}
    pieces_with: Counter[str] = Counter()
    own_stems = {stem(k) for k in own}
    for number, piece in enumerate(pieces):
        written = words(piece.text)
        spoken = [stem(w) for w in written if w not in STOP_WORDS]
        strong = [w for w in spoken if w not in _STEMMED_FUNCTION_WORDS and len(w) > 1]
        pairs = {(a, b) if a < b else (b, a) for i, a in enumerate(strong) for b in strong[i + 1 : i + 4] if a != b}
        hard = {("hard", k) for k in piece.hard if k not in own}
        weights.update(dict.fromkeys(pairs, _PAIR))
        weights.update((h, _HARD + (_MUST if h[1] in must else 0.0)) for h in hard)
        pieces_with.update(set(spoken))
        tells = hard or len({w for w in strong if w not in own_stems}) >= _LEAST_WORDS
        forms = {("form", w) for w in written if w not in FUNCTION_WORDS}
        weights.update(dict.fromkeys(forms, _FORM))
        facts = (*dict.fromkeys(spoken), *sorted(pairs), *sorted(forms), *sorted(hard)) if tells else ()
        units.append(_unit(piece, number, facts, turns[piece.line.number], counter))
    weights.update((w, 1.0 + _REPEATED * math.log(count)) for w, count in pieces_with.items())
    return _with_needs(units, pieces), weights


def _with_needs(units: Sequence[Unit], pieces: Sequence[Piece]) -> list[Unit]:
    """Units with those that take back, refuse or move what they say, in the shorter form of these."""
    forms: dict[tuple[int, int], list[int]] = {}
    for number, piece in enumerate(pieces):
        forms.setdefault((piece.line.number, piece.order), []).append(number)
    spoken = list(forms.values())
    said = [SpokenSentence(pieces[form[0]].spoken, pieces[form[0]].line.number, pieces[form[0]].line.speaker) for form in spoken]
    found = list(units)
    for one, others in answers(said).items():
        needs = tuple(spoken[other][-1] for other in others)
        for number in spoken[one]:
            found[number] = replace(units[number], needs=needs)
    return found


def _unit(piece: Piece, number: int, facts: tuple[Hashable, ...], turn: int, counter: TokenMeasure) -> Unit:
    tokens = counter.count(" " + piece.text)
    manner = piece.manner
    bonus = _LIMIT * bool(forced(piece.text)) + _SETTLED * manner.settles if facts and manner.factor >= _GENERAL else 0.0
    return Unit(piece.text, tokens, facts, number, turn, (piece.line.number, piece.order), bonus=bonus, factor=manner.factor)
