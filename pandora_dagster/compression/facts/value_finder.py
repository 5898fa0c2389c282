"""Where the values of a prose text stand: money, dates, identifiers, links, quotes, names. One scan, linear in the text.

Knows forms; knows nothing of rank, subject or source. Credentials are no values: they are left out here, for everyone.
"""

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pandora_dagster.compression.facts.fact_types import NUMERIC, FactKind
from pandora_dagster.compression.words.european_forms import DAY_AND_MONTH, DECIMAL_COMMA, NAMED_DATE, UNITS
from pandora_dagster.compression.words.normalization import has_other_script, key, plain, unlettered, words
from pandora_dagster.compression.words.word_classes import FALLING, OPENERS, RISING
from pandora_dagster.documents.redaction.credentials import credential_spans
from pandora_dagster.language.sentences import mask_inner_points

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|"
    r"Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_ENGLISH = r"\d+(?:,\d{3})*(?:\.\d+)?"
_NUMBER = rf"(?:{DECIMAL_COMMA}|{_ENGLISH})"
_SIGN = r"(?:[\-\u2212](?=[$€£¥\d]))?"
_SCALE = r"(?: ?(?:hundred|thousand|million|billion|trillion)\b)?"
_PER = (
    r"(?: ?(?:per |an? |/ ?|pro |im |je |par |por |al )(?:second|minute|hour|night|day|week|month|quarter|year|person|user|seat|"
    r"Stunde|Tag|Nacht|Woche|Monat|Jahr|Person|jour|mois|an|día|mes|año|mese|anno)\b)?"
)
"""What an amount is for is a part of it: `$4,200 per month`."""
_UNIT = (
    r"(?:tokens?|bytes?|[kKMGT]i?B|GHz|MHz|Hz|ms|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|months?|years?|km|cm|mm|nm|"
    r"miles?|meters?|metres?|feet|ft|inch(?:es)?|kg|mg|g|lbs?|pounds?|ounces?|oz|liters?|litres?|ml|watts?|kW|W|V|people|persons?|users?|"
    rf"items?|bags?|pieces?|times|pages?|rows?|lines?|calls?|points?|stars?|degrees?|x|{UNITS})(?!\w)"
)
_FORMS = (
    (FactKind.URL, r"(?:[A-Za-z][A-Za-z\d+.\-]{1,15}://|www\.)[^\s<>\"'`|]*[^\s<>\"'`|.,;:!?)\]}]"),
    (FactKind.IDENTIFIER, r"[\w.+\-]{1,64}@[\w\-]{1,64}(?:\.[\w\-]{1,64})+"),
    (FactKind.EVIDENCE, r"\[\d{1,4}\](?![(\[:])"),
    (
        FactKind.DATE,
        r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+\-]\d\d:?\d\d)?)?(?!\w)"
        rf"|\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{2,4}}(?!\w)|\d\d/\d\d(?![\w/])|{DAY_AND_MONTH}",
    ),
    (
        FactKind.DATE,
        rf"{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?(?!\w)"
        rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?:,? \d{{4}})?(?!\w)|{_MONTH},? \d{{4}}(?!\w)|{NAMED_DATE}",
    ),
    (FactKind.TIME, r"\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]\.?m\b\.?)?(?!\w)|\d{1,2} ?[ap]\.?m\b"),
    (
        FactKind.MONEY,
        rf"{_SIGN}[$€£¥] ?{_NUMBER}(?: ?[kKmMbB]\b|{_SCALE}){_PER}"
        rf"|{_SIGN}(?:\d{{1,3}}(?: \d{{3}})+(?:,\d{{1,2}})?(?= ?(?:€|EUR|euros?\b))|{_NUMBER}){_SCALE}"
        rf" ?(?:(?:USD|EUR|GBP|JPY|CHF|dollars?|[Ee]uros?|EURO|pounds?|cents?|Cent)\b|[€£](?!\d)){_PER}",
    ),
    (
        FactKind.PERCENTAGE,
        rf"{_SIGN}{_NUMBER} ?(?:(?:percentage|percent|per cent|%)[ \-]points?\b|basis points?\b|bps?\b|%|"
        r"per ?cent\b|[Pp]rozent\b|pour cent\b|por ciento\b)",
    ),
    (
        FactKind.IDENTIFIER,
        r"#?(?=[\w\-./]{0,80}\d)(?=[\w\-./]{0,80}[A-Za-z_])\w[\w\-./]{0,120}\w|#\d+|\b[a-z]+(?:_[a-z]+)+\b|(?=[\w\-/]{0,161}+\.)[\w\-./]{0,80}/[\w\-./]{0,80}\.\w{1,5}\b",
    ),
    (FactKind.QUANTITY, rf"{_SIGN}{_NUMBER}{_SCALE}[ \-]?{_UNIT}"),
    (FactKind.NUMBER, rf"{_SIGN}(?:(?<![\[(,:])(?:{DECIMAL_COMMA})|{_ENGLISH}){_SCALE}(?!\w)"),
    (
        FactKind.QUOTE,
        r"\"[^\"\n]{2,120}\"|\u201c[^\u201d\n]{2,120}\u201d|\u00ab[^\u00bb\n]{2,120}\u00bb"
        r"|\u300c[^\u300d\n]{1,120}\u300d|\u300e[^\u300f\n]{1,120}\u300f|\u300a[^\u300b\n]{1,120}\u300b",
    ),
    (FactKind.NAME, r"[A-Z][\w'\u2019&\-]+(?: (?:(?:of|the|de|von|van|and) )?[A-Z][\w'\u2019&\-]+){0,4}"),
)
_PLAIN = r"[\s,;:!?)'*]|[a-z]++(?:\.?(?:\s|\Z)|[^\w.+\-@/:])"
"""No form begins there: at a blank, at a sign between words, at a word of small letters. Most of a text is such."""
_SCAN = re.compile(rf"(?<!\w)(?!{_PLAIN})(?:" + "|".join(f"(?P<f{n}>{form})" for n, (_, form) in enumerate(_FORMS)) + ")")
_MONEY_NAMES = (
    r"人民币|人民幣|元|円|圓|원|美元|美金|欧元|英镑|ドル|ユーロ|ポンド|달러|유로|"
    r"دولار|يورو|ريال|درهم|جنيه|₪|ש\"ח"
)
_COUNTED = "公斤|千克|公里|千米|小时|分钟|時間|分間|週間|周|天|日間|か月|ヶ月|个月|年間|人|名|個|个|件|台|시간|개월|명"
_OTHER_FORMS = (
    (FactKind.DATE, r"(?:\d{4} ?[年년] ?)?\d{1,2} ?[月월] ?\d{1,2} ?[日号號일]|\d{4} ?[年년] ?\d{1,2} ?[月월]|\d{4} ?年(?!\w*\d{4}年)"),
    (FactKind.TIME, r"\d{1,2} ?[時时点點시] ?\d{1,2} ?[分분]"),
    (
        FactKind.MONEY,
        rf"{_SIGN}[$€£¥]?{_NUMBER} ?[百千万萬亿億만억]* ?(?:{_MONEY_NAMES})",
    ),
    (FactKind.PERCENTAGE, rf"{_SIGN}{_NUMBER} ?(?:パーセント|퍼센트|بالمئة|بالمائة|אחוזים)"),
    (FactKind.QUANTITY, rf"{_SIGN}{_NUMBER} ?(?:[百千万萬亿億만억]+|{_COUNTED})"),
)
"""What letters of other scripts make of the number before them."""
_OTHER_SCAN = re.compile("|".join(f"(?P<f{n}>(?<![\\d.,]){form})" for n, (_, form) in enumerate(_OTHER_FORMS)))
_AMOUNT_UNIT = re.compile(rf"{_NUMBER}[ \-]?{_UNIT}")
_BEFORE_SENTENCE = re.compile(r"(?:[.!?\n*•>|\])\"]\s*|\n\s*-\s+|\d[.)]\s+|[^\w,;:\-\u2019' ] *)$")
_LABEL = re.compile(r"\n[^\n:.!?]{1,32}: $")
_BETWEEN_MEMBERS = re.compile(r"\"[\s,:{}\[\]\d.\-]*\"")
"""What stands between two strings of a JSON text: no quotation."""
_LONGEST = 400
_AHEAD = 30
_LONGEST_WORD = 80
_IN_WORD = re.compile(r"[\w+/=\-]")
"""Behind a part of a longer word: no identifier."""
_TITLE = 12
"""Characters before a name in which a title or an ordinal ends with a point."""


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A value at characters `start` to `end`."""

    kind: FactKind
    text: str
    start: int
    end: int


def find_values(text: str, *, is_redacted: bool = False) -> Iterator[FoundValue]:
    """The values of a text, in order, without overlap and without credentials; they are not looked for where `is_redacted` says
    that they were taken out before."""
    hidden = () if is_redacted else credential_spans(text)
    at = 0
    for found in _values(text):
        while at < len(hidden) and hidden[at][1] <= found.start:
            at += 1
        if at == len(hidden) or hidden[at][0] >= found.end:
            yield found


def _values(text: str) -> Iterator[FoundValue]:
    if not has_other_script(text):
        return _scanned(_SCAN, _FORMS, text, text)
    others = list(_scanned(_OTHER_SCAN, _OTHER_FORMS, plain(text), text))
    rest: list[str] = []
    end = 0
    for found in others:
        rest += [text[end : found.start], " " * (found.end - found.start)]
        end = found.end
    bare_text = unlettered("".join([*rest, text[end:]]))
    return heapq.merge(others, _scanned(_SCAN, _FORMS, bare_text, text), key=lambda found: found.start)


def _scanned(scan: re.Pattern[str], forms: tuple[tuple[FactKind, str], ...], read: str, text: str) -> Iterator[FoundValue]:
    """The values that `read`, of the same length as `text`, shows."""
    for match in scan.finditer(read):
        start, end = match.span()
        kind = forms[int((match.lastgroup or "f0")[1:])][0]
        if found := _checked(kind, text[start:end], start, text):
            yield found


def _checked(kind: FactKind, value: str, start: int, text: str) -> FoundValue | None:
    if kind is FactKind.NAME:
        return _name(value, start, text)
    if kind is FactKind.QUOTE and _BETWEEN_MEMBERS.fullmatch(value):
        return None
    if kind is FactKind.IDENTIFIER and len(value) > _LONGEST_WORD and (_IN_WORD.match(text, start + len(value)) or "/" not in value):
        return None
    if len(value) > _LONGEST and kind is not FactKind.URL:
        return None
    if kind is FactKind.IDENTIFIER and _AMOUNT_UNIT.fullmatch(value):
        kind = FactKind.QUANTITY
    return FoundValue(kind, value, start, start + len(value))


def _name(value: str, start: int, text: str) -> FoundValue | None:
    """A proper name: capitals inside a sentence. At a sentence's beginning function words are taken off, and one word
    that is left names nothing by its capital alone."""
    if _begins_sentence(text, start):
        is_first = True
        while bare(value.split(" ", 1)[0]) in OPENERS:
            first, _, rest = value.partition(" ")
            start, value, is_first = start + len(first) + 1, rest, False
        if is_first and " " not in value and not (value.isupper() and len(value) > 1):
            return None
    elif value[:2] in ("I'", "I\u2019"):
        return None
    return FoundValue(FactKind.NAME, value, start, start + len(value)) if len(value) > 1 else None


def _begins_sentence(text: str, start: int) -> bool:
    before = mask_inner_points(text[max(0, start - _TITLE) : start + 1])[:-1]
    if start == 0 or _BEFORE_SENTENCE.search(before[-4:]):
        return True
    return text[start - 2 : start] == ": " and bool(_LABEL.search("\n" + text[max(0, start - 36) : start]))


def directions(text: str, values: Iterable[FoundValue]) -> dict[str, set[int]]:
    """Key of each numeric value -> 1 where a word of rising stands right before it, -1 for one of falling."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for value in values:
        if value.kind in NUMERIC:
            before = words(text[max(0, value.start - _AHEAD) : value.start])[-3:]
            if way := next((1 if word in RISING else -1 for word in reversed(before) if word in RISING or word in FALLING), 0):
                found[key(value.text)].add(way)
    return found


def signs(values: Iterable[FoundValue]) -> dict[str, set[bool]]:
    """Key of each numeric value -> whether it stands negative, and whether not."""
    found: defaultdict[str, set[bool]] = defaultdict(set)
    for value in values:
        if value.kind in NUMERIC:
            found[key(value.text)].add(value.text.startswith(("-", "\u2212")))
    return found


def bare(word: str) -> str:
    return word.lower().replace("'", "").replace("\u2019", "")
