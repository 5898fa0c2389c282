"""What of an answer a client gets: all of it, or up to a stop sequence or a number of tokens. Ends between units, never inside one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pandora_dagster.api.turn_request import AnswerLimits
from pandora_dagster.documents.whole_prefix import complete_prefix, whole_prefix
from pandora_dagster.phases.flow.turn_answer import TurnAnswer

_MAX_REASON_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class DeliveredText:
    """The text of an answer for a client, and why it ends there."""

    text: str
    finish: Literal["stop", "length"] = "stop"
    """`length`: the limit of tokens left out the rest."""


class AnswerDelivery:
    """The delivery of one answer, whole (`whole`) or in pieces (`add`, `withdraw`, `finish`)."""

    def __init__(self, limits: AnswerLimits, count: Callable[[str], int]) -> None:
        self._limits, self._count = limits, count
        self._draft, self._sent = "", ""
        self._history: list[str] = []

    @property
    def delivered(self) -> str:
        """All pieces so far, withdrawn drafts included."""
        return "".join(self._history)

    def whole(self, answer: TurnAnswer) -> DeliveredText:
        """The answer and its list of sources, within the limits."""
        content = answer.response + source_list(answer)
        ends = [place for stop in self._limits.stop if (place := content.find(stop)) >= 0]
        content = content[: min(ends)] if ends else content
        text = whole_prefix(content, self._fits)
        return DeliveredText(text, "stop" if text == content else "length")

    def add(self, text: str) -> str:
        """The piece that can be sent now that the draft goes on with `text`; "" while it may still change."""
        self._draft += text
        ready = self._without_stop(self._draft)
        if self._limits.max_tokens is not None:
            if "\n" not in text:  # a unit that has not ended may exceed the limit, and reading units is not cheap
                return ""
            ready = whole_prefix(complete_prefix(ready), self._fits)
        return self._send(ready[len(self._sent) :]) if ready.startswith(self._sent) else ""

    def withdraw(self, reason: str) -> str:
        """The notice that separates a withdrawn draft from its replacement; "" where nothing of it was sent."""
        had_sent, self._draft, self._sent = bool(self._sent), "", ""
        return self._record(withdrawal_notice(reason)) if had_sent else ""

    def finish(self, answer: TurnAnswer) -> tuple[str, DeliveredText]:
        """The last piece, and all that was delivered."""
        final, piece = self.whole(answer), ""
        is_cut_earlier = final.finish == "length" and self._sent.startswith(final.text)
        if not (final.text.startswith(self._sent) or is_cut_earlier):
            piece = self.withdraw("the stored answer is different")
        piece += self._send(final.text[len(self._sent) :])
        return piece, DeliveredText(self.delivered, final.finish)

    def _fits(self, text: str) -> bool:
        return self._limits.max_tokens is None or self._count(text) <= self._limits.max_tokens

    def _without_stop(self, draft: str) -> str:
        """The draft up to the first stop sequence, or up to an end that may be the beginning of one."""
        end = len(draft)
        for stop in self._limits.stop:
            place = draft.find(stop)
            if place < 0:
                lengths = range(min(len(stop) - 1, len(draft)), 0, -1)
                place = len(draft) - next((n for n in lengths if draft.endswith(stop[:n])), 0)
            end = min(end, place)
        return draft[:end]

    def _send(self, piece: str) -> str:
        self._sent += piece
        return self._record(piece)

    def _record(self, piece: str) -> str:
        self._history.append(piece)
        return piece


def source_list(answer: TurnAnswer) -> str:
    """The list of sources after an answer, as `pandora ask` prints it but without paths; "" where nothing is cited."""
    lines = [f"[{cited['label']}] {cited['turn_id'] or 'memory'}" for cited in answer.citations]
    return "\n\n" + "  \n".join(lines) if lines else ""


def withdrawal_notice(reason: str) -> str:
    """The text between a withdrawn draft and its replacement: a client shows both, one after the other."""
    line = " ".join(reason.split())
    line = line if len(line) <= _MAX_REASON_CHARACTERS else f"{line[:_MAX_REASON_CHARACTERS]} ..."
    return f"\n\n---\n\n*The draft above is withdrawn: {line}*\n\n"
