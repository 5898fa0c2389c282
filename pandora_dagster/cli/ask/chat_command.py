"""`pandora chat`: turn after turn in one process, and the commands that a line of it may be."""

import re
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pandora_dagster.cli.app_context import User, app_of
from pandora_dagster.cli.ask.answer_printing import AnswerPrinter, ProgressLine, print_halt_and_retry, print_notices, print_when_saved
from pandora_dagster.cli.output import EXIT_FAILED, print_line, print_note, write_page
from pandora_dagster.errors import PandoraError
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.app import App
    from pandora_dagster.contracts.ids import TurnKey
    from pandora_dagster.phases.core.phase_report import PhaseReport

Session = Annotated[str, typer.Option("--session", "-s", help="Session id; default: one session a day.")]
NoStream = Annotated[bool, typer.Option("--no-stream", help="Print the answer when it is complete, not while it is written.")]
_HELP = """/help       list these commands
/sources    list what the last answer was made from
/save FILE  write the questions and answers of this chat to a new file
/new        begin a new session
/exit       end the chat; exit, quit, an empty line and the end of input do so too"""
_END_WORDS = frozenset({"", "exit", "quit", "/exit", "/quit"})
_COMMAND = re.compile(r"(/[a-z]+)(?:\s+(.*))?")


@dataclass(slots=True)
class _Chat:
    """A chat under way."""

    app: "App"
    user: str
    session: str
    streams: bool
    exchanges: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The questions with their answers."""
    last: "TurnKey | None" = None
    halted: bool = False

    def run_command(self, text: str) -> bool:
        """Run a line that is a command; False for a question."""
        command = _COMMAND.fullmatch(text)
        if command is None:
            return False
        name, argument = command[1], (command[2] or "").strip()
        if name == "/help":
            print_note(_HELP)
        elif name == "/sources":
            self._print_sources()
        elif name == "/save":
            self._save(argument)
        elif name == "/new":
            self.session, self.last = f"chat-{secrets.token_hex(6)}", None
            print_note(f"session {self.session}")
        else:
            print_note(f"pandora: {name}: unknown command: expected /help, /sources, /save FILE, /new or /exit")
        return True

    def ask(self, text: str) -> None:
        """Run one turn and print its answer."""
        from pandora_dagster.cli.ask.write_question import run_with_questions

        key = self.app.start(text, user=self.user, session=self.session, mode="chat")
        reports: list[PhaseReport] = []
        printer = AnswerPrinter()

        def on_report(report: "PhaseReport") -> None:
            printer.progress.clear()
            print_notices(report)
            print_when_saved(self.app, report, reports, printer)

        printer.progress.show("the turn begins")
        runner = self.app.with_listener(printer) if self.streams else self.app
        try:
            last_report = run_with_questions(runner, key, on_report=on_report)
        finally:
            printer.progress.clear()
        self.last = key
        self.exchanges.append((text, self.app.answer_of(key, last_report.turn).response))
        if last_report.halt:
            self.halted = True
            print_halt_and_retry(last_report.halt)

    def _print_sources(self) -> None:
        from pandora_dagster.documents.citations import source_references
        from pandora_dagster.documents.sections import ContextDocument

        if self.last is None:
            print_note("pandora: there is no answer in this session yet")
            return
        document = ContextDocument.parse(self.app.turns.load(self.last).context)
        sources = [*source_references(document.body(2)), *source_references(document.body(4))]
        for source in sources:
            print_line(f"  [{source.label}] {source.path}  {source.description}".rstrip())
        if not sources:
            print_note("the last answer has no sources")

    def _save(self, name: str) -> None:
        path = Path(name).expanduser()
        if not name or path.exists() or not path.parent.is_dir():
            print_note(f"pandora: /save {name}: expected a new file in an existing folder")
            return
        lines = [f"# Chat {self.session}", *(f"## {question}\n\n{answer}" for question, answer in self.exchanges)]
        written = write_page(path, "\n\n".join(lines) + "\n")
        print_note(f"{counted(len(self.exchanges), 'answer')} written to {written}")


def chat(context: typer.Context, user: User = "", session: Session = "", no_stream: NoStream = False) -> None:
    """Chat: ask turn after turn in one process.

    /help lists the commands of a chat. exit, quit, an empty line or the end of input ends it. The exit code is 1 if a
    turn halted.

    Example: pandora chat --user example
    """
    progress = ProgressLine()
    progress.show("opening the store")
    with app_of(context) as app:
        progress.clear()
        running = _Chat(app, user, session or app.new_session(), streams=not no_stream)
        print_note(f"session {running.session}, runtime {app.dependencies.runtime}; /help lists commands, an empty line ends the chat")
        while (text := _read_line()).lower() not in _END_WORDS:
            try:
                if not running.run_command(text):
                    running.ask(text)
            except PandoraError as error:
                running.halted = True
                print_note(f"pandora: {error.with_hint}")
    if running.halted:
        raise typer.Exit(EXIT_FAILED)


def _read_line() -> str:
    """A line from stdin; the prompt is printed on a terminal only, so that piped answers are plain."""
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""
