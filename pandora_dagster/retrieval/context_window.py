"""Which earlier turns of a session a call sees: whole, as their summaries, or not at all (specification 002, sections 3 and 5).

The choice is by the number, size and age of turns; the caller reads them. A turn is sent in one form or left out, and never cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.retrieval.retrieval_policy import RetrievalPolicy, buffer_size

Form = Literal["whole", "summary", "rolled up", "left out"]
"""`rolled up`: one rolling summary replaces all these turns."""


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """An earlier turn in the forms in which it could be sent; "" where there is none."""

    number: int
    whole: str = ""
    summary: str = ""
    chosen: bool = False
    """Retrieval chose it and sends it whole; its tokens count against the budget of retrieval."""
    covered: bool = False
    """The conversation's rolling summary covers it."""

    def text(self, form: Form) -> str:
        return self.whole if form == "whole" else self.summary if form == "summary" else ""


@dataclass(slots=True)
class ContextWindow:
    """The form of every given turn by its number, oldest first, and why; `tokens` of what is sent, chosen turns not counted."""

    counter: TokenMeasure
    forms: dict[int, Form] = field(default_factory=dict[int, Form])
    reasons: dict[int, str] = field(default_factory=dict[int, str])
    tokens: int = 0

    def numbers(self, form: Form) -> tuple[int, ...]:
        """The turns of a form, oldest first."""
        return tuple(number for number, turn_form in self.forms.items() if turn_form == form)

    def put(self, turn: SessionTurn, form: Form, why: str) -> None:
        """Give a turn a form, in the place of the one that it has."""
        self.tokens += self.cost(turn, form) - self.cost(turn, self.forms[turn.number])
        self.forms[turn.number] = form
        self.reasons[turn.number] = why

    def cost(self, turn: SessionTurn, form: Form) -> int:
        """Tokens of a turn in a form, with the blank line after it; 0 for a turn that retrieval chose."""
        text = turn.text(form)
        return self.counter.count(f"{text}\n\n") if text and not turn.chosen else 0


def choose_window(
    turns: Sequence[SessionTurn],
    *,
    policy: RetrievalPolicy,
    intent: str,
    budget_tokens: int,
    counter: TokenMeasure,
    summary_tokens: int = 0,
    retrieved_tokens: int = 0,
) -> ContextWindow:
    """Choose the form of each earlier turn of a session.

    `turns`: oldest first; `intent`: that of the query; `summary_tokens`: of the rolling summary, 0 for none; `retrieved_tokens`: of the
    turns that retrieval chose.

    Protected turns come first, each at least in its smaller form, whatever the budget; then the rolling summary, for the turns that it
    covers. Of the remaining tokens, older history takes up to 60 %, or more where retrieval needs less than its 40 %: newest turns whole
    first, then summaries (specification 002, sections 3 and 5). Turns that the summary does not cover yet are within reach, however old:
    its triggers bound their number.
    """
    newest, window = list(reversed(turns)), ContextWindow(counter, {turn.number: "left out" for turn in turns})
    protected = policy.protected(intent, has_summary=summary_tokens > 0)
    for turn in newest[:protected]:
        _protect(window, turn)
    remaining_tokens = max(0, budget_tokens - window.tokens)
    has_summary = (
        0 < summary_tokens <= remaining_tokens
        and buffer_size(intent) > policy.minimal
        and _roll_up(window, newest[protected:], summary_tokens)
    )
    remaining_tokens -= summary_tokens if has_summary else 0
    reach = policy.reach(intent, has_summary=has_summary)
    if has_summary:
        reach = max(reach, sum(not t.covered for t in newest))
    retrieval_share = remaining_tokens - int(remaining_tokens * policy.older_share)
    token_limit = window.tokens + remaining_tokens - min(retrieved_tokens, retrieval_share)
    for turn in newest[: buffer_size(intent)]:
        _offer(window, turn, "whole", "one of the newest turns", token_limit)
    for turn in newest[protected:reach]:
        _offer(window, turn, "summary", "an older turn of the session", token_limit)
    for rank, turn in enumerate(newest):
        if turn.chosen:
            window.put(turn, "whole", "chosen for the query")
        window.reasons.setdefault(turn.number, f"older than the newest {reach} turns" if rank >= reach else "no form of it is known")
    return window


def _roll_up(window: ContextWindow, older: Sequence[SessionTurn], tokens: int) -> bool:
    """Let the rolling summary replace the turns that it covers and retrieval did not choose; False where there are none."""
    covered = [turn for turn in older if turn.covered and not turn.chosen]
    for turn in covered:
        window.put(turn, "rolled up", "in the summary of the conversation")
    window.tokens += tokens if covered else 0
    return bool(covered)


def _protect(window: ContextWindow, turn: SessionTurn) -> None:
    """Give a protected turn its smaller form."""
    if turn.summary and (not turn.whole or window.cost(turn, "summary") < window.cost(turn, "whole")):
        window.put(turn, "summary", "protected")
    elif turn.whole:
        window.put(turn, "whole", "protected, and no longer than its summary" if turn.summary else "protected, without a summary")


def _offer(window: ContextWindow, turn: SessionTurn, form: Form, why: str, token_limit: int) -> None:
    """Give a turn a form where it fits within `token_limit`; else a protected one keeps the form that it has."""
    current_form = window.forms[turn.number]
    if not turn.text(form) or current_form in (form, "whole", "rolled up"):
        return
    if window.tokens + window.cost(turn, form) - window.cost(turn, current_form) <= token_limit:
        window.put(turn, form, why)
    else:
        window.reasons[turn.number] = "no room" if current_form == "left out" else "protected; no room for it whole"
