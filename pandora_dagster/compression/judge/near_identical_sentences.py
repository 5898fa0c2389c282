"""Sentences that are a sentence of the source but for one thing: a denial more or less, another word, two words in exchange.

Knows sentences as rows of words, in a script without blanks as rows of letters; knows no synonyms, so that only what stands
otherwise word for word is judged. Pure.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pandora_dagster.compression.words.normalization import has_other_script, key
from pandora_dagster.compression.words.word_classes import FALLING, NEGATIONS, PREPOSITIONS, RISING, STOP_WORDS, stem, word_set

DENIED, OTHER_WORD, EXCHANGED, OTHER_NUMBER, NO_EXCEPTION = (
    "negation turned around",
    "another word stands there",
    "words changed places",
    "another number stands there",
    "an exception is left out",
)
_COMMON = 300
"""Sentences with a word at most, for it to lead to them."""
_RAREST = 5
"""Words that lead to the others: a twin has all but one of them."""
_NEAR = 24
"""Sentences at most with which one is compared."""
_FEWEST_WORDS, _FEWEST_ABOUT = 5, 2
"""Words of content of which one may tell that it was put instead of another; and of which a number may."""
_FEWEST_KEPT = 3
"""Words of content that a shortened sentence has, to tell that it lost its denial."""
_LONGEST = 80
_REACH = 4
"""Words before a `but` that excepts from all."""
_ALIKE = 4
"""Letters at their beginning that forms of one word share."""
_CONTRACTED = re.compile(r"(?:(?<=ca)n|(?<=wo)n|n)['\u2019]t\b")
_OBLIGED = re.compile("なければな(?:らない|りません)|なくてはな(?:らない|りません)|ないといけ(?:ない|ません)|不得不")
"""Two denials that bind together and deny nothing."""
_KANA = re.compile("[\u3041-\u30ff]")
_HIRAGANA = re.compile("[\u3041-\u309f]")
_DENIAL_ENDS = re.compile("ない|ません|なかった|なく|ずに")
_DENIAL_SIGNS = frozenset("不没沒未無无")
_FREE_SIGNS = re.compile("可以|能够|能|得|会|會|要|已经|已經|已|了|还|還|尚|仍|有|的|过|過|地|着")
"""Signs of manner and of time beside a denial: `没有完成` denies `完成了`."""
_NOBODY = word_set("nobody none nothing niemand nichts keiner nadie nessuno")
_WITHOUT = word_set("without ohne sans sin senza")
_ALONE = (NEGATIONS | _NOBODY) - _WITHOUT - {"ne", "n'est", "nor"}
_FREE = word_set(
    "a an the any do does did has have had is are was were be been yet still already even just ever now so far ne n"
) | word_set("ein eine einen einem einer eines noch schon bereits mehr encore déjà plus todavía aún ya ancora già più")
"""Words that come and go with a denial, and make no other sentence."""
_UNTIL, _FROM, _ON = word_set("by before until till bis vor"), word_set("after since from ab seit nach"), word_set("on at in am im um")
_BUT, _WITH = word_set("but except excepting save außer sauf excepto tranne"), word_set("and or plus including und oder et y e")
_ALL = word_set("all every each everyone everybody everything any anyone no none alle alles jeder jede tous toutes todos tutti")
_MUTUAL = word_set(
    "met meet meets meeting marry marries married friend friends colleague neighbour cousin sibling twin with between same equal equals "
    "like resembles differs borders"
)
"""Words that tell the same of both."""
_MARK = re.compile(r"[,;、，；]|(?<!\w)(?:and|or|und|oder|et|ou|y|o|e)(?!\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Row:
    """A sentence: its words in order, those that are more than form, and how it denies."""

    text: str
    words: tuple[str, ...]
    content: tuple[str, ...]
    denials: tuple[int, int]

    @classmethod
    def of(cls, text: str) -> "_Row":
        plain = _CONTRACTED.sub(" not", text.replace("cannot", "can not")) if "'" in text or "\u2019" in text or "cannot" in text else text
        if has_other_script(plain):
            return cls._of_signs(plain)
        words = tuple(key(plain).split())
        denials = int(any(word in _ALONE for word in words)), sum(word in _WITHOUT for word in words)
        content = tuple(stem(w) for w in words if w not in _FREE and w not in _ALONE and w not in _WITHOUT)
        return cls(text, words, content, denials)

    @classmethod
    def _of_signs(cls, text: str) -> "_Row":
        words = tuple(key(text).split())
        plain = _OBLIGED.sub("", text)
        is_japanese = bool(_KANA.search(plain))
        number = sum(sign in _DENIAL_SIGNS for sign in plain) + (len(_DENIAL_ENDS.findall(plain)) if is_japanese else 0)
        bare = (_HIRAGANA if is_japanese else _FREE_SIGNS).sub("", "".join(sign for sign in plain if sign not in _DENIAL_SIGNS))
        return cls(text, words, tuple(key(bare).split()), (number, 0))


class SentenceIndex:
    """The sentences of a source, by their words."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self._texts = tuple(dict.fromkeys(sentences))
        self._rows: dict[int, _Row] = {}

    @cached_property
    def _with(self) -> dict[str, list[int]]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(self._texts):
            for word in set(key(text).split()):
                found[word].append(number)
        return found

    def _row(self, number: int) -> _Row:
        if number not in self._rows:
            self._rows[number] = _Row.of(self._texts[number])
        return self._rows[number]

    def change(self, sentence: str) -> str:
        """What is other in a sentence than in its twin of the source, "" where it has none, and where the source has it so too."""
        one = _Row.of(sentence)
        if not one.content or len(one.words) > _LONGEST:
            return ""
        near = list(self._near(one))
        if any(_lacks_exception(one, other) for other in near):
            return NO_EXCEPTION
        if any(_bears_out(other, one) for other in near):
            return ""
        return next((reason for other in near if (reason := _difference(one, other))), "")

    def _near(self, one: _Row) -> Iterator[_Row]:
        """Sentences with most of the words, the nearest first."""
        wanted = [word for word in dict.fromkeys(one.words) if word not in STOP_WORDS and word not in _FREE]
        rarest = sorted((places for word in wanted if (places := self._with.get(word))), key=len)[:_RAREST]
        votes = Counter(number for places in rarest for number in places[:_COMMON])
        least = max(1, len(rarest) // 2)
        yield from (self._row(number) for number, shared in votes.most_common(_NEAR) if shared >= least)


def _bears_out(source: _Row, one: _Row) -> bool:
    """Whether a sentence is another one of the source, or that one with words left out."""
    if source.denials != one.denials:
        return False
    return _stands_in(one, source)


def _stands_in(one: _Row, other: _Row) -> bool:
    rest = iter(other.words)
    return all(word in rest for word in one.words)


def _lacks_exception(one: _Row, other: _Row) -> bool:
    """Whether a sentence says of all what another says of all but some."""
    place = next(
        (n for n, word in enumerate(other.words) if word in _BUT and _is_of_all(other.words, n, _REACH if word == "but" else n)), 0
    )
    if not place or _BUT & set(one.words) or one.words[:place] != other.words[:place] or len(one.words) < place:
        return False
    return one.words[place:] == other.words[len(other.words) - len(one.words) + place :]


def _is_of_all(words: Sequence[str], place: int, reach: int) -> bool:
    return any(word in _ALL for word in words[max(0, place - reach) : place])


def _difference(one: _Row, other: _Row) -> str:
    if one.content == other.content and len(one.content) > 1:
        return DENIED if one.denials != other.denials else ""
    if one.words[0] in _NOBODY and not any(other.denials) and other.content[-len(one.content) :] == one.content:
        return DENIED
    if _drops_denial(one, other):
        return DENIED
    if one.denials != other.denials or len(one.words) != len(other.words):
        return ""
    places = [n for n, (a, b) in enumerate(zip(one.words, other.words, strict=True)) if a != b]
    if len(places) == 1:
        return _replaced(one, other, places[0])
    return EXCHANGED if Counter(one.words) == Counter(other.words) and _is_exchange(one, other) else ""


def _drops_denial(one: _Row, other: _Row) -> bool:
    """Whether a shortened sentence has the very words that the whole one denies, and no denial."""
    if any(one.denials) or not other.denials[0] or len(one.content) < _FEWEST_KEPT:
        return False
    rest = iter(other.content)
    if not all(word in rest for word in one.content):
        return False
    behind = (other.words[n + 1 :] for n, word in enumerate(other.words) if word in _ALONE)
    denied = {stem(next((word for word in words if word not in _FREE), "")) for words in behind}
    return bool(denied) and denied <= set(one.content)


def _replaced(one: _Row, other: _Row, place: int) -> str:
    """What it means that one word stands instead of another."""
    here, there = one.words[place], other.words[place]
    about = _about(w for n, w in enumerate(one.words) if n != place)
    if here[:1].isdigit() or there[:1].isdigit():
        is_number = here.isdecimal() and there.isdecimal() and here.lstrip("0") != there.lstrip("0")
        return OTHER_NUMBER if is_number and about >= _FEWEST_ABOUT else ""
    if not (here.isalpha() and there.isalpha()) or has_other_script(here):
        return ""
    if here in STOP_WORDS or there in STOP_WORDS:
        return OTHER_WORD if about >= _FEWEST_ABOUT and _binds_otherwise(one.words, here, there, place) else ""
    return OTHER_WORD if about + 1 >= _FEWEST_WORDS and not _is_form(here, there) else ""


def _about(words: Iterable[str]) -> int:
    return sum(word not in STOP_WORDS and not word.isdecimal() for word in words)


def _binds_otherwise(words: Sequence[str], here: str, there: str, place: int) -> bool:
    """Whether one small word for another is another time or takes in what was excepted."""
    if any(a in _BUT and b in _WITH for a, b in ((here, there), (there, here))):
        return _is_of_all(words, place, _REACH)
    behind = words[place + 1] if place + 1 < len(words) else ""
    return bool(behind[:1].isdigit()) and here in PREPOSITIONS and _way(here) != _way(there) and 0 not in (_way(here), _way(there))


def _way(word: str) -> int:
    return next((n for n, ways in enumerate((_UNTIL, _FROM, _ON), 1) if word in ways), 0)


def _is_form(one: str, other: str) -> bool:
    """Whether two words may be forms or spellings of one."""
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if any(one in ways and other in ways for ways in (RISING, FALLING)):
        return True
    return stem(one) == stem(other) or shared >= min(_ALIKE, len(one), len(other)) or one in other or other in one


def _is_exchange(one: _Row, other: _Row) -> bool:
    """Whether two runs of words stand in each other's place, with words between that belong to each, and that tell not of both alike.
    Clauses in another order tell the same."""
    if _clauses(one.text) == _clauses(other.text):
        return False
    a, b = list(one.words), list(other.words)
    while a and a[0] == b[0]:
        del a[0], b[0]
    while a and a[-1] == b[-1]:
        del a[-1], b[-1]
    found = next(_exchanged(a, b), None)
    if found is None:
        return False
    first, between, last = found
    told = [word for word in between if word not in STOP_WORDS]
    if not has_other_script(one.text) and (not told or any(word in _MUTUAL for word in between)):
        return False
    return not (_is_item(first, between, one.text) and _is_item(between, last, one.text))


def _clauses(text: str) -> Counter[str]:
    return Counter(clause for part in _MARK.split(text) if (clause := key(part)))


def _exchanged(a: list[str], b: list[str]) -> Iterator[tuple[list[str], list[str], list[str]]]:
    for i in range(1, len(a) // 2 + 1):
        if a[:i] == b[len(b) - i :]:
            for j in range(1, len(a) - i):
                if a[len(a) - j :] == b[:j] and a[i : len(a) - j] == b[j : len(b) - i]:
                    yield a[:i], a[i : len(a) - j], a[len(a) - j :]


def _is_item(left: Sequence[str], right: Sequence[str], text: str) -> bool:
    """Whether a comma or an `and` parts two runs of words: then they are members of a list, which has no order."""
    if _MARK.fullmatch(left[-1]) or _MARK.fullmatch(right[0]):
        return True
    joint = r"[^\w]*?[,;、，；:][^\w]*?".join((re.escape(left[-1]), re.escape(right[0])))
    return bool(re.search(joint, text, re.IGNORECASE))
