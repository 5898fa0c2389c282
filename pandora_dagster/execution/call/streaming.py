"""What a listener is told of one call, over all its attempts. Knows how an answer's text becomes what a person reads; judges nothing.

Words go to the listener as they come; a failed attempt withdraws them; at the end the listener has the result's text and nothing else.
"""

import re
from collections.abc import Callable

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.model_calls import AnswerListener
from pandora_dagster.documents.model_output.micro_tags import TaggedAnswerReader

_FENCE = re.compile(
    r"```(?:m(?:a(?:r(?:k(?:d(?:o(?:w(?:n[ \t]*)?)?)?)?)?)?|d[ \t]*)?)?\Z|```(?:markdown|md)[ \t]*\n|`{1,2}\Z", re.IGNORECASE
)
"""The beginning of an answer that may be, or is, a fence around the whole of it: that is taken off once its end is seen."""


class CallStream:
    """One call's listener, if it has one."""

    def __init__(self, listener: AnswerListener | None, output_format: OutputFormat) -> None:
        self._listener = listener if output_format.is_written else None
        self._format = output_format
        self._reading: TaggedAnswerReader | None = None
        self._told: list[str] = []
        self._held = ""

    def begin(self) -> Callable[[str], None] | None:
        """Where a new attempt's words go; None where nobody listens."""
        if self._listener is None:
            return None
        self._reading, self._held = TaggedAnswerReader() if self._format is OutputFormat.TAGGED else None, ""
        return self._receive

    def withdraw(self, reason: str) -> None:
        """What was told is no answer after all."""
        self._held = ""
        if self._listener is not None and self._told:
            self._told.clear()
            self._listener.on_withdrawal(reason)

    def finish(self, text: str) -> None:
        """The result is `text`: what is missing of it is told; where it goes on otherwise, all of it in the place of what was told."""
        if self._listener is None:
            return
        told = "".join(self._told)
        if not text.startswith(told):
            self.withdraw("its form was put right")
            told = ""
        self._emit(text[len(told) :])

    def _receive(self, piece: str) -> None:
        """White space at both ends is not part of the answer: it is held until words follow it."""
        text = self._held + (self._reading.feed(piece) if self._reading else piece)
        if not self._told:
            text = text.lstrip()
        if not self._told and self._format is OutputFormat.MARKDOWN and _FENCE.match(text):
            self._held = text
            return
        ready = text.rstrip()
        self._held = text[len(ready) :]
        self._emit(ready)

    def _emit(self, text: str) -> None:
        if text and self._listener is not None:
            self._told.append(text)
            self._listener.on_text(text)
