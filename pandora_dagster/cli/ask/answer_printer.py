"""The streamed answer on stdout, completed at its end with what the stream lacks."""

import typer

_MAX_REASON_CHARACTERS = 300


class AnswerPrinter:
    """Prints an answer while it is written. A reader that closes stdout (`| head`) does not stop the turn."""

    def __init__(self) -> None:
        self._printed: list[str] = []
        self._is_closed = False

    def on_text(self, text: str) -> None:
        self._printed.append(text)
        self._echo(text)

    def on_withdrawal(self, reason: str) -> None:
        """Mark the printed draft as withdrawn."""
        if self._printed:
            self._printed.clear()
            line = " ".join(reason.split())
            line = line if len(line) <= _MAX_REASON_CHARACTERS else f"{line[:_MAX_REASON_CHARACTERS]} ..."
            self._echo(f"\n\n--- The draft above is withdrawn: {line} ---\n\n")

    def finish(self, answer: str) -> None:
        """End with the stored answer: a line end where the stream printed the same text, else the whole answer."""
        if "".join(self._printed).strip() != answer.strip():
            self.on_withdrawal("the stored answer is different")
            self._echo(answer)
        self._printed.clear()
        self._echo("\n")

    def _echo(self, text: str) -> None:
        if self._is_closed:
            return
        try:
            typer.echo(text, nl=False)
        except BrokenPipeError:
            self._is_closed = True
