"""Verifies a rolling summary against the conversation (specification 002, section 3, "Summarization").

In: the candidate digest, the previous one, the exchanges since. Items that neither supports are taken out; limits that the user set and
decisions that are missing are put back verbatim, or linked to their turn where the words do not hold them. Out: a `DigestCheck`, with
reasons where no digest can be made of the candidate.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pandora_dagster.compression.verification.facts import FactKind
from pandora_dagster.compression.verification.forms import unit_key
from pandora_dagster.compression.verification.summary_check import check_summary, sound_part
from pandora_dagster.compression.verification.text_facts import TextFacts, find_facts, statement_kind
from pandora_dagster.compression.verification.verifier import find_unsupported, is_stated
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
_MAX_ITEMS: Mapping[str, int] = {
    "key_themes": 8,
    "user_needs": 20,
    "others_needs": 10,
    "agreements": 20,
    "agreed_facts": 20,
    "unresolved_topics": 10,
    "open_questions": 10,
}
_PROSE = ("summary", "journey")
_FIELD_OF_KIND = {FactKind.CONSTRAINT: "user_needs", FactKind.DECISION: "agreements"}
_BINDING_FIELDS = tuple(_FIELD_OF_KIND.values())
PERSON, ANSWER = "Person: ", "Answer: "
_EXCHANGE_HEAD = re.compile(r"^\[turn (\d{1,9}), ([^\]\n]*)\]$", re.MULTILINE)
_TURN_MARK = re.compile(r"(?<!\s)\s*\(turn (\d{1,9})\)\.?$")


@dataclass(frozen=True, slots=True)
class Exchange:
    """The question and the answer of one turn."""

    number: int
    date: str
    asked: str
    answered: str

    @property
    def text(self) -> str:
        """As the summarizer reads it: a head begins a line, lines of question and answer are indented."""
        answer = f"\n{ANSWER}{_indented(self.answered)}" if self.answered else ""
        return f"{self.head}\n{PERSON}{_indented(self.asked)}{answer}"

    @property
    def head(self) -> str:
        return f"[turn {self.number}, {self.date}]"

    def shortened(self, text: str) -> str:
        """As the summarizer reads it where `text` replaces question and answer."""
        return f"{self.head}\n{ANSWER}{_indented(text)}"


@dataclass(frozen=True, slots=True)
class DigestCheck:
    """A digest that passed, or the reasons why none can be made of the candidate."""

    digest: ConversationDigest
    linked: tuple[int, ...] = ()
    """Turns with a limit or a decision that the words did not hold."""
    restored: tuple[str, ...] = ()
    """Limits and decisions that were missing, put back verbatim."""
    refused: tuple[str, ...] = ()
    """Items that the conversation does not support, each with its reason; they are taken out."""
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
    """The turn that it names as its source, 0 for none."""

    @property
    def shown(self) -> str:
        return f"{self.text} (turn {self.turn})" if self.turn else self.text


def _indented(text: str) -> str:
    return "\n  ".join(text.strip().splitlines())


def read_exchanges(text: str) -> tuple[Exchange, ...]:
    """The exchanges of a document of `Exchange.text`, in order."""
    heads = list(_EXCHANGE_HEAD.finditer(text))
    ends = [*(h.start() for h in heads[1:]), len(text)][: len(heads)]
    return tuple(_read(int(h[1]), h[2], text[h.end() : end]) for h, end in zip(heads, ends, strict=True))


def _read(number: int, date: str, body: str) -> Exchange:
    asked, _, answered = f"\n{body.strip()}".partition(f"\n{ANSWER}")
    plain = ["\n".join(line.strip() for line in part.splitlines()) for part in (asked.strip().removeprefix(PERSON), answered)]
    return Exchange(number, date, *plain)


def with_turn_number(text: str, number: int) -> str:
    """An item with the turn it comes from."""
    return f"{text} (turn {number})"


def render_digest(digest: ConversationDigest) -> str:
    """A digest as text, for readers and for prompts."""
    return _rendered(tuple(_units(digest)))


def binding_statements(exchange: Exchange) -> Iterator[tuple[str, str]]:
    """Field and sentence of every limit that the user sets or corrects, and of every decision."""
    for is_user, text in ((True, exchange.asked), (False, exchange.answered)):
        for unit in (index := find_facts(text).index).content:
            kind = statement_kind(unit, index)
            if kind is FactKind.CLAIM and Cue.CORRECTION in cues(unit.text, index.language) and index.has_value(unit.order):
                kind = FactKind.CONSTRAINT
            if kind is FactKind.DECISION or (kind is FactKind.CONSTRAINT and is_user):
                yield _FIELD_OF_KIND[kind], " ".join(unit.text.split())


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
    """Verify `candidate` against `previous` and the `exchanges` after it. Over `words`, the oldest items are left out, limits and decisions
    last; of those the turn is linked.

    `covered`: turns that an item may name; `linked`: turns that `previous` linked.
    """
    text = "\n\n".join([*([render_digest(previous)] if previous else []), *(e.text for e in exchanges)])
    source, nameable = find_facts(text), frozenset(covered)
    units, refused = _supported(_units(candidate), source, nameable)
    stated = "\n".join(f"- {u.text}" for u in units)
    missing = [u for u in _binding_units(exchanges, previous) if not is_stated(u.text, stated)]
    fitting, unheld = _fit([*units, *missing], words)
    restored = tuple(u.shown for u in missing if u in fitting)
    if not any(u.field == "summary" for u in fitting):
        return DigestCheck(candidate, refused=refused, reasons=("summary: nothing of it is supported by the conversation", *refused[:3]))
    prose, max_tokens = [u for u in fitting if u.field == "summary"], counter.count(source.text)
    _, spoiling, reasons = sound_part(prose, lambda kept: check_summary(_joined_text(kept), source, max_tokens, counter))
    refused = (*refused, *(f"{u.text[:80]}: {reasons[0]}" for u in spoiling))
    reasons = () if spoiling else reasons
    digest = _digest([u for u in fitting if u not in spoiling])
    if len(render_digest(digest).split()) > words:
        reasons = (*reasons, f"inflated: one item alone is over {words} words")
    return DigestCheck(digest, tuple(sorted({*linked, *unheld} & nameable)), restored, refused, reasons)


def _joined_text(units: Iterable[_Unit]) -> str:
    return " ".join(u.text for u in units)


def _units(digest: ConversationDigest) -> Iterator[_Unit]:
    yield from (_Unit("summary", s) for s in sentences(digest.summary))
    for field in LABELS:
        if field == "journey":
            yield from (_Unit(field, s) for s in sentences(digest.journey))
            continue
        for item in getattr(digest, field):
            mark = _TURN_MARK.search(item)
            if text := " ".join(_TURN_MARK.sub("", item).split()):
                yield _Unit(field, text, int(mark[1]) if mark else 0)


def _binding_units(exchanges: Sequence[Exchange], previous: ConversationDigest | None) -> Iterable[_Unit]:
    """Limits and decisions that must stay, oldest first, each once."""
    earlier = [u for u in _units(previous) if u.field in _BINDING_FIELDS] if previous else []
    later = [_Unit(field, text, e.number) for e in exchanges for field, text in binding_statements(e)]
    first_by_key: dict[str, _Unit] = {}
    for unit in (*earlier, *later):
        first_by_key.setdefault(unit_key(unit.text), unit)
    return first_by_key.values()


def _supported(units: Iterable[_Unit], source: TextFacts, nameable: frozenset[int]) -> tuple[tuple[_Unit, ...], tuple[str, ...]]:
    """The units that the source supports, and the others with the reason."""
    kept: list[_Unit] = []
    refused: list[str] = []
    for unit in dict.fromkeys(units):
        if unit.turn and unit.turn not in nameable:
            refused.append(f"{unit.shown[:80]}: names a turn that was not given")
        elif reason := next((f"{v.outcome.value}: {v.reason}" for v in find_unsupported(source, unit.text)), ""):
            refused.append(f"{unit.shown[:80]}: {reason}")
        else:
            kept.append(unit)
    return tuple(kept), tuple(refused)


def fit_digest(digest: ConversationDigest, words: int) -> ConversationDigest:
    """A digest within its numbers of items and `words`; the oldest item of its longest field is left out first."""
    return _digest(_fit(tuple(_units(digest)), words)[0])


def _fit(units: Sequence[_Unit], words: int) -> tuple[tuple[_Unit, ...], tuple[int, ...]]:
    """The units within their numbers and `words`, and the turns of the limits and decisions among the others.

    The longest field loses its oldest unit; limits and decisions are left out when nothing else remains but one sentence.
    """
    fields = {name: [u for u in units if u.field == name] for name in ("summary", *LABELS)}
    for name in _MAX_ITEMS:
        fields[name].sort(key=lambda u: u.turn)
    unheld: list[int] = []
    while name := _too_long(fields, words):
        unit = fields[name].pop(0)
        if name in _BINDING_FIELDS and unit.turn:
            unheld.append(unit.turn)
    return tuple(chain.from_iterable(fields.values())), tuple(unheld)


def _too_long(fields: Mapping[str, list[_Unit]], words: int) -> str:
    """The field that has to lose a unit; "" where all fit."""
    if over := next((name for name, limit in _MAX_ITEMS.items() if len(fields[name]) > limit), None):
        return over
    if len(_rendered(tuple(chain.from_iterable(fields.values()))).split()) <= words:
        return ""
    sizes = {name: sum(len(u.shown.split()) for u in own) for name, own in fields.items()}
    free = [n for n in fields if n not in _BINDING_FIELDS and len(fields[n]) > (n == "summary")]
    return max(free or [n for n in _BINDING_FIELDS if fields[n]], key=lambda n: sizes[n], default="")


def _digest(units: Sequence[_Unit]) -> ConversationDigest:
    prose = {name: _joined_text(u for u in units if u.field == name) for name in _PROSE}
    lists = {name: tuple(u.shown for u in units if u.field == name) for name in LABELS if name not in _PROSE}
    return ConversationDigest.model_validate({**prose, **lists})


def _rendered(units: Sequence[_Unit]) -> str:
    lines = [" ".join(u.text for u in units if u.field == "summary")]
    for field, label in LABELS.items():
        own = [u.shown for u in units if u.field == field]
        if field in ("key_themes", "journey"):
            lines += [f"{label}: {(' ' if field == 'journey' else ', ').join(own)}"] if own else []
        else:
            lines += [f"{label}:", *(f"- {text}" for text in own)] if own else []
    return "\n".join(lines)
