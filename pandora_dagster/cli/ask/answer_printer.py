"""An answer on stdout while it is written, and what is missing of it at its end. Knows the terminal; knows no turn."""

import typer

_LONGEST_REASON = 300


class AnswerPrinter:
    """`Listens` on stdout. A reader that went away (`| head`) takes nothing from the turn, which goes on unheard."""

    def __init__(self) -> None:
        self._told: list[str] = []
        self._unheard = False

    def on_text(self, text: str) -> None:
        self._told.append(text)
        self._echo(text)

    def on_withdrawal(self, reason: str) -> None:
        """Says that what stands there is no answer."""
        if self._told:
            self._told.clear()
            told = " ".join(reason.split())
            told = told if len(told) <= _LONGEST_REASON else f"{told[:_LONGEST_REASON]} ..."
            self._echo(f"\n\n--- The draft above is withdrawn: {told} ---\n\n")

    def finish(self, answer: str) -> None:
        """Ends with the answer as it is stored: its line where it was told so, else the whole of it."""
        if "".join(self._told).strip() != answer.strip():
            self.on_withdrawal("the stored answer reads otherwise")
            self._echo(answer)
        self._told.clear()
        self._echo("\n")

    def _echo(self, text: str) -> None:
        if self._unheard:
            return
        try:
            typer.echo(text, nl=False)
        except BrokenPipeError:
            self._unheard = True
