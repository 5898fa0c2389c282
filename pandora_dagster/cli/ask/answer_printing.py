"""The output of a turn that runs: its progress, its answer while it is written, its sources, its halt."""

import sys
from typing import TYPE_CHECKING

from pandora_dagster.cli.output import display_path, print_line, print_note, print_text, replace_note
from pandora_dagster.language.no_result_phrases import is_no_result
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.contracts.interventions import Intervention
    from pandora_dagster.contracts.ports.tool import ToolProgress
    from pandora_dagster.phases.core.phase_report import PhaseReport

_MAX_REASON_CHARACTERS = 300
"""Characters of the reason for a withdrawal that are printed."""


class ProgressLine:
    """One line on stderr that names what was finished last; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        self._is_terminal, self._is_shown = sys.stderr.isatty(), False

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        if self._is_terminal:
            self._is_shown = True
            replace_note(f"{text} ...")

    def clear(self) -> None:
        """Remove the line, before anything else is printed."""
        if self._is_shown:
            self._is_shown = False
            replace_note("")


class AnswerPrinter:
    """Prints an answer while it is written. A reader that closes stdout (`| head`) does not stop the turn."""

    def __init__(self, progress: ProgressLine | None = None) -> None:
        self.progress = progress or ProgressLine()
        self._printed: list[str] = []
        self._stdout_closed = False

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

    def on_tool_progress(self, progress: "ToolProgress") -> None:
        """One line for each step of a tool, before the answer begins."""
        if not self._printed:
            self.progress.clear()
            print_note(f"{progress.tool}: {progress.message}")

    @property
    def is_writing(self) -> bool:
        """Whether a part of an answer is on the screen, whose line a progress line would break."""
        return bool(self._printed)

    def _echo(self, text: str) -> None:
        self.progress.clear()
        if self._stdout_closed:
            return
        try:
            print_text(text)
        except BrokenPipeError:
            self._stdout_closed = True


def print_when_saved(app: "App", report: "PhaseReport", reports: "list[PhaseReport]", printer: AnswerPrinter) -> None:
    """Add the report to `reports`; print the answer as soon as the turn is saved, before summary and index: decision 16
    (docs/decisions/16-the-answer-comes-first.md)."""
    reports.append(report)
    if report.halt:
        printer.on_withdrawal("the turn halted")
    if report.has_answer:
        result = app.answer_of(report.key, report.turn)
        printer.finish(result.response)
        for cited in result.citations:
            origin = cited.get("url") or cited["turn_id"] or "memory"
            print_line(f"  [{cited['label']}] {origin}  {display_path(cited['path'])}")
        for gap in [gap for seen in reports if (gap := seen.facts.get("language_gap"))]:
            print_note(f"pandora: {gap}")
        if is_no_result(result.response):
            print_note(f"pandora: {_why_nothing_was_found(reports)}")
        print_note(f"{report.key}  {report.manifest.state}  runtime {report.manifest.runtime}")
    if not printer.is_writing:
        printer.progress.show(f"{report.phase} finished")


def _why_nothing_was_found(reports: "list[PhaseReport]") -> str:
    """Whether nothing is stored or nothing stored matches; with the embedded runtime also what it does not do."""
    key, runtime = reports[-1].key, reports[-1].manifest.runtime
    is_empty = any(report.facts.get("nothing_stored") for report in reports)
    if visits := [row for report in reports for row in report.facts.get("visits", ())]:
        count = sum(row["status"] == "read" for row in visits)
        read = f"{count} {'page was' if count == 1 else 'pages were'} read, and none states it"
        return read if runtime != "extractive" else f"{read}; to compare pages, or to conclude from them, needs a model"
    reason = f"nothing is stored for {key.user} yet" if is_empty else f"nothing that is stored for {key.user} matches the question"
    return reason if runtime != "extractive" else f"{reason}; without a model, stored text is quoted and nothing is written or computed"


def print_notices(report: "PhaseReport") -> None:
    """Report the number of the user's documents that could not be read: notes, memory pages, turns."""
    if notices := report.facts.get("notices"):
        print_note(f"pandora: {counted(len(notices), 'document')} of {report.key.user} could not be read: pandora doctor names them")


def print_halt(halt: "Intervention") -> None:
    print_note(f"pandora: HALT at {halt.phase}: {halt.message}")
    print_note(f"  intervention {halt.id}. {halt.hint}".rstrip())


def print_halt_and_retry(halt: "Intervention") -> None:
    """Report a halt and the command that goes on: again once its cause is removed, or with the call that waits for an approval."""
    print_halt(halt)
    way = {"needs_approval": "--approve", "needs_person": "--answer FILE"}.get(halt.type, "--retry")
    print_note(f"  then: pandora interventions resolve {halt.id} {way}")
