"""Division of a talk, a mail thread or a transcript into the turns of its speakers.

Known are roles (`user:`), names before messages (`Ann:`, `[10:42] Ann:`), names with times above them, and headers of mails at each level
of quotation. Names are speakers only where they come back or where nearly every line has one.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pandora_dagster.documents.units.source_lines import Line
from pandora_dagster.language.dates import Moment, days

_STAMP = (
    r"(?P<stamp>[\[(][\d/.:, T-]{4,25}(?: ?[AaPp][Mm])?[\])] (?:- )?"
    r"|\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? \d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])? - "
    r"|\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])? )?"
)
"""The time before a speaker; a bare ISO time belongs to a log."""
_ROLE = re.compile(
    r"(?:[-*] )?(?:\*\*|\[)?(?P<name>(?:user|assistant|system|tool|customer|agent|human|ai)(?: [\w.-]{1,80})?)(?:\*\*|\])? ?:"
    r"(?:\*\*)?(?= |$)",
    re.IGNORECASE,
)
_LABEL = re.compile(rf"{_STAMP}(?:\*\*)?(?P<name>[^\W\d_][\w .'’-]{{0,40}}?)(?:\*\*)? ?:(?:\*\*)?(?: +(?P<words>(?=\S))| *$)")
_OWN_LINE = re.compile(
    r"(?P<name>[^\W\d_][\w.'’-]{0,30}(?: [\w.'’-]{1,30}){0,3}?)[ \t,—–-]{1,3}[\[(]?(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? )?"
    r"\d{1,2}:\d\d(?: ?[AaPp][Mm])?[\])]?\s*$"
)
"""Name and time above a message, as messengers copy them."""
_SENDER = "From|Von|De|Da|Van|Od|Fra|Från"
_HEADERS = (
    "To|Cc|Date|Sent|Subject|Reply-To|An|Datum|Gesendet|Betreff|À|Envoyé|Objet|Para|Fecha|Enviado|Asunto|Data|Oggetto|"
    "Aan|Verzonden|Onderwerp|Temat|Til|Emne"
)
_MAIL = re.compile(rf"(?:> ?)*(?P<name>{_SENDER}): ?(?P<sender>\S.*)")
_HEADER = re.compile(rf"(?:> ?)*(?:{_SENDER}|{_HEADERS}):\s")
_WROTE = re.compile(
    r"(?:> ?)*(?:On|Am|Le|El|Il|Op|Em|W dniu|Den) (?=.{0,40}\d).{4,100}?[, ](?P<sender>[^\W\d_][^,<>:]{1,60}?)(?: <[^<>]{3,80}>)?,? "
    r"(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|escreveu|napisał|skrev)\s?:\s*$"
)
_QUOTE = re.compile(r"(?:> ?)*")
_MIN_LABELED_PARAGRAPHS, _MIN_LABELED_LINES = 0.6, 0.9
"""Share of the paragraphs that begin with a label that comes back, from which labels are speakers; and share of the lines with any label,
from which a label that comes once is a speaker too."""
_HEADING, _LINK = re.compile(r"#{1,6} \S"), re.compile(r"\W*(?:https?://|www\.)")
_FENCES = ("```", "~~~")
_MAX_DATE_CHARACTERS, _DATE_REST = 40, re.compile(r"[\W_]|\d{1,2}:\d\d")
"""A line of a date alone, perhaps with marks and a time."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker says; `label` is "" for what comes before the first speaker."""

    label: str
    text: str
    """The label verbatim, with the time before it."""
    start: int
    """Where the label begins in the source, and where it ends."""
    end: int
    lines: list[Line] = field(default_factory=list[Line])
    in_document: bool = False
    """Whether the headings of the text hold for it too."""
    resumes: int = -1
    """The turn that goes on here, by its number, where a quotation interrupts it."""


def turns(lines: Sequence[Line]) -> list[Turn]:
    """The turns of a text; empty where it is no talk."""
    has_roles = sum(_ROLE.match(line.text) is not None for line in lines) > 1
    return _talk(lines) if has_roles else _mails(lines) or _talk(lines)


def _talk(lines: Sequence[Line]) -> list[Turn]:
    above = [_OWN_LINE.match(line.text[:120]) for line in lines]
    headed = Counter(match["name"] for match in above if match)
    if len(headed) > 1 and headed.total() > 2:
        labels = [(match, None) for match in above]
    else:
        labels = [(_ROLE.match(line.text), _label(line)) for line in lines]
    known = _speakers(lines, [label for _, label in labels if label and _is_before_words(label)])
    if sum(role is not None for role, _ in labels) > 1:
        known = frozenset[str]()
    elif not known:
        return []
    divided = [Turn("", "", lines[0].start, lines[0].start)]
    dates = _date_lines(lines, [label is not None and label["name"] in known for _, label in labels])
    fences = [line.text.lstrip().startswith(_FENCES) for line in lines]
    fenced, all_closed = False, sum(fences) % 2 == 0
    for number, (line, is_fence, (role, label)) in enumerate(zip(lines, fences, labels, strict=True)):
        fenced ^= is_fence and all_closed
        match = role or (label if label and label["name"] in known else None)
        is_apart = number in dates or bool(_HEADING.match(line.text))
        if known and not match and not fenced and divided[-1].label and is_apart:
            divided.append(Turn("", "", line.start, line.start, [line], in_document=True))
        elif match and not fenced:
            end = line.start + match.end()
            divided.append(
                Turn(match["name"], match[0].strip(), line.start, end, [line.after(match.end()).stripped()], in_document=bool(known))
            )
        else:
            divided[-1].lines.append(line)
    return divided


def _date_lines(lines: Sequence[Line], is_labeled: Sequence[bool]) -> frozenset[int]:
    """Lines of a date alone, each right before a speaker, where more than one is: they date what follows and no speaker says them."""
    found = [
        n
        for n, (line, before_label) in enumerate(zip(lines, is_labeled[1:], strict=False))
        if before_label
        and len(line.text) <= _MAX_DATE_CHARACTERS
        and any(not _DATE_REST.sub("", _without(line.text, day)) for day in days(line.text))
    ]
    return frozenset(found) if len(found) > 1 else frozenset()


def _without(text: str, moment: Moment) -> str:
    return text[: moment.start] + text[moment.end :]


def _label(line: Line) -> re.Match[str] | None:
    """What may be the label of a speaker at the beginning of a line, also of a line without more, or with a link: `Ann: https://a.org`."""
    match = _LABEL.match(line.text)
    return None if match and _HEADER.match(line.text) else match


def _is_before_words(label: re.Match[str]) -> bool:
    """Whether what follows a label may be said, which tells a speaker from the name of a value or section."""
    return label["words"] is not None and not _LINK.match(label.string, label.end())


def _speakers(lines: Sequence[Line], labels: Sequence[re.Match[str]]) -> frozenset[str]:
    """Labels that come back and begin most paragraphs; in a talk of single lines, all labels."""
    counts = Counter(str(label["name"]) for label in labels)
    stamped = {str(label["name"]) for label in labels if label["stamp"]}
    known = frozenset({name for name, count in counts.items() if count > 1} | (stamped if len(stamped) > 1 else set[str]()))
    starts = sum(not line.is_blank and (not i or lines[i - 1].is_blank) for i, line in enumerate(lines))
    filled = sum(not line.is_blank for line in lines)
    if len(known) < 2 or sum(counts[name] for name in known) < _MIN_LABELED_PARAGRAPHS * max(1, min(starts, filled)):
        return frozenset()
    return frozenset(counts) if counts.total() >= _MIN_LABELED_LINES * filled else known


def _mails(lines: Sequence[Line]) -> list[Turn]:
    """Mails by their headers, at each level of quotation; what follows an inner quotation is the outer sender's again."""
    heads = {i: _sender(lines, i) for i, line in enumerate(lines) if ":" in line.text}
    if not any(heads.values()):
        return []
    divided = [Turn("", "", lines[0].start, lines[0].start)]
    at_level: dict[int, int] = {0: 0}  # level of quotation -> number of its turn
    level = 0
    for i, line in enumerate(lines):
        marks = _QUOTE.match(line.text)
        depth = (marks[0] if marks else "").count(">")
        sender = heads.get(i) or ""
        if sender:
            is_wrote = bool(_WROTE.match(line.text))
            level = depth + is_wrote
            at_level = {outer: turn for outer, turn in at_level.items() if outer < level} | {level: len(divided)}
            divided.append(Turn(sender, line.text.strip(), line.start, line.end))
            continue
        if depth != level and not line.is_blank and line.text.strip(" >"):
            level = depth
            owner = at_level.get(depth, -1)
            if owner < 0:
                at_level[depth] = len(divided)
            divided.append(Turn(divided[owner].label if owner >= 0 else "", "", line.start, line.start, resumes=owner))
        divided[-1].lines.append(line)
    return divided


def _sender(lines: Sequence[Line], at: int) -> str:
    """The sender whose mail begins in this line; "" where none does."""
    if wrote := _WROTE.match(lines[at].text[:400]):
        return wrote["sender"].strip()
    mail = _MAIL.match(lines[at].text)
    beside = [lines[i].text for i in (at - 1, at + 1) if 0 <= i < len(lines)]
    if not mail or mail["sender"][0].isdigit() or not any(_HEADER.match(text) for text in beside):
        return ""
    return re.sub(r"(?<!\s)\s*<[^<>]*+>?\s*$", "", mail["sender"][:200]).strip("\"' ")
