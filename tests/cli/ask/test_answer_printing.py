"""What a terminal shows while a turn runs."""

import sys

import pytest

from pandora_dagster.cli.ask.answer_printing import AnswerPrinter, ProgressLine


class _Terminal:
    """A stream that is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_the_last_phase_until_the_answer_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line is erased before the first word, and not written into the answer."""
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    printer = AnswerPrinter(ProgressLine())
    printer.progress.show("reflection finished")
    assert terminal.text.endswith("reflection finished ...")
    printer.on_text("It is oak.")
    assert terminal.text.endswith("...\r\x1b[K") and printer.is_writing
    printer.finish("It is oak.")
    assert capsys.readouterr().out == "It is oak.\n" and not printer.is_writing


def test_a_pipe_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ProgressLine()
    progress.show("reflection finished")
    progress.clear()
    assert capsys.readouterr().err == ""
