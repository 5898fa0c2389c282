"""Lines of talk between named people: who speaks in each.

Knows `Name: text`, the stamps of chat programs before and behind the name (`[09:01] Ann: ...`, `**Ann** [09:01]: ...`), and lines
that go on with what the speaker of the line above said. A thread of mails is talk too: each line is its sender's.
"""

import re
from dataclasses import dataclass

from pandora_dagster.compression.read.mail_threads import mail_rows
from pandora_dagster.compression.words.normalization import key

_DAY = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp]\.?[Mm]\b\.?)?"
_TIME = rf"(?:{_DAY}(?:,? |T))?{_CLOCK}Z?"
_STAMP = rf"[\[(]?{_TIME}[\])]?(?: ?[-\u2013\u2014])? "
SPEAKER_LINE = re.compile(
    rf"^(?!(?:Subject|Betreff|Objet) ?:)(?:{_STAMP})?(?:\*\*|<)?([^\W\d_][\w .'\u2019\-]{{0,30}}?)"
    r"(?: \((?:[^()\n]{1,24}|(?=[^()\n]*\d:\d\d)[^()\n]{1,48})\))?"
    rf"(?::\*\*|(?:\*\*|>)?(?:(?:,? [\[(]|, ){_TIME}[\])]?)?:|>) *(?=\S)"
)
ALSO = "also: "
"""Begins a line that puts back what a condensed text had lost."""
_LEGEND = re.compile(r"\w{1,31}=[^;=\n]+(?:; \w{1,31}=[^;=\n]+)*")
_NO_TALK = re.compile(r"\s*(?:#|---|===|\*\*\*|[\[(<]|\d|\||(?:Subject|Betreff|Objet) ?:)")
"""Begins a heading, a rule, a stamp, a table or a subject: nobody goes on speaking there."""
_TIMED = re.compile(r"(?:also: )?[^\W\d_][\w .'\u2019\-]{0,30} \((?=[^()\n]*\d:\d\d)[^()\n]{1,48}\): ")
"""Begins what somebody wrote at a time: `Ann Lee (Mon, 2 Mar 2026 09:12): `."""
_LOOKED_AT = 400


@dataclass(frozen=True, slots=True)
class Line:
    """A line of talk; `speaker` is "" where nobody is named, `opening` what stands before the words (`[09:01] Ann: `)."""

    number: int
    speaker: str
    text: str
    opening: str = ""

    @property
    def is_stamped(self) -> bool:
        """Whether the opening tells more than the name."""
        return self.opening not in ("", f"{self.speaker}: ")


def is_dialogue(text: str) -> bool:
    """Whether most lines of a text name a speaker, and speakers speak again or each at a time; or mails follow one another."""
    if mail_rows(text):
        return True
    lines = [line for line in text[:200_000].split("\n", _LOOKED_AT)[:_LOOKED_AT] if line.strip()]
    timed = sum(bool(_TIMED.match(line)) for line in lines)
    if timed > 1 and timed * 2 > len(lines):
        return True
    speakers = [found.group(1) for line in lines if (found := SPEAKER_LINE.match(line))]
    return len(speakers) >= 3 and len(speakers) * 2 > len(lines) and len(set(speakers)) * 2 <= len(speakers)


def unspoken(line: str) -> str:
    """A line without the mark of its speaker."""
    mark = SPEAKER_LINE.match(line) if ":" in line or ">" in line else None
    return line[mark.end() :] if mark else line


def speakers_of(text: str) -> frozenset[str]:
    """Keys of the speakers' names and of their parts."""
    names = {line.speaker for line in read_lines(text) if line.speaker}
    return frozenset(k for name in names for k in (key(name), *key(name).split()))


def read_lines(text: str) -> list[Line]:
    """Lines with their speakers; short names of a legend become whole names again. What stands right below a speaker's line, and
    is no heading, is theirs too. Of a thread of mails the rows of its headers stand among those of their senders."""
    if mails := mail_rows(text):
        return [Line(row.number, row.sender, row.text, row.opening) for row in mails if row.text]
    rows = text.split("\n")
    legend: dict[str, str] = {}
    if _LEGEND.fullmatch(rows[0]):
        legend = dict(pair.split("=", 1) for pair in rows[0].split("; "))
        rows = rows[1:]
    found: list[Line] = []
    above = ""
    for number, row in enumerate(rows):
        plain = row.removeprefix(ALSO)
        match = SPEAKER_LINE.match(plain)
        if match:
            above = match.group(1)
            above = legend.get(above, above)
        elif not row.strip() or row.startswith(ALSO) or _NO_TALK.match(row):
            above = ""
        opening = "" if not match or match.group(1) in legend else match.group()
        body = plain[match.end() :] if match else row
        if body.strip():
            found.append(Line(number, above, body.strip(), opening or (f"{above}: " if above else "")))
    return found
