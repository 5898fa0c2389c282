"""The stream of one call to its listener, over all attempts, as the text that the user reads.

Pieces go to the listener as they arrive; a failed attempt withdraws them; at the end the listener has exactly the text of the result.
"""

import re
from collections.abc import Callable

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.model_calls import AnswerListener

_OUTER_FENCE = re.compile(
    r"```(?:m(?:a(?:r(?:k(?:d(?:o(?:w(?:n[ \t]*)?)?)?)?)?)?|d[ \t]*)?)?\Z|```(?:markdown|md)[ \t]*\n|`{1,2}\Z", re.IGNORECASE
)
"""The beginning of an answer that is, or may become, a fence around the whole answer; it is buffered, and removed at the end."""


class CallStream:
    """Sends the answer of one call to its listener; without a listener nothing is sent."""

    def __init__(self, listener: AnswerListener | None, output_format: OutputFormat) -> None:
        self._listener = listener if output_format.is_prose else None
        self._format = output_format
        self._sent: list[str] = []
        self._buffer = ""

    def begin(self) -> Callable[[str], None] | None:
        """The callback for the words of a new attempt; None without a listener."""
        if self._listener is None:
            return None
        self._buffer = ""
        return self._receive

    def withdraw(self, reason: str) -> None:
        """Withdraw the text that was sent so far, which is not the answer."""
        self._buffer = ""
        if self._listener is not None and self._sent:
            self._sent.clear()
            self._listener.on_withdrawal(reason)

    def finish(self, text: str) -> None:
        """Send the rest of the result `text`; where it does not continue the text sent so far, withdraw that and send all of it."""
        if self._listener is None:
            return
        sent = "".join(self._sent)
        if not text.startswith(sent):
            self.withdraw("its form was corrected")
            sent = ""
        self._emit(text[len(sent) :])

    def _receive(self, piece: str) -> None:
        """Send a piece. White space at both ends is not part of the answer: it is buffered until more text follows."""
        text = self._buffer + piece
        if not self._sent:
            text = text.lstrip()
        if not self._sent and self._format is OutputFormat.MARKDOWN and _OUTER_FENCE.match(text):
            self._buffer = text
            return
        ready = text.rstrip()
        self._buffer = text[len(ready) :]
        self._emit(ready)

    def _emit(self, text: str) -> None:
        if text and self._listener is not None:
            self._sent.append(text)
            self._listener.on_text(text)
