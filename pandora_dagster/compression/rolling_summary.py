"""Verifies a rolling summary against the conversation (002 section 3, "Summarization"): every item is grounded, every limit that
the user set and every decision is in it or linked, and it stays within its words.

What cannot be repaired is refused with its reasons.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.compression.verification.facts import FactKind
from pandora_dagster.compression.verification.forms import unit_key
from pandora_dagster.compression.verification.ledger import Ledger, build_ledger, statement_kind
from pandora_dagster.compression.verification.summary_check import check_summary
from pandora_dagster.compression.verification.verifier import is_stated, unsupported
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.user.conversations import ConversationDigest
from pandora_dagster.language.cues import Cue, cues
from pandora_dagster.language.sentences import sentences

LABELS: Mapping[str, str] = {
    "key_themes": "Themes",
    "journey": "Journey",
    "user_needs": "Needs and limits of the person",
    "others_needs": "Needs of others",
    "agreements": "Decided",
    "agreed_facts": "Facts",
    "unresolved_topics": "Unresolved",
    "open_questions": "Open questions",
}
"""Field -> its heading, in the order in which a digest is read."""
CAPS: Mapping[str, int] = {
    "key_themes": 8,
    "user_needs": 20,
    "others_needs": 10,
    "agreements": 20,
    "agreed_facts": 20,
    "unresolved_topics": 10,
    "open_questions": 10,
}
_PROSE = ("summary", "journey")
_BINDING = {FactKind.CONSTRAINT: "user_needs", FactKind.DECISION: "agreements"}
PERSON, ANSWER = "Person: ", "Answer: "
_HEAD = re.compile(r"^\[turn (\d{1,9}), ([^\]\n]*)\]$", re.MULTILINE)
_MARK = re.compile(r"\s*\(turn (\d{1,9})\)\.?$")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn as it was said."""

    number: int
    date: str
    asked: str
    answered: str

    @property
    def text(self) -> str:
        """As the summarizer reads it: heads begin a line, what was said never does."""
        answer = f"\n{ANSWER}{_set_in(self.answered)}" if self.answered else ""
        return f"{self.head}\n{PERSON}{_set_in(self.asked)}{answer}"

    @property
    def head(self) -> str:
        return f"[turn {self.number}, {self.date}]"

    def shortened(self, text: str) -> str:
        """As the summarizer reads it where `text` replaces both."""
        return f"{self.head}\n{ANSWER}{_set_in(text)}"


@dataclass(frozen=True, slots=True)
class DigestCheck:
    """A digest that passed, or the reasons why none can be made of the candidate."""

    digest: ConversationDigest
    linked: tuple[int, ...] = ()
    """Turns with a limit or a decision that there was no room for."""
    restored: tuple[str, ...] = ()
    """Limits and decisions that were missing, put back verbatim."""
    refused: tuple[str, ...] = ()
    """Items that the conversation does not support, taken out, each with its reason."""
    reasons: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True)
class _Unit:
    """One sentence of the prose, or one item of a list."""

    field: str
    text: str
    turn: int = 0
    """The turn it says it comes from, 0 for none."""

    @property
    def shown(self) -> str:
        return f"{self.text} (turn {self.turn})" if self.turn else self.text


def _set_in(text: str) -> str:
    return "\n  ".join(text.strip().splitlines())


def read_exchanges(text: str) -> tuple[Exchange, ...]:
    """The exchanges of a document of `Exchange.text`, in order."""
    heads = list(_HEAD.finditer(text))
    ends = [*(h.start() for h in heads[1:]), len(text)][: len(heads)]
    return tuple(_read(int(h[1]), h[2], text[h.end() : end]) for h, end in zip(heads, ends, strict=True))


def _read(number: int, date: str, body: str) -> Exchange:
    said, _, answered = (
        body.strip().partition(f"\n{ANSWER}") if not body.strip().startswith(ANSWER) else ("", "", body.strip()[len(ANSWER) :])
    )
    plain = ["\n".join(line.strip() for line in part.splitlines()) for part in (said.removeprefix(PERSON), answered)]
    return Exchange(number, date, *plain)


def with_turn_number(text: str, number: int) -> str:
    """An item with the turn it comes from."""
    return f"{text} (turn {number})"


def render_digest(digest: ConversationDigest) -> str:
    """A digest as people and calls read it."""
    return _shown(tuple(_units(digest)))


def binding_statements(exchange: Exchange) -> Iterator[tuple[str, str]]:
    """Field and sentence of every limit that the user sets or corrects, and of every decision."""
    for speaker, text in (("person", exchange.asked), ("answer", exchange.answered)):
        for unit in (index := build_ledger(text).index).content:
            kind = statement_kind(unit, index)
            if kind is FactKind.CLAIM and Cue.CORRECTION in cues(unit.text, index.language) and index.has_value(unit.order):
                kind = FactKind.CONSTRAINT
            if kind is FactKind.DECISION or (kind is FactKind.CONSTRAINT and speaker == "person"):
                yield _BINDING[kind], " ".join(unit.text.split())


def check_digest(
    candidate: ConversationDigest,
    exchanges: Sequence[Exchange],
    previous: ConversationDigest | None,
    *,
    covered: Iterable[int],
    linked: Iterable[int] = (),
    words: int,
    counter: TokenMeasure,
) -> DigestCheck:
    """`candidate` held to `previous` and the `exchanges` after it: what they do not support is taken out, missing limits and decisions
    are put back, and over `words` the oldest items go, limits and decisions last and by a link to their turn.

    `covered`: turns that an item may name; `linked`: what `previous` had no room for.
    """
    text = "\n\n".join([*([render_digest(previous)] if previous else []), *(e.text for e in exchanges)])
    source, known = build_ledger(text), frozenset(covered)
    wanted = tuple(_wanted(exchanges, previous))
    units, refused = _grounded(tuple(_units(candidate)), source, known)
    missing = _missing(units, wanted)
    fitting, left = _fitting([*units, *missing], words)
    restored = tuple(u.shown for u in missing if u in fitting)
    if not any(u.field == "summary" for u in fitting):
        return DigestCheck(candidate, refused=refused, reasons=("summary: nothing of it is supported by the conversation", *refused[:3]))
    sound, unsound, reasons = _supported_lines(fitting, source, counter)
    digest = _digest(sound)
    if len(render_digest(digest).split()) > words:
        reasons = (*reasons, f"inflated: one item alone is over {words} words")
    return DigestCheck(digest, tuple(sorted({*linked, *left} & known)), restored, (*refused, *unsound), reasons)


def _supported_lines(
    units: tuple[_Unit, ...], source: Ledger, counter: TokenMeasure
) -> tuple[tuple[_Unit, ...], tuple[str, ...], tuple[str, ...]]:
    """The units with a narrative that is one, the sentences taken out of it with the reason, and the reasons where none is left.

    One sentence is taken out where that is enough, else the first ones: a reply to the reader comes first.
    """
    prose, most = [u for u in units if u.field == "summary"], counter.count(source.text)
    reasons = check_summary(_prose(prose), source, most, counter)
    if not reasons:
        return units, (), ()
    alone = [[u] for u in prose] if len(prose) > 1 else []
    for out in (*alone, *(prose[:n] for n in range(2, len(prose)))):
        if not check_summary(_prose([u for u in prose if u not in out]), source, most, counter):
            return tuple(u for u in units if u not in out), tuple(f"{u.text[:80]}: {reasons[0]}" for u in out), ()
    return units, (), reasons


def _prose(units: Iterable[_Unit]) -> str:
    return " ".join(u.text for u in units)


def _units(digest: ConversationDigest) -> Iterator[_Unit]:
    yield from (_Unit("summary", s) for s in sentences(digest.summary))
    for field in LABELS:
        if field == "journey":
            yield from (_Unit(field, s) for s in sentences(digest.journey))
            continue
        for item in getattr(digest, field):
            found = _MARK.search(item)
            text = " ".join(_MARK.sub("", item).split())
            if text:
                yield _Unit(field, text, int(found[1]) if found else 0)


def _wanted(exchanges: Sequence[Exchange], previous: ConversationDigest | None) -> Iterator[_Unit]:
    """Limits and decisions that must stay, oldest first, each once."""
    seen: set[str] = set()
    before = [u for u in _units(previous) if u.field in _BINDING.values()] if previous else []
    for unit in (*before, *(_Unit(field, text, e.number) for e in exchanges for field, text in binding_statements(e))):
        if unit_key(unit.text) not in seen:
            seen.add(unit_key(unit.text))
            yield unit


def _grounded(units: tuple[_Unit, ...], source: Ledger, known: frozenset[int]) -> tuple[tuple[_Unit, ...], tuple[str, ...]]:
    """The units that the source supports, and the others with the reason."""
    kept: list[_Unit] = []
    refused: list[str] = []
    for unit in dict.fromkeys(units):
        if unit.turn and unit.turn not in known:
            refused.append(f"{unit.shown[:80]}: names a turn that was not given")
        elif wrong := next((f"{v.outcome.value}: {v.reason}" for v in unsupported(source, unit.text)), ""):
            refused.append(f"{unit.shown[:80]}: {wrong}")
        else:
            kept.append(unit)
    return tuple(kept), tuple(refused)


def _missing(units: Sequence[_Unit], wanted: tuple[_Unit, ...]) -> tuple[_Unit, ...]:
    """The limits and decisions that no unit says."""
    said = "\n".join(f"- {u.text}" for u in units)
    return tuple(u for u in wanted if not is_stated(u.text, said))


def fit_digest(digest: ConversationDigest, words: int) -> ConversationDigest:
    """A digest within the caps and `words`, the oldest of its longest field left out first."""
    return _digest(_fitting(tuple(_units(digest)), words)[0])


def _fitting(units: Sequence[_Unit], words: int) -> tuple[tuple[_Unit, ...], tuple[int, ...]]:
    """The units within the caps and `words`, and the turns of those limits and decisions that had to go.

    The longest field loses its oldest unit; fields that bind are touched when nothing else is left but one sentence.
    """
    fields = {name: [u for u in units if u.field == name] for name in ("summary", *LABELS)}
    for name, own in fields.items():
        fields[name] = own if name in _PROSE else sorted(own, key=lambda u: u.turn)
    left: list[int] = []
    while (name := _too_long(fields, words)) is not None:
        gone = fields[name].pop(0)
        if name in _BINDING.values() and gone.turn:
            left.append(gone.turn)
    return tuple(u for own in fields.values() for u in own), tuple(left)


def _too_long(fields: Mapping[str, list[_Unit]], words: int) -> str | None:
    if over := next((name for name, cap in CAPS.items() if len(fields[name]) > cap), None):
        return over
    if len(_shown(tuple(u for own in fields.values() for u in own)).split()) <= words:
        return None
    sizes = {name: sum(len(u.shown.split()) for u in own) for name, own in fields.items()}
    free = [n for n in fields if n not in _BINDING.values() and len(fields[n]) > (1 if n == "summary" else 0)]
    return max(free or _BINDING.values(), key=lambda n: sizes[n]) if free or any(fields[n] for n in _BINDING.values()) else None


def _digest(units: Sequence[_Unit]) -> ConversationDigest:
    prose = {name: _prose(u for u in units if u.field == name) for name in _PROSE}
    lists = {name: tuple(u.shown for u in units if u.field == name) for name in LABELS if name not in _PROSE}
    return ConversationDigest.model_validate({**prose, **lists})


def _shown(units: Sequence[_Unit]) -> str:
    lines = [" ".join(u.text for u in units if u.field == "summary")]
    for field, label in LABELS.items():
        own = [u.shown for u in units if u.field == field]
        if field in ("key_themes", "journey"):
            lines += [f"{label}: {(' ' if field == 'journey' else ', ').join(own)}"] if own else []
        else:
            lines += [f"{label}:", *(f"- {text}" for text in own)] if own else []
    return "\n".join(lines)
