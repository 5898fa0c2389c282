"""What a question is about, and whether a span is about that or about another thing of its kind. Rules over words and their places.

`tomato soup`, `limit for hotels`, `Hotel Belvedere`: what tells a thing from its like must stand where the answer stands.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pandora_dagster.language.dates import MONTH_WORD, WEEKDAYS
from pandora_dagster.language.sentences import sentences
from pandora_dagster.language.stop_words import FOREIGN_STOP_WORDS, language_of
from pandora_dagster.language.terms import prefix_of
from pandora_dagster.language.word_forms import IRREGULAR_BASES
from pandora_dagster.runtime.extractive.spans.document_spans import Span
from pandora_dagster.runtime.extractive.words.empty_texts import asks
from pandora_dagster.runtime.extractive.words.query_intent import KIND_WORDS, Question, asks_of_asking
from pandora_dagster.runtime.extractive.words.word_matching import LIGHT_VERBS, META_WORDS, STOP_WORDS, WORD, stem, terms, word_set, words

_KINDS = word_set(
    "kind kinds sort sorts type types name names way ways part parts thing things lot lots number numbers"
    " myself yourself himself herself itself ourselves themselves"
)
"""Words that tell no thing from its like."""
_KIND_STEMS = frozenset(map(stem, _KINDS))
_ASKING = re.compile(r"\?\s*$|^\W*(?:what|which|who|whom|whose|where|when|why|how|is|are|was|were|do|does|did|can|could|has|have)\b", re.I)
_ASIDE = re.compile(r"\b(?:do|does|did|can|could|has|have|had|will|would|should)\b", re.IGNORECASE)
_OF = re.compile(r"^\s+(?:for|of)\s+(?:(?:the|a|an|my|our|your|his|her|their|this|that)\s+)?$", re.IGNORECASE)
_DID = re.compile(r"\bdid (?:i|we) (?:\w+ly |already |ever )?([a-z]{3,})\b", re.IGNORECASE)
_OWN_DEED = re.compile(r"\b(?:i|we)(?:['’]ve| have| had| just| already)* (?:\w+ly )?(\w+)\b", re.IGNORECASE)
_MONTH = re.compile(MONTH_WORD, re.IGNORECASE)
_MOST_SENTENCES = 3


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing that a question names. `telling` are the stems that tell it from others of its kind, whose name is `head`."""

    words: str
    """As the question says it."""
    telling: frozenset[str]
    head: str = ""
    linked: bool = False
    """Told apart by what follows: `limit for hotels`."""

    @property
    def is_name(self) -> bool:
        return not self.head


@dataclass(frozen=True, slots=True)
class Aboutness:
    """Which spans speak of something else than the question, and what the question names that nothing speaks of."""

    others: frozenset[int]
    """Places in the sequence of spans."""
    unmet: tuple[Thing, ...]


@dataclass(frozen=True, slots=True)
class _Token:
    word: str
    start: int
    end: int

    @property
    def stem(self) -> str:
        """Without the tail of a possessive."""
        return stem((words(self.word) or [self.word])[0])

    @property
    def is_name(self) -> bool:
        return self.word[:1].isupper() or any(c.isdigit() for c in self.word)


def things(asked: Question) -> tuple[Thing, ...]:
    """The names, and the nouns that another noun tells apart, in the question of a query of a few sentences."""
    found: list[Thing] = []
    lines = [s for s in sentences(asked.text) if _ASKING.search(s)]
    for line in lines if len(lines) <= _MOST_SENTENCES else ():
        runs = _runs(line, asked)
        for place, run in enumerate(runs):
            found += _named(line, run, opens=place == 0)
        for one, other in pairwise(runs):
            if _OF.match(line[one[-1].end : other[0].start]) and not one[-1].is_name and one[-1].word.lower() not in _KINDS:
                telling = frozenset(t.stem for t in _nouns(line, other))
                found += [Thing(line[one[-1].start : _nouns(line, other)[-1].end], telling, one[-1].stem, linked=True)]
    return tuple(dict.fromkeys(found))


def _runs(line: str, asked: Question) -> list[list[_Token]]:
    """The content words of a sentence, those together that only blanks part."""
    named = {t for kind in asked.wants for t in KIND_WORDS.get(kind, ())}
    silent = STOP_WORDS | META_WORDS | LIGHT_VERBS | FOREIGN_STOP_WORDS.get(language_of(frozenset(words(line))), STOP_WORDS)
    runs: list[list[_Token]] = []
    before = -1
    for m in WORD.finditer(line):
        bare = (words(m.group()) or [""])[0]
        token = _Token(m.group(), m.start(), m.end())
        if bare in silent or (stem(bare) in named and not token.is_name):
            continue
        if runs and line[before : token.start].strip("-") in ("", " "):
            runs[-1].append(token)
        else:
            runs.append([token])
        before = token.end
    return runs


def _nouns(line: str, run: Sequence[_Token]) -> Sequence[_Token]:
    """A run without the verb that ends it where the sentence has its auxiliary before: `did the tomato soup boil`."""
    ends = len(run) > 1 and not run[-1].is_name and _ASIDE.search(line[: run[0].start])
    return run[:-1] if ends and not line[run[-1].end :].strip(" ?.!") else run


def _named(line: str, run: Sequence[_Token], *, opens: bool) -> list[Thing]:
    """The names of a run, each by itself, and its other words: the last is what the thing is, those before tell which."""
    found: list[Thing] = []
    at = 0
    while at < len(run):
        end = at
        while end < len(run) and run[end].is_name == run[at].is_name:
            end += 1
        part = run[at:end]
        if part[0].is_name:
            if not (opens and part[0].start == 0 and len(part) == 1) and not all(_is_calendar(p.word) for p in part):
                found.append(Thing(line[part[0].start : part[-1].end], frozenset(t for p in part for t in terms(p.word))))
        elif len(nouns := _nouns(line, part)) > 1:
            telling = frozenset(t.stem for t in nouns[:-1] if t.word.lower() not in _KINDS)
            found += [Thing(line[nouns[0].start : nouns[-1].end], telling, nouns[-1].stem)] if telling else []
        at = end
    return [t for t in found if t.telling]


def _is_calendar(word: str) -> bool:
    """A number, a month or a day of the week: a time that a text may tell in other words."""
    return word.isdigit() or bool(_MONTH.fullmatch(word)) or word.lower() in WEEKDAYS


def aboutness(asked: Question, spans: Sequence[Span]) -> Aboutness:
    """How `spans` stand to what the question names. Who speaks is no thing; a source tells of what any of its spans names."""
    speaking = frozenset(t for s in spans for t in terms(s.speaker))
    named = [t for t in things(asked) if not (t.is_name and t.telling <= speaking)]
    if not named or not spans:
        return Aboutness(frozenset(), ())
    silent = frozenset[int]() if asks_of_asking(asked.text) else frozenset(i for i, s in enumerate(spans) if asks(s.text))
    reach = _reach(spans, silent)
    others: set[int] = set()
    unmet: list[Thing] = []
    for thing in named:
        wrong = {i for i, s in enumerate(spans) if _is_other(thing, s, reach[_source(s)])}
        told = any(_holds(thing.telling, own) for own in reach.values())
        if thing.is_name:
            others |= wrong if told else set()
            unmet += [] if told else [thing]
        else:
            wanted = thing.telling if thing.head in _KIND_STEMS else {*thing.telling, thing.head}
            near = any(_holds(wanted, s.stems | s.about) for i, s in enumerate(spans) if i not in silent)
            headed = any(_holds({thing.head}, own) for own in reach.values())
            others |= wrong
            unmet += [thing] if not near and headed and (wrong or not told) else []
    return Aboutness(frozenset(others), tuple(unmet))


def nearest(asked: Question, unmet: Sequence[Thing], spans: Sequence[Span]) -> list[Span]:
    """The spans that come near to things that none tells of: they name a part of one, or share two words with the question.
    People who talk with each other say things in words of their own: all that they said may be near."""
    parts = {t for thing in unmet for t in (*thing.telling, thing.head) if t.isalpha()}
    return [s for s in spans if s.speaker or parts & s.stems] or [s for s in spans if len(s.stems.intersection(asked.stems)) > 1]


def undone(asked: Question, spans: Sequence[Span]) -> bool:
    """Whether the question asks what the person did (`which hotel did I book`) and no span tells that deed."""
    found = _DID.search(asked.text)
    deed = found.group(1).lower() if found else ""
    if not deed or deed in LIGHT_VERBS or deed in META_WORDS or deed in STOP_WORDS:
        return False
    return not any(_does(deed, s.text) for s in spans if not asks(s.text))


def own_deeds(spans: Sequence[Span]) -> list[Span]:
    """The spans in which the person tells of something done: the nearest to a deed that none of them tells."""
    return [s for s in spans if any(w.endswith("ed") or w in IRREGULAR_BASES for w in _OWN_DEED.findall(s.text.lower()))]


def _does(deed: str, text: str) -> bool:
    return any(IRREGULAR_BASES.get(w, w) == deed or stem(w) == stem(deed) for w in words(text))


def _source(span: Span) -> str:
    return span.label or f"block {span.block}"


def _reach(spans: Sequence[Span], silent: frozenset[int]) -> Mapping[str, frozenset[str]]:
    """The stems that each source tells; what is only asked there, in the places `silent`, is not told."""
    found: dict[str, set[str]] = {}
    for place, span in enumerate(spans):
        found.setdefault(_source(span), set()).update(span.about if place in silent else span.stems | span.about)
    return {source: frozenset(stems) for source, stems in found.items()}


def _holds(wanted: frozenset[str] | set[str], stems: frozenset[str]) -> bool:
    """Whether every stem stands there, or one that begins alike."""
    missing = [t for t in wanted if t not in stems]
    if not missing:
        return True
    heads = {prefix_of(t) for t in stems} - {""}
    return all(prefix_of(t) in heads for t in missing)


def _is_other(thing: Thing, span: Span, reach: frozenset[str]) -> bool:
    """Whether a span speaks of another thing of that kind. Among people who talk a name holds over many turns."""
    if span.speaker:
        return False
    if thing.is_name:
        return not _holds(thing.telling, reach)
    return thing.head in span.stems and not _holds(thing.telling, span.stems | span.about) and _tells_another(thing, span.text)


def _tells_another(thing: Thing, text: str) -> bool:
    """Whether the kind's name stands in `text` with another word in the place of those that tell this thing."""
    said = words(text)
    key = frozenset(terms(text.partition(":")[0].replace("_", " "))) if "_" in text.partition(":")[0] else frozenset[str]()
    if thing.head in key and key - {thing.head} - thing.telling:
        return True
    for place, word in enumerate(said):
        if stem(word) != thing.head:
            continue
        before = said[place - 1] if place else ""
        after = [w for w in said[place + 1 : place + 4] if w not in ("the", "a", "an", "my", "our", "your")]
        if before and before not in STOP_WORDS and before not in META_WORDS and stem(before) not in thing.telling:
            return True
        if len(after) > 1 and after[0] in ("for", "of") and stem(after[1]) not in thing.telling:
            return True
    return False
