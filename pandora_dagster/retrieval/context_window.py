"""Which earlier turns of a session a call sees: whole, as their summaries, or not at all (002 sections 3 and 5).

Pure: knows numbers, sizes and order; reads no turn, makes no summary. A turn goes in one of these forms or stays out: nothing is cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.errors import InputError

AVOID_RECALL, STAGE_ENFORCEMENT = "avoid_recall", "stage_enforcement"
_MEDIATION = {"witnessing": 5, "perspective": 4, "need_mapping": 4, "repair": 5, AVOID_RECALL: 0, STAGE_ENFORCEMENT: 2}
_ASSISTANT = {
    "commerce": 5,
    "query": 5,
    "recall": 5,
    "preference": 4,
    "navigation": 2,
    "greeting": 0,
    AVOID_RECALL: 0,
    STAGE_ENFORCEMENT: 2,
}
"""A purchase, a question and a look back grow over turns as stages 1 and 4 do; a preference is set like a need; going somewhere needs
as little as stage enforcement, and a greeting recalls nothing."""


@dataclass(frozen=True, slots=True)
class SummaryTriggers:
    """When a conversation is summarised as a whole (002 section 3, "Summarization")."""

    messages: int = 30
    tokens: int = 3_500
    again_after: int = 20
    """New messages after which it is summarised again."""
    kept: int = 15
    """Newest messages that stay out of the summary."""
    words: int = 500

    def due(self, *, messages: int, tokens: int, summarised: int = 0) -> bool:
        """Whether `messages` of `tokens` in all call for a summary; `summarised`: how many there were at the last one, 0 for none."""
        if messages <= self.kept:
            return False
        if summarised:
            return messages - summarised >= self.again_after
        return messages >= self.messages or tokens > self.tokens


INNER_THOUGHTS = SummaryTriggers(messages=20, again_after=15, kept=12)
"""The variant of 002 section 3 for private reflections."""


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The numbers of one policy. Counts of messages are 002's; a turn is two of them."""

    name: str
    buffers: Mapping[str, int] = field(default_factory=lambda: MappingProxyType(_ASSISTANT))
    """Stage or intent -> newest turns that go whole (002 section 3, "Turn Buffer Sizes")."""
    other_buffer: int = 4
    """For a stage or intent that the table does not name: 002's smaller ordinary buffer."""
    minimal: int = 2
    """A buffer up to this is all of the session that is sent: no summaries before it (avoid recall 0, stage enforcement 2)."""
    turns_with_summary: int = 8
    turns_without_summary: int = 12
    """How far back a window reaches, with and without a summary of the conversation (002 section 3, "Two-Level Trimming")."""
    protected_turns: int = 6
    """Newest turns that are never dropped (12 messages)."""
    messages: int = 24
    message_characters: int = 2_000
    """`maxMessageLength`: characters, for 002 counts a text's length at 4 characters a token. A turn over two such messages is
    compressed to it (DECISIONS 2), never cut."""
    cross_session: int | None = 10
    """Turns of other sessions that began after this one; None: tokens alone decide."""
    current_session: int | None = 5
    """Turns of this session that retrieval may add."""
    pre_session: int | None = 10
    """Turns from before this session's first."""
    older_share: float = 0.6
    """Of what protected turns leave; the rest is retrieved turns', which are dropped first (002 section 5)."""
    summary: SummaryTriggers = SummaryTriggers()
    inner_thoughts: SummaryTriggers = INNER_THOUGHTS

    @property
    def turn_tokens(self) -> int:
        """Tokens of one turn that goes whole: two messages at 4 characters a token (002 section 5)."""
        return 2 * self.message_characters // 4

    def buffer(self, kind: str) -> int:
        """Newest turns that go whole for a stage or intent."""
        return self.buffers.get(kind, self.other_buffer)

    def reach(self, kind: str, *, has_summary: bool) -> int:
        """How many of the newest turns are sent in any form."""
        buffer = self.buffer(kind)
        trimmed = self.turns_with_summary if has_summary else self.turns_without_summary
        return buffer if buffer <= self.minimal else min(trimmed, self.messages // 2)

    def protected(self, kind: str, *, has_summary: bool) -> int:
        """How many of the newest turns are never dropped."""
        return min(self.protected_turns, self.reach(kind, has_summary=has_summary))


WINDOW_POLICIES: Mapping[str, WindowPolicy] = MappingProxyType(
    {
        "assistant": WindowPolicy("assistant", cross_session=None, current_session=None, pre_session=None),
        "mediation": WindowPolicy("mediation", buffers=MappingProxyType(_MEDIATION)),
    }
)
"""The shipped policies (DECISIONS 27). `assistant` bounds retrieved turns by their tokens alone: they are short."""


def window_policy(name: str) -> WindowPolicy:
    """A shipped policy; raises InputError."""
    try:
        return WINDOW_POLICIES[name]
    except KeyError:
        raise InputError(f"policy {name!r}: expected one of {', '.join(WINDOW_POLICIES)}") from None


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """An earlier turn in the forms in which it could be sent; "" where there is none."""

    number: int
    whole: str = ""
    summary: str = ""
    chosen: bool = False
    """Retrieval sends it whole anyway, at its own cost."""
    covered: bool = False
    """The conversation's rolling summary covers it."""


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """Every given turn in exactly one of four, each oldest first, and why."""

    whole: tuple[int, ...]
    summarised: tuple[int, ...]
    rolled_up: tuple[int, ...]
    """One rolling summary stands for all of these."""
    left_out: tuple[int, ...]
    reasons: Mapping[int, str]
    tokens: int
    """Of what is sent, chosen turns not counted."""
    over: int = 0
    """Tokens by which the smallest forms of the protected turns alone exceed the budget: they are never dropped."""

    def form_of(self, number: int) -> str:
        """`whole`, `summary`, `rolled up` or `left out`."""
        ways = {"whole": self.whole, "summary": self.summarised, "rolled up": self.rolled_up}
        return next((how for how, numbers in ways.items() if number in numbers), "left out")


@dataclass(slots=True)
class _Making:
    """A window being made: number -> form, and what it costs so far."""

    counter: TokenMeasure
    forms: dict[int, str] = field(default_factory=dict[int, str])
    reasons: dict[int, str] = field(default_factory=dict[int, str])
    tokens: int = 0

    def put(self, turn: SessionTurn, form: str, why: str) -> None:
        self.tokens += self.cost(turn, form) - self.cost(turn, self.forms.get(turn.number, ""))
        self.forms[turn.number] = form
        self.reasons[turn.number] = why

    def cost(self, turn: SessionTurn, form: str) -> int:
        """Tokens of a turn in a form, with the blank line after it; 0 where retrieval pays."""
        text = turn.whole if form == "whole" else turn.summary if form == "summary" else ""
        return self.counter.count(f"{text}\n\n") if text and not turn.chosen else 0


def choose_window(
    turns: Sequence[SessionTurn],
    *,
    policy: WindowPolicy,
    kind: str,
    budget_tokens: int,
    counter: TokenMeasure,
    summary_tokens: int = 0,
    retrieved_tokens: int = 0,
) -> ContextWindow:
    """How each earlier turn of a session goes; `turns` oldest first, `kind` the stage or intent, `retrieved_tokens` what retrieval asks.

    Protected turns come first, each at least in its smaller form; then the rolling summary of `summary_tokens`, 0 for none, for the
    turns that it covers. Of what they leave, older history takes up to 60 %, or more where retrieval asks for less than its 40 %: newest
    turns whole first, then summaries, whole items only (002 sections 3 and 5). Turns that the summary does not cover yet are in reach,
    however far back: its triggers bound them.
    """
    newest, making = list(reversed(turns)), _Making(counter)
    kept = policy.protected(kind, has_summary=summary_tokens > 0)
    for turn in newest[:kept]:
        _protect(making, turn)
    over, left = max(0, making.tokens - budget_tokens), max(0, budget_tokens - making.tokens)
    has_summary = 0 < summary_tokens <= left and policy.buffer(kind) > policy.minimal and _rolled_up(making, newest[kept:], summary_tokens)
    left -= summary_tokens if has_summary else 0
    reach = policy.reach(kind, has_summary=has_summary)
    if has_summary:
        reach = max(reach, sum(not t.covered for t in newest))
    room = making.tokens + left - min(retrieved_tokens, left - int(left * policy.older_share))
    for turn in newest[: policy.buffer(kind)]:
        _offer(making, turn, "whole", "one of the newest turns", room)
    for turn in newest[kept:reach]:
        _offer(making, turn, "summary", "an older turn of the session", room)
    return _window(turns, making, {t.number: f"older than the newest {reach} turns" for t in newest[reach:]}, over)


def _rolled_up(making: _Making, older: Sequence[SessionTurn], tokens: int) -> bool:
    """Let the rolling summary stand for the turns that it covers and that go in no other form; False where there are none."""
    covered = [turn for turn in older if turn.covered and not turn.chosen]
    for turn in covered:
        making.put(turn, "rolled up", "in the summary of the conversation")
    making.tokens += tokens if covered else 0
    return bool(covered)


def _protect(making: _Making, turn: SessionTurn) -> None:
    if turn.chosen:
        making.put(turn, "whole", "chosen for the query")
    elif turn.summary and (not turn.whole or making.cost(turn, "summary") < making.cost(turn, "whole")):
        making.put(turn, "summary", "protected")
    elif turn.whole:
        making.put(turn, "whole", "protected, and no longer than its summary" if turn.summary else "protected, without a summary")


def _offer(making: _Making, turn: SessionTurn, form: str, why: str, room: int) -> None:
    """Take a turn in a form where it fits; a protected one keeps the form that it has."""
    text = turn.whole if form == "whole" else turn.summary
    known = making.forms.get(turn.number, "")
    if turn.chosen or not text or known in (form, "whole", "rolled up"):
        return
    if making.tokens + making.cost(turn, form) - making.cost(turn, known) <= room:
        making.put(turn, form, why)
    else:
        making.reasons[turn.number] = "protected; no room for it whole" if known else "no room"


def _window(turns: Sequence[SessionTurn], making: _Making, far: Mapping[int, str], over: int) -> ContextWindow:
    for turn in turns:
        if turn.chosen and turn.number not in making.forms:
            making.put(turn, "whole", "chosen for the query")
    of = {
        form: tuple(t.number for t in turns if making.forms.get(t.number, "left out") == form)
        for form in ("whole", "summary", "rolled up", "left out")
    }
    reasons = {t.number: making.reasons.get(t.number) or far.get(t.number, "no form of it is known") for t in turns}
    return ContextWindow(of["whole"], of["summary"], of["rolled up"], of["left out"], reasons, making.tokens, over)


def limit_turns(
    policy: WindowPolicy, numbers: Sequence[int], *, here: frozenset[int], first: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Retrieved turns within the policy's limits, best first, and those left out. `here`: turns of this session, `first` its first."""
    limits = {"here": policy.current_session, "before": policy.pre_session, "beside": policy.cross_session}
    taken: dict[str, list[int]] = {name: [] for name in limits}
    left: list[int] = []
    for number in numbers:
        kind = "here" if number in here else "before" if number < first else "beside"
        limit = limits[kind]
        (taken[kind] if limit is None or len(taken[kind]) < limit else left).append(number)
    kept = {n for group in taken.values() for n in group}
    return tuple(n for n in numbers if n in kept), tuple(left)
