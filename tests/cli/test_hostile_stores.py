"""What people and other programs can put into a store: one bad file costs only itself, no secret is derived, no byte acts on a terminal."""

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from pandora_dagster.app.composition import print_notice
from pandora_dagster.cli.output import live_table, replace_note
from pandora_dagster.cli.program import _print_log
from pandora_dagster.documents.redaction.printable_text import printable
from tests.cli.conftest import Pandora

Run = Callable[..., "CompletedProcess[str]"]
BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)), "date: *a8"])
HOSTILE_NOTES = {
    "aliases": f"---\n{BOMB}\n---\n# A\n",
    "tag": "---\ntags: !!int ''\n---\n# A\n",
    "time": "---\ntags: !!timestamp x\n---\n# A\n",
    "bool": "---\ntags: !!bool maybe\n---\n# A\n",
    "deep": "---\ntags: " + "[" * 5_000 + "\n---\n# A\n",
}


@pytest.fixture
def store(root: Path, tmp_path: Path) -> Path:
    """A copy of the example."""
    return Path(shutil.copytree(root, tmp_path / "store"))


@pytest.fixture
def run(pandora: Pandora, store: Path) -> Run:
    return lambda *arguments, **options: pandora(*arguments, env={"PANDORA_ROOT": str(store)}, **options)


def test_a_hostile_note_or_memory_page_costs_only_itself(run: Run, store: Path) -> None:
    """Each ended every `ask` of its user, with a traceback or without end."""
    user = store / "users" / "example"
    (user / "notes").mkdir()
    for name, text in HOSTILE_NOTES.items():
        (user / "notes" / f"{name}.md").write_text(text)
    (user / "notes" / "good.md").write_text("---\ntags: [tea]\n---\n# Tea\n\nThe teapot is blue.\n")
    asked = run("ask", "What colour is the teapot?", "--user", "example", "--json")
    assert asked.returncode == 0 and json.loads(asked.stdout)["state"] == "saved", asked.stderr
    reported = run("doctor", "--json").stdout
    assert {name for name in HOSTILE_NOTES if f"{name}.md:" in reported} == set(HOSTILE_NOTES) and "good.md" not in reported
    (user / "preferences.md").write_text(f"# Preferences\n\n```yaml\n{BOMB}\n```\n")
    assert "an alias" in run("memory", "list", "--user", "example").stderr


def test_a_damaged_manifest_costs_only_its_turn(run: Run, store: Path) -> None:
    """A `turn.json` that is nested 5,000 deep ended show, verify, rebuild, export and archive for the whole store."""
    folder = store / "users" / "example" / "turns" / "turn_000002"
    (folder / "turn.json").write_text("[" * 5_000)
    assert "nested deeper than 64 levels" in run("show", "example:turn_000002").stderr
    assert run("show", "example:turn_000001").returncode == 0
    for command in (("index", "verify"), ("index", "rebuild"), ("export", "--user", "example"), ("archive", "--older-than", "1d")):
        done = run(*command)
        assert "turn_000002" in done.stdout + done.stderr and done.returncode in (0, 1, 2), command
    asked = run("ask", "Which desk did we order?", "--user", "example", "--json")
    assert asked.returncode == 0 and json.loads(asked.stdout)["state"] == "saved", asked.stderr


SECRETS = ("Tr0ub4dor-and-3", "sk-ant-api03-Zx81kQpL0vTnWs5RbY7mJcEd2HgUfAoi93lKqXwPzNtVrBsD")


def test_a_secret_of_a_conversation_is_in_its_documents_alone(run: Run, store: Path) -> None:
    """It was in clear in the turn index and in Dagster's event storage."""
    asked = run("ask", f"My password is {SECRETS[0]} and my key is {SECRETS[1]}. Which desk did we order?", "--user", "ann", "--json")
    assert asked.returncode == 0, asked.stderr
    assert run("ask", "What did I tell you about the desk?", "--user", "ann", "--json").returncode == 0
    documents = store / "users" / "ann" / "turns"
    holders = {
        str(path.relative_to(store))
        for path in store.rglob("*")
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in SECRETS)
    }
    assert any(name.endswith("context.md") for name in holders)
    assert {name for name in holders if not (store / name).is_relative_to(documents)} == set()
    assert {Path(name).name for name in holders} & {"calls.jsonl"} == set()
    assert run("index", "verify").returncode == 0


CONTROLS = "\x1b]0;owned\x07 \x1b]52;c;YQ==\x07 \x1b[2J \x9b2J \u202edesrever\u202c \x08\x08"


def test_a_control_character_has_a_visible_form() -> None:
    assert printable("a\x1b[2J\x9b\u202e\r\n\tb") == "a\\x1b[2J\\x9b\\u202e\n\tb"


def test_live_rows_progress_and_log_lines_are_shown_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    """The table of `pandora serve`, the progress of `ask` and warnings wrote to the terminal themselves."""
    text = "desk \x1b]0;owned\x07"
    with live_table("Server") as show:
        show([((text, ""),)])
    replace_note(text)
    _print_log(verbose=False)
    logging.getLogger("pandora_dagster.runtime").warning("%s", text)
    print_notice(text)
    assert capsys.readouterr().err.count("desk \\x1b]0;owned\\x07") == 4


def test_stored_control_characters_are_shown_and_not_sent(run: Run, tmp_path: Path) -> None:
    """Escape codes of stored text set titles, wrote to the clipboard and cleared the screen."""
    messages = [{"role": "user", "content": f"A teapot {CONTROLS}"}, {"role": "assistant", "content": f"It is blue {CONTROLS}"}]
    line = {"id": "c1", "user_id": "eve", "created_at": "2026-01-04T10:00:00Z", "messages": messages}
    (tmp_path / "esc.jsonl").write_text(json.dumps(line) + "\n")
    assert run("import", str(tmp_path / "esc.jsonl")).returncode == 0
    for command in (
        ("show", "eve:turn_000001"),
        ("search", "teapot", "--user", "eve"),
        ("turns", "--user", "eve"),
        ("show", "eve:turn_000001", "--json"),
        ("search", "teapot", "--user", "eve", "--json"),
        ("ask", "Which colour is the teapot?", "--user", "eve"),
    ):
        done = run(*command)
        assert done.returncode == 0 and "teapot" in done.stdout, (command, done.stderr)
        assert not set(done.stdout + done.stderr) & {"\x1b", "\x07", "\x08", "\x9b", "\u202e", "\u202c"}, command


def test_one_huge_conversation_costs_only_its_line(run: Run, tmp_path: Path) -> None:
    """A message of 50 MB ended the import: none of three sound lines was stored, and a turn was named instead of the line."""
    texts = {1: "Hello.", 2: "x" * 20_000_000, 3: "Good day.", 4: "Good night."}
    lines = [
        {
            "id": f"c{number}",
            "user_id": "bob",
            "created_at": "2026-01-04T10:00:00Z",
            "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}],
        }
        for number, text in texts.items()
    ]
    (tmp_path / "four.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    imported = run("import", str(tmp_path / "four.jsonl"))
    assert "four.jsonl:2: " in imported.stderr and "expected at most" in imported.stderr
    stored = json.loads(run("turns", "--user", "bob", "--json").stdout)
    assert [turn["turn_id"] for turn in stored] == ["turn_000001", "turn_000002", "turn_000003"]


def test_an_environment_that_is_not_utf8_is_a_wrong_setting(run: Run, pandora: Pandora) -> None:
    done = pandora("turns", env={"PANDORA_TIMEZONE": "\udcff"})
    assert done.returncode == 2 and "PANDORA_TIMEZONE" in done.stderr


def test_doctor_compares_the_newest_turns_with_their_documents(run: Run, store: Path) -> None:
    assert "agrees with the documents" in run("doctor").stdout
    manifest = store / "users" / "example" / "turns" / "turn_000003" / "turn.json"
    fields = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**fields, "last_activity": "2026-02-02T00:00:00Z"}))
    assert "last_activity: the index says" in run("doctor").stdout
