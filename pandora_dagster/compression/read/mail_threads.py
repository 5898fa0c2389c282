"""Threads of mails: who wrote which line, and when.

Knows the header blocks of mails in English, German and French, quoted replies (`>`) and what announces them (`On ... wrote:`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pandora_dagster.compression.words.courtesy import is_courtesy
from pandora_dagster.compression.words.normalization import key

_NAMES = {
    "from": "from", "von": "from", "de": "from",
    "date": "when", "sent": "when", "datum": "when", "gesendet": "when", "envoy\u00e9": "when",
    "subject": "subject", "betreff": "subject", "objet": "subject",
    "to": "to", "an": "to", "\u00e0": "to", "cc": "", "bcc": "", "kopie": "", "reply-to": "", "message-id": "", "in-reply-to": "",
    "references": "", "attachments": "", "anlagen": "", "importance": "", "priority": "",
}  # fmt: skip
"""The fields of a header block."""
_FIELD = re.compile(rf"\*{{0,2}}({'|'.join(_NAMES)}|x-[\w-]+) ?:\*{{0,2}}(?: +(.*))?$", re.IGNORECASE)
_SENDER = re.compile(r"^[> ]*\*{0,2}(?:From|Von|De) ?:", re.IGNORECASE | re.MULTILINE)
_WROTE = re.compile(
    r"(?:On|Le) (?P<when>[^<\n]{4,60}\d(?: ?[AaPp]\.?[Mm]\.?)?),? (?P<who>[^\d\n,][^\n]{0,100}?) (?:wrote|a \u00e9crit) ?:$"
    r"|Am (?P<am>[^<\n]{4,60}\d(?: Uhr)?),? schrieb (?P<wer>[^\n]{1,100}?):$"
)
_BEGINS_WROTE = re.compile(r"(?:On|Le|Am) [^\n]{0,40}\d")
_QUOTED = re.compile(r"(?:> ?)*")
_RULE = re.compile(r"[-_=*\s]{2,}(?:[\w \u00c0-\u00ff]{3,40}[-_=*\s]{2,})?$")
_REPLY = re.compile(r"^(?:(?:re|fwd?|aw|wg|tr|r\u00e9f?) ?: *)+", re.IGNORECASE)
_NO_NAME = re.compile(r"[^\w .'\u2019\-]+")
_LONGEST_NAME, _LONGEST_WHEN, _FULL, _SAID, _GREETING = 31, 48, 50, 4, 5
"""Characters of a name and of a time; of a line that may have been broken because it was full; words of what is said once only, and of
a greeting."""
_ENDS = (".", "!", "?", ":", ";")
_ITEM = re.compile(r"\s*(?:[-*+\u2022]|\d{1,2}[.)]) ")


@dataclass(frozen=True, slots=True)
class MailRow:
    """A row of a thread: `text` without its marks of quotation; `is_head` where it only says who writes to whom: of a header block,
    a greeting, a name below."""

    number: int
    sender: str
    when: str
    text: str
    is_head: bool = False
    subject: str = ""

    @property
    def opening(self) -> str:
        """Who says it, and when: `Ann Lee (Mon, 2 Mar 2026 09:12): `."""
        return f"{self.sender} ({self.when}): " if self.sender and self.when else f"{self.sender}: " if self.sender else ""


@dataclass(frozen=True, slots=True)
class _Owner:
    name: str = ""
    when: str = ""


def mail_rows(text: str) -> list[MailRow]:
    """The rows of a thread of two mails or more that name their senders, none of any other text."""
    if not _SENDER.search(text):
        return []
    found = list(_rows(text.split("\n")))
    mails = {(row.sender, row.when) for row in found if row.sender and not row.is_head}
    return found if len(mails) > 1 else []


def as_talk(text: str) -> str:
    """A thread as talk, `Ann Lee (Mon, 2 Mar 2026 09:12): ...`, a paragraph a line, its subject once; any other text as it is."""
    rows = mail_rows(text)
    if not rows:
        return text
    lines: list[str] = []
    known: set[str] = set()
    for row in _paragraphs(rows):
        said = key(row.subject or row.text)
        if said not in known and (row.subject or not row.is_head):
            lines.append(f"Subject: {row.subject}" if row.subject else row.opening + row.text)
        if row.subject or len(said.split()) >= _SAID:
            known.add(said)
    return "\n".join(lines)


def _rows(written: list[str]) -> Iterator[MailRow]:
    """Each row with who wrote it: a block names the sender of what follows at its depth, `On ... wrote:` of what is quoted below."""
    owners: dict[int, _Owner] = {}
    number = 0
    while number < len(written):
        depth, row = _unquoted(written[number])
        if block := _block(written, number, depth):
            owners = {at: owner for at, owner in owners.items() if at < depth}
            owners[depth] = _Owner(_name(block.fields["from"]), _time(block.fields.get("when", "")))
            subject = _REPLY.sub("", block.fields.get("subject", "")).strip()
            for at in range(number, block.end):
                yield MailRow(at, owners[depth].name, owners[depth].when, written[at].strip(), True, subject if at == number else "")
            number = block.end
        elif wrote := _wrote(written, number, row):
            found, end = wrote
            below = next((_unquoted(other)[0] for other in written[end:] if other.strip()), depth)
            owners[max(depth, below)] = _Owner(_name(found["who"] or found["wer"]), _time(found["when"] or found["am"]))
            yield from (MailRow(at, "", "", written[at].strip(), True) for at in range(number, end))
            number = end
        else:
            owner = owners.get(depth, _Owner())
            yield MailRow(number, owner.name, owner.when, row.strip(), _tells_nothing(row.strip(), owner.name))
            number += 1


def _tells_nothing(row: str, sender: str) -> bool:
    """Whether a row is empty, a rule, a greeting (`Dear Ann,`), or a name."""
    own = key(row).split()
    is_greeting = row.endswith((",", "!")) and len(own) <= _GREETING and not any(c.isdigit() for c in row) and is_courtesy(row)
    is_name = row.endswith(",") and len(own) <= 2 and row.istitle()
    return not own or bool(_RULE.match(row)) or is_greeting or is_name or set(own) <= set(key(sender).split())


def head_spans(text: str) -> list[tuple[int, int]]:
    """Where rows of a thread stand that only say who writes to whom."""
    heads = {row.number for row in mail_rows(text) if row.is_head}
    at, spans = 0, list[tuple[int, int]]()
    for number, row in enumerate(text.split("\n") if heads else ()):
        spans += [(at, at + len(row))] if number in heads else []
        at += len(row) + 1
    return spans


@dataclass(frozen=True, slots=True)
class _Block:
    fields: dict[str, str]
    end: int


def _block(written: list[str], start: int, depth: int) -> _Block | None:
    """The header block that begins at a row: a sender, and a time, a subject or a receiver."""
    fields: dict[str, str] = {}
    last, at = "", start
    while at < len(written):
        own, row = _unquoted(written[at])
        found = _FIELD.match(row.rstrip()) if own == depth else None
        if found:
            last = _NAMES.get(found.group(1).lower(), "")
            fields.setdefault(last, (found.group(2) or "").strip())
        elif at > start and row[:1] in " \t" and row.strip():
            fields[last] = f"{fields[last]} {row.strip()}"
        else:
            break
        at += 1
    named = _name(fields["from"]) if "from" in fields else ""
    return _Block(fields, at) if named and fields.keys() & {"when", "subject", "to"} else None


def _wrote(written: list[str], number: int, row: str) -> tuple[re.Match[str], int] | None:
    """What announces a quotation, on one row or on two, and the row behind it."""
    if not _BEGINS_WROTE.match(row.strip()):
        return None
    if found := _WROTE.match(row.strip()):
        return found, number + 1
    below = _unquoted(written[number + 1])[1].strip() if number + 1 < len(written) else ""
    found = _WROTE.match(f"{row.strip()} {below}")
    return (found, number + 2) if found else None


def _unquoted(row: str) -> tuple[int, str]:
    """How deep a row is quoted, and what it says."""
    marks = _QUOTED.match(row)
    return (marks.group().count(">"), row[marks.end() :]) if marks else (0, row)


def _name(written: str) -> str:
    """Who sent a mail: `Ann Lee <ann@x.example>`, `"Lee, Ann" <...>`, an address alone."""
    shown = re.sub(r"[<\[(].*", "", written).strip(" \"'*")
    shown = shown.partition("@")[0] if "@" in shown else shown
    if not shown:
        shown = re.sub(r"^[<\[( ]*(?:mailto:)?", "", written).partition("@")[0]
    last, _, first = shown.partition(",")
    plain = _NO_NAME.sub(" ", f"{first.strip()} {last}".strip() if first else shown)
    plain = " ".join(plain.split()).lstrip("0123456789_.-' ")
    return plain if len(plain) <= _LONGEST_NAME else plain[:_LONGEST_NAME].rpartition(" ")[0]


def _time(written: str) -> str:
    return " ".join(re.sub(r"[()]", " ", written).split()).strip(" ,")[:_LONGEST_WHEN]


def _paragraphs(rows: list[MailRow]) -> Iterator[MailRow]:
    """Rows, those that one sentence was broken over as one."""
    open_: MailRow | None = None
    last = ""
    for row in rows:
        if open_ and _goes_on(open_, last, row):
            open_ = replace(open_, text=f"{open_.text} {row.text}")
        else:
            yield from [open_] if open_ else []
            open_ = row
        last = row.text
    yield from [open_] if open_ else []


def _goes_on(one: MailRow, last: str, row: MailRow) -> bool:
    is_one = (one.sender, one.when) == (row.sender, row.when) and not one.is_head and not row.is_head
    return is_one and len(last) >= _FULL and not _ITEM.match(row.text) and (not last.endswith(_ENDS) or not _ITEM.match(one.text))
