"""Splitting of a text into sentences. Abbreviations, prices and ordinal dates (`3. Januar`) do not end one; no character is changed."""

import re
from collections.abc import Callable, Iterable, Iterator

import sentencex  # pyright: ignore[reportMissingTypeStubs]

from pandora_dagster.language.dates import month_number
from pandora_dagster.language.stop_words import stop_words

# Points that end no sentence: of abbreviations, initials, ordinals and days, in English, German, French, Spanish and Italian.
# Closed word classes and forms of writing only, made from no data set.

_DAY_NUMBER = r"(?:0?[1-9]|[12]\d|3[01])"
_DAY_WORDS = "am vom bis zum ab seit der den dem des im das die beim nach vor und oder"
_BEFORE_DAYS = _DAY_WORDS.split()
_ABBREVIATIONS = (
    r"Dr|Mr|Mrs|Ms|Prof|Dipl|Ing|Hr|Fr|Fa|St|Nr|Abs|Ziff|Tel|Str|bzw|ca|evtl|ggf|inkl|incl|exkl|excl|zzgl|vgl|gem|lt|max|min|approx|vs|cf|"
    r"tel|fax|nos?(?=\.\s\d)|Mme|Mlle|Sr|Sra|Srta|Sig|Dott|Avv|Ing|resp|sog|Mio|Mrd|pp|Art(?=\.\s\d)|No(?=\.\s\d)|Fig(?=\.\s\d)|Sec(?=\.\s\d)|S(?=\.\s\d)"
)
_WIDE_ENDS = "。！？…」』"
_segment: Callable[[str, str], Iterable[str]] = sentencex.segment  # pyright: ignore
_UNCONDITIONAL_ABBREVIATIONS = "|".join(word for word in _ABBREVIATIONS.split("|") if "?=" not in word)
_LIST_MARK = re.compile(r"\s*(?:[(\[]\w{1,4}[)\]]|\d{1,3}[.)]|[A-Za-z][.)])\s+(?=\S)")
_WINDOW_CHARACTERS = 4_000
"""Characters that the splitter gets at a time."""
_CONTEXT_CHARACTERS = 24
"""Characters before and behind a point that decide whether it ends a sentence."""
_ABBREVIATED_WORD = re.compile(rf"(?:.*[^\w.])?(?:(?:{_UNCONDITIONAL_ABBREVIATIONS})|(?!(?:a|p)\.m)[a-zà-ÿ]|[b-oq-z]\.[A-Za-z])\.")
"""`Dr.`, `z.`, `z.B.`"""
_NUMBERED, _BARE_DAY = re.compile(r"\d{1,2}\."), re.compile(rf"{_DAY_NUMBER}\.(?:0?[1-9]|1[0-2])\.")
_BEFORE_NUMBERS = frozenset((*_BEFORE_DAYS, "jeder", "jeden", "jedem", "jedes", "-", "*", "•", "–"))
_LETTER_POINT = re.compile(r"\W?[b-oq-z]\.")
_INITIAL, _FIRST_NAME = re.compile(r"(?<![\w.°])(?<!\b[Pp]lan )[A-HJ-Z]\.$"), re.compile(r"[A-ZÄÖÜ][a-zäöüéß]+")
_SHORT_WORD, _NUMBER_START = re.compile(r"(?<![\w.])[^\W\d_]{1,4}\.$"), re.compile(r"[A-Z]{0,4}\d")
"""`ok. 450`, `Fig. 3`, `Réf. ML2`: a word so short before a number may be an abbreviation of any language."""
_DAY_POINT = re.compile(rf"(?<![\w.])(?:{_DAY_NUMBER}|{_DAY_NUMBER}\.(?:0?[1-9]|1[0-2]))\.$")
_FIRST_WORD = re.compile(r"[^\W\d_]+\b")
_OPERATOR_END = re.compile(r"[\w)] ?[-+*/=<>(]$")
"""What an operand follows: in `(6 - 4) + 2` no list begins with `4)`."""


def sentences(text: str, language: str = "") -> tuple[str, ...]:
    """The sentences of `text` in order, each verbatim without the blanks around it; a line break always ends one."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line[start:end] for line in lines for start, end in sentence_spans(line, language))


def sentence_spans(text: str, language: str = "") -> Iterator[tuple[int, int]]:
    """Start and end of each sentence of a paragraph without line breaks, without the blanks around it.

    What the splitter parts without a blank between (`io.BytesIO`) is one sentence, except behind `。！？`.
    """
    sentence_start, stops = 0, stop_words(language) | stop_words("en")
    for at in _split_positions(text, language or "en"):
        is_apart = at >= len(text) or text[at - 1].isspace() or text[at].isspace()
        if at >= len(text) or text[at - 1] in _WIDE_ENDS or (is_apart and not _continues(text, at, stops)):
            start, end = _strip_span(text, sentence_start, at)
            if start < end:
                yield start, end
            sentence_start = at


def _split_positions(text: str, language: str) -> Iterator[int]:
    """Where the splitter ends sentences. It takes a window at a time, as its time grows with the square of the sentences in one text."""
    list_mark = _LIST_MARK.match(text)  # "(3) Das gilt. Das nicht." is one sentence for the splitter
    at = list_mark.end() if list_mark else 0
    while at < len(text):
        window = text[at : at + _WINDOW_CHARACTERS]
        parts = list(_segment(language, window))
        is_last = at + len(window) == len(text)
        for part in parts if is_last or len(parts) < 2 else parts[:-1]:
            at += len(part)
            if is_last or len(parts) > 1:
                yield at
        if is_last:
            break


def _continues(text: str, at: int, stops: frozenset[str]) -> bool:
    """Whether what the splitter parts at `at` is one sentence; one of the words `stops` with a capital letter opens another one."""
    before, after = text[max(0, at - _CONTEXT_CHARACTERS) : at].rstrip(), text[at : at + _CONTEXT_CHARACTERS].lstrip()
    if not before.endswith("."):
        return bool(_OPERATOR_END.search(before))
    words = ["", *before.split()]
    earlier, last = words[-2], words[-1]
    if _ABBREVIATED_WORD.fullmatch(last) or (len(last) == 2 and last[0].isalpha() and _LETTER_POINT.fullmatch(earlier)):
        return True
    if earlier in _BEFORE_NUMBERS and (_NUMBERED.fullmatch(last) or _BARE_DAY.fullmatch(last)):
        return True
    if _INITIAL.search(before):
        name = _FIRST_NAME.match(after)
        return name is not None and name[0].lower() not in stops
    if _DAY_POINT.search(before):
        word = _FIRST_WORD.match(after)
        return after[:1].islower() or (word is not None and word[0] != "May" and month_number(word[0]) > 0)  # `May` begins questions
    return bool(_NUMBER_START.match(after) and _SHORT_WORD.search(before))


def _strip_span(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())
