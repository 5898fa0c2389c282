"""The program as a whole: exit codes, streams, and what start-up costs; a real process where that is what is tested."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pandora_dagster.cli.program import PANELS, command_line
from tests.cli.conftest import REPOSITORY, Pandora


def commands(group: typer.core.TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, typer.core.TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


ROOT = typer.main.get_command(command_line)
assert isinstance(ROOT, typer.core.TyperGroup)
COMMANDS = dict(commands(ROOT))
READING = (
    "ask",
    "resume",
    "turns",
    "show",
    "doctor",
    "index verify",
    "recipes list",
    "recipes show",
    "interventions list",
    "interventions show",
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(name: str) -> None:
    """The help of each command ends with an example that begins with the command itself; its first sentence fits one line."""
    command = COMMANDS[name]
    assert f"Example: pandora {name}" in (command.epilog or "") and "Example" not in (command.help or "")
    assert not command.get_short_help_str(61).endswith("...")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_fits_80_columns(name: str) -> None:
    """Also its examples and the fields that it lists, which no terminal wraps well."""
    shown = CliRunner().invoke(command_line, [*name.split(), "--help"], terminal_width=80).stdout
    assert shown and max(map(len, shown.splitlines())) <= 80


def test_every_command_has_a_panel() -> None:
    """`pandora --help` lists each command once, with the heading of its panel."""
    listed = re.findall(r"^  ([a-z]+)  ", CliRunner().invoke(command_line, ["--help"]).stdout, re.MULTILINE)
    assert sorted(listed) == sorted(ROOT.commands) and len(PANELS) == 6


@pytest.mark.parametrize("name", READING)
def test_commands_that_read_can_speak_json(name: str) -> None:
    """What reads offers --json."""
    command: typer.core.TyperCommand | typer.core.TyperGroup = ROOT
    for word in name.split():
        assert isinstance(command, typer.core.TyperGroup)
        command = command.commands[word]
    assert "--json" in {option for parameter in command.params for option in parameter.opts}


def test_start_up_imports_nothing_heavy() -> None:
    """`pandora --help` imports neither Dagster, nor the model client, nor DuckDB."""
    code = (
        "import sys\nfrom pandora_dagster.cli.program import command_line\n"
        "try:\n    command_line(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'dagster', 'openai', 'duckdb', 'pydantic', 'tiktoken'} & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert (result.stderr.strip(), "Ask commands:" in result.stdout) == ("[]", True)


def test_an_answer_waits_for_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    """When the answer of a new process is printed, neither Dagster nor a client of model servers nor a reader of web pages is loaded."""
    unneeded = (
        *("dagster", "sqlalchemy", "openai", "structlog", "pandora_dagster.runtime.sglang.sglang_runtime"),
        *("pandora_dagster.runtime.serving.server_supervisor", "pandora_dagster.documents.webpages.page_reader"),
    )
    code = (
        "import gc, sys\nfrom pandora_dagster.cli import main\nfrom pandora_dagster.cli.ask.answer_printing import AnswerPrinter\n"
        "finish = AnswerPrinter.finish\ndef report(printer, answer):\n    finish(printer, answer)\n"
        f"    print('loaded', sorted({set(unneeded)!r} & set(sys.modules)), gc.get_threshold()[0], file=sys.stderr)\n"
        "AnswerPrinter.finish = report\nsys.argv = ['pandora', 'ask', 'Which chair did we order, and what did it cost?']\nmain()\n"
    )
    environment = os.environ | {"PANDORA_ROOT": str(tmp_path / "store")}
    result = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True, env=environment)
    assert "loaded [] 50000" in result.stderr
    assert "leak" not in result.stderr  # of a library that is left uncollected at the end


def test_the_version_is_the_packages(process: Pandora) -> None:
    """--version prints name and version."""
    result = process("--version")
    assert (result.returncode, result.stdout.split()[0]) == (0, "pandora")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonsense",), "No such command"),
        (("turns", "--nonsense"), "No such option"),
        (("turns", "--state", "done"), "--state done: expected one of open, halted, clarify, saved, archived"),
        (("show", "example:turn_999999"), "turn_999999"),
        (("show", "../../etc:turn_000001"), "etc"),
        (("ask", "   "), "query: empty"),
        (("ask", "hello", "--mode", "verse"), "mode 'verse': expected chat or code"),
        (("ask", "hello", "--user", "a/../b"), "a/../b"),
        (("--runtime", "magic", "turns"), "PANDORA_RUNTIME: 'magic': expected extractive, sglang, sglang-offline or openai"),
        (("import", "nowhere.jsonl"), "nowhere.jsonl: not a file"),
        (("recipes", "check", "nowhere.yaml"), "nowhere.yaml"),
        (("recipes", "show", "pipeline/nothing"), "pipeline/nothing"),
        (("interventions", "show", "int_20260101_000000_0000"), "int_20260101_000000_0000"),
    ],
)
def test_what_is_wrong_is_reported_with_exit_code_2(arguments: tuple[str, ...], message: str, pandora: Pandora, tmp_path: Path) -> None:
    """A wrong command line or file: exit code 2, a sentence on stderr, nothing on stdout, no traceback."""
    (tmp_path / "data/panda-system-docs/users").mkdir(parents=True)
    result = pandora(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_wrong_command_line_ends_the_process_with_exit_code_2(process: Pandora, tmp_path: Path) -> None:
    """As the shell sees it: a sentence and its remedy on stderr, no traceback."""
    (tmp_path / "data/panda-system-docs/users").mkdir(parents=True)
    result = process("show", "../../etc:turn_000001")
    assert (result.returncode, result.stdout, "Traceback" in result.stderr) == (2, "", False)
    assert "etc" in result.stderr


def test_a_broken_line_is_named_and_the_rest_imported(pandora: Pandora, tmp_path: Path) -> None:
    """Exit code 1, the line's place on stderr, counts on stdout as one JSON document."""
    good = {"id": "c1", "user_id": "ann", "created_at": "2026-01-04T14:30:00Z", "messages": [{"role": "user", "content": "Hello"}]}
    (tmp_path / "two.jsonl").write_text(f"{{broken\n{json.dumps(good)}\n", encoding="utf-8")
    result = pandora("import", "two.jsonl", "--json")
    assert (result.returncode, json.loads(result.stdout)["conversations"]) == (1, 1)
    assert "two.jsonl:1" in result.stderr


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    """`pandora export | head -0` ends without a traceback."""
    code = "from pandora_dagster.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "--root", str(root), "export"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    message = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)
    assert "Traceback" not in message


def test_ask_answers_with_citations_that_exist(pandora: Pandora, root: Path, tmp_path: Path) -> None:
    """A turn over the recorded history: one JSON document, saved, each citation a file on the disk; then the turn is listed."""
    store = tmp_path / "store"
    exported = pandora("--root", str(root), "export").stdout
    (tmp_path / "history.jsonl").write_text(exported, encoding="utf-8")
    assert pandora("--root", str(store), "import", "history.jsonl").returncode == 0
    result = pandora("--root", str(store), "ask", "Which chair did we order, and what did it cost?", "--user", "example", "--json")
    output = json.loads(result.stdout)
    assert (result.returncode, output["state"]) == (0, "saved")
    assert "248" in output["response"]
    assert output["citations"]
    assert all(Path(cited["path"]).is_file() for cited in output["citations"])
    again = pandora("--root", str(store), "resume", f"example:{output['turn_id']}")
    assert (again.returncode, "nothing is left to do" in again.stderr) == (2, True)


def test_a_damaged_call_index_loses_no_answer_and_is_made_again(pandora: Pandora, tmp_path: Path) -> None:
    """The turn is saved and reported as JSON, the damage is a note; `index rebuild` mends it and `show` sums the calls."""
    store, damaged = tmp_path / "store", tmp_path / "store" / "indexes" / "call_index.duckdb"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"garbage")
    asked = pandora("--root", str(store), "ask", "Hello there", "--user", "ann", "--json")
    assert (asked.returncode, json.loads(asked.stdout)["state"], "index rebuild" in asked.stderr) == (0, "saved", True)
    assert pandora("--root", str(store), "index", "verify").returncode == 2
    assert pandora("--root", str(store), "index", "rebuild").returncode == 0
    assert pandora("--root", str(store), "index", "verify").returncode == 0
    shown = json.loads(pandora("--root", str(store), "show", "ann:turn_000001", "--json").stdout)
    assert shown["calls"]["calls"] > 0 and shown["calls"]["total_tokens"] > 0


def test_chat_answers_line_by_line(process: Pandora, tmp_path: Path) -> None:
    """Piped lines are turns of one session; the prompt is not mixed into the answers."""
    result = process("--root", str(tmp_path / "store"), "chat", "--user", "ann", "--session", "s1", text="Hello there\n\n")
    assert (result.returncode, result.stdout.startswith(">")) == (0, False)
    listed = json.loads(process("--root", str(tmp_path / "store"), "turns", "--json").stdout)
    assert [turn["session_id"] for turn in listed] == ["s1"]


def test_verbose_prints_a_line_for_each_compression(process: Pandora, tmp_path: Path) -> None:
    """One JSON line on stderr (000 section 27); the metrics of the store count them."""
    store = str(tmp_path / "store")
    assert process("--root", store, "import", str(REPOSITORY / "data" / "example" / "conversations.jsonl")).returncode == 0
    told = process("--root", store, "--verbose", "archive", "--older-than", "30d")
    lines = [json.loads(line) for line in told.stderr.splitlines() if line.startswith("{")]
    assert {(line["event"], line["outcome"], line["recipe"]) for line in lines} == {
        ("smart_summarization", "compressed", "compress_context")
    }
    metrics = (tmp_path / "store" / "metrics" / "pandora.prom").read_text()
    assert f'pandora_compressions_total{{outcome="ok",recipe="compress_context"}} {len(lines)}.0' in metrics


def test_a_removed_setting_is_named(process: Pandora) -> None:
    """A command goes on, with one line on stderr."""
    result = process("recipes", "list", env={"PANDORA_STAGE": "repair"})
    assert result.returncode == 0 and "pandora: PANDORA_STAGE has no effect any more (CHANGELOG.md)" in result.stderr.splitlines()


CHAT = """Our budget for the hall is 900 euros.
/sources
/help
/nonsense
/save chat.md
/save chat.md
/new
exit
never asked
"""


def test_chat_has_commands(process: Pandora, tmp_path: Path) -> None:
    """They are no turns: sources, help, a file that is never overwritten, a new session, and words that end the chat."""
    result = process("--root", str(tmp_path / "store"), "chat", "--user", "ann", text=CHAT)
    assert result.returncode == 0 and "/save FILE" in result.stderr and "/nonsense: unknown command" in result.stderr
    saved = (tmp_path / "chat.md").read_text()
    assert saved.startswith("# Chat day-") and "## Our budget for the hall is 900 euros." in saved
    assert "/save chat.md: expected a new file" in result.stderr and "\nsession chat-" in result.stderr
    assert "\r" not in result.stderr
    turns = json.loads(process("--root", str(tmp_path / "store"), "turns", "--json").stdout)
    assert len(turns) == 1


def test_the_demo_fits_80_columns(process: Pandora, tmp_path: Path) -> None:
    """The table of phases; lines of the answer are wrapped by the terminal."""
    result = process("--root", str(tmp_path / "store"), "demo")
    table = [line for line in result.stdout.splitlines() if line[:1] in "┏┃┡│└"]
    assert result.returncode == 0 and len(table) > 12 and max(map(len, table)) <= 80


def test_a_question_in_another_language_than_the_sources_is_told_so(process: Pandora, tmp_path: Path) -> None:
    """The embedded runtime compares words: it says what it may have missed, beside the answer that it found nothing."""
    store = str(tmp_path / "store")
    assert process("--root", store, "import", str(REPOSITORY / "data" / "example" / "conversations.jsonl")).returncode == 0
    result = process("--root", store, "ask", "Was hat der Stuhl für das Büro gekostet?", "--user", "example")
    assert result.stdout.startswith("Ich habe dazu nichts gefunden.")
    assert "the question is in de, the sources are in en" in result.stderr
    assert "nothing that is stored for example matches the question; without a model, stored text is quoted" in result.stderr


def test_an_empty_store_is_named_where_nothing_is_found(process: Pandora, tmp_path: Path) -> None:
    """Nothing stored reads otherwise than nothing that matches; the answer itself says once that nothing was found."""
    result = process("--root", str(tmp_path / "store"), "ask", "What did the desk cost?", "--user", "anna")
    assert result.stdout.strip() == "I found nothing about this."
    assert "pandora: nothing is stored for anna yet; without a model" in result.stderr
