"""Runs what a page shows, from its first command to its last, in a folder and a store of their own.

A `console` block holds commands behind `$ ` and, after each, lines of its output. Options of a block:

- `no-run reason="..."`: shown only; the reason says what it needs.
- `exit="1"`: the exit code of its last command; 0 without.
- `file="talk.txt"` on a block of any other language: the block is a file of the folder.

`pandora` runs inside this process, as the program does; every other command runs in bash, `python` as this one. `...` in a
line of output matches anything, a line `...` any lines. An intervention id in shown output represents the id that was printed
there, also in later commands.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from pandora_dagster.cli import main
from tests.docs.pages import REPOSITORY, Block

SHOWN_AS = {"make run": "pandora demo"}
"""Targets of the Makefile that are one command of ours (tested)."""

_INTERVENTION = re.compile(r"int_\d{8}_\d{6}_[0-9a-f]{4}")


@dataclass(frozen=True, slots=True)
class Step:
    """A command with the output that the page shows below it and the exit code that it expects."""

    place: str
    command: str
    shown: tuple[str, ...]
    code: int


def steps(block: Block) -> list[Step]:
    """The commands of a `console` block."""
    found: list[Step] = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, shown = _command(part.splitlines())
        found.append(Step(block.place, command, tuple(shown), 0))
    if found and "exit" in block.options:
        found[-1] = Step(block.place, found[-1].command, found[-1].shown, int(block.options["exit"]))
    return found


class Scenario:
    """A folder with the shipped example beside a fresh store, as in a checkout; `export` lines last for the whole page."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, addresses: Mapping[str, str] = MappingProxyType({})) -> None:
        """`addresses`: an address on the page -> that of the server that stands in for it."""
        self.folder = folder
        self.patch = patch
        self.addresses = addresses
        self.interventions: dict[str, str] = {}
        """Id on the page -> the id that was printed for it."""
        for name in [n for n in os.environ if n.startswith(("PANDORA_", "DAGSTER_"))]:
            patch.delenv(name)
        patch.setenv("COLUMNS", "120")
        shutil.copytree(REPOSITORY / "data" / "example", folder / "data" / "example")

    def run(self, block: Block) -> None:
        """Writes the file that the block is, or runs the commands in it."""
        if "file" in block.options:
            (self.folder / block.options["file"]).write_text(block.text, encoding="utf-8")
        elif block.language == "console" and "no-run" not in block.options:
            for step in steps(block):
                self._step(step)

    def _step(self, step: Step) -> None:
        code, output = self._execute(self._with_printed_ids(SHOWN_AS.get(step.command, step.command)))
        for shown, printed in zip(_INTERVENTION.findall("\n".join(step.shown)), _INTERVENTION.findall(output), strict=False):
            self.interventions.setdefault(shown, printed)
        assert code == step.code, f"{step.place}: {step.command}: exit code {code}, expected {step.code}\n{output}"
        missing = first_missing([self._with_printed_ids(line) for line in step.shown], output.splitlines())
        assert missing is None, f"{step.place}: {step.command}: the page shows {missing!r}; printed was\n{output}"

    def _with_printed_ids(self, text: str) -> str:
        for shown, own in self.addresses.items():
            text = text.replace(shown, own)
        return _INTERVENTION.sub(lambda m: self.interventions.get(m[0], m[0]), text)

    def _execute(self, command: str) -> tuple[int, str]:
        if exported := re.fullmatch(r"export (\w+)=(\S+)", command):
            self.patch.setenv(exported[1], exported[2])
            return 0, ""
        if not re.match(r"pandora\s", command):
            command = re.sub(r"^python\b", shlex.quote(sys.executable), command)
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, timeout=30, check=False)
            return done.returncode, done.stdout + done.stderr
        words, target = _redirected(shlex.split(command))
        code, out, err = self._pandora(words[1:])
        if target:
            (self.folder / target).write_text(out, encoding="utf-8")
        return code, ("" if target else out) + err

    def _pandora(self, arguments: Sequence[str]) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        self.patch.setattr(sys, "argv", ["pandora", *arguments])
        self.patch.setattr(sys, "stdin", io.StringIO())
        with chdir(self.folder), redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main()
            sys.exit(0)
        return int(ended.value.code or 0), out.getvalue(), err.getvalue()


def first_missing(shown: Sequence[str], printed: Sequence[str]) -> str | None:
    """The first shown line that is not among the printed ones in their order; None where all are. Runs of blanks count as one."""
    rest = iter([" ".join(line.split()) for line in printed])
    for line in shown:
        pattern = ".*".join(re.escape(piece) for piece in re.split(r" ?\.\.\. ?", " ".join(line.split())))
        if line.strip() not in ("", "...") and not any(re.fullmatch(pattern, candidate) for candidate in rest):
            return line
    return None


def _command(lines: list[str]) -> tuple[str, list[str]]:
    """The command, its continued lines joined, and what follows it."""
    command = lines.pop(0)
    while command.endswith("\\"):
        command = command[:-1].rstrip() + " " + lines.pop(0).strip()
    return re.sub(r"\s+#\s.*$", "", command).strip(), lines


def _redirected(words: list[str]) -> tuple[list[str], str | None]:
    return (words[:-2], words[-1]) if len(words) > 2 and words[-2] == ">" else (words, None)
