"""Who is told an answer while it is written. A port and its shape; knows no terminal and no socket."""

from typing import Protocol


class AnswerListener(Protocol):
    """Told a written answer piece by piece. What was told since the last withdrawal is the answer, once its call has returned.

    A listener that raises stops the call; one that is gone and does not want that keeps silent.
    """

    def on_text(self, text: str) -> None:
        """The answer goes on with `text`; never empty."""
        ...

    def on_withdrawal(self, reason: str) -> None:
        """What was told so far is no answer: what comes next takes its place. Means nothing where nothing was told."""
        ...
