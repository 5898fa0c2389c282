"""`pandora compress`: a file, stdin, JSON lines; what it prints, its exit codes, and bad input."""

import json
import re

import pytest

from pandora_dagster.errors import InputError
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.wiring.compressing import compress_text

FILLER = "We all talked about how nice the weather had been and what everybody was going to do at the weekend. "
TEXT = "\n\n".join(f"Chair CH{n}00X was sold for ${n}49.00 at store{n}.example.com. {FILLER * 2}" for n in range(1, 15))
ERROR = "Error: the disk /dev/sda1 is full since 2026-03-04 and nothing can be written to it."
FACTS = ["total", "kept", "equal", "recoverable", "dropped_by_rule", "missing", "mutated", "invented"]


@pytest.fixture
def file(tmp_path):
    """A text of about 700 tokens."""
    path = tmp_path / "notes.md"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_file_is_printed_compressed_with_its_verdicts_beside_it(file, invoke):
    """The text on stdout, the figures on stderr, the file as it was."""
    done = invoke("compress", str(file), "--target-tokens", "400")
    assert done.exit_code == 0 and "$149.00" in done.stdout and FILLER * 2 not in done.stdout
    assert "facts: " in done.stderr and file.read_text(encoding="utf-8") == TEXT


def test_json_has_exactly_the_documented_fields(file, invoke):
    """One document on stdout."""
    answer = json.loads(invoke("compress", str(file), "--target-tokens", "400", "--type", "generic", "--json").stdout)
    assert list(answer) == ["id", "text", "tokens", "facts", "missing", "halted"] and list(answer["facts"]) == FACTS
    assert answer["tokens"] <= 400 and answer["halted"] is None and answer["missing"] == []


def test_json_lines_are_answered_in_order(pandora):
    """Each with its id; a HALT has no text and makes the exit code 1."""
    lines = [
        {"id": "long", "text": TEXT, "target_tokens": 400},
        {"id": "about", "text": TEXT, "target_tokens": 120, "type": "generic", "query": "what was chair CH700X sold for?"},
        {"id": 3, "text": ERROR, "target_tokens": 4},
        {"id": "short", "text": "hello there", "target_tokens": 50, "type": None},
    ]
    done = pandora("compress", "--jsonl", "-", text="\n".join(map(json.dumps, lines)))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [a["id"] for a in answers] == ["long", "about", 3, "short"] and done.returncode == 1
    assert "$749.00" in answers[1]["text"] and answers[1]["tokens"] <= 120
    assert answers[2]["text"] is None and "target is 4" in answers[2]["halted"] and answers[3]["text"] == "hello there"


def test_a_command_without_a_model_writes_nothing(pandora, tmp_path):
    """No store is made for it."""
    assert pandora("compress", "-", "--target-tokens", "9", text="hello").returncode == 0
    assert list(tmp_path.iterdir()) == []


BAD = {
    "target 0": (["-", "--target-tokens", "0"], "hello", "0: expected at least 1"),
    "negative target": (["-", "--target-tokens", "-4"], "hello", "-4: expected at least 1"),
    "no target": (["-"], "hello", "--target-tokens: missing"),
    "no file": (["nowhere.md", "--target-tokens", "9"], "", "nowhere.md: cannot be read"),
    "unknown type": (["-", "--target-tokens", "9", "--type", "poem"], "hello", "type 'poem': expected one of"),
    "neither": ([], "", "either FILE or --jsonl"),
    "both": (["-", "--jsonl", "-"], "", "either FILE or --jsonl"),
    "line not JSON": (["--jsonl", "-"], "{nope", "-:1: not JSON"),
    "line without text": (["--jsonl", "-"], '{"id": 1, "target_tokens": 3}', "-:1: text: missing"),
    "half a character": (["--jsonl", "-"], '{"id": 1, "text": "a \\ud83d b", "target_tokens": 3}', "-:1: half a surrogate pair (\\ud83d)"),
    "target is a word": (["--jsonl", "-"], '{"id": 1, "text": "a", "target_tokens": "3"}', "target_tokens: missing or of the wrong kind"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(kind, invoke):
    """Where, what, what was expected."""
    arguments, text, message = BAD[kind]
    from typer.testing import CliRunner

    from pandora_dagster.cli.app import app

    done = CliRunner().invoke(app, ["compress", *arguments], input=text)
    said = done.stderr + str(done.exception or "")
    assert message in said
    assert done.exit_code == 2 or isinstance(done.exception, InputError)


@pytest.mark.parametrize(("data", "message"), [(b"\xff\xfe\x00a", "binary"), (b"caf\xe9", "byte 3 is not UTF-8")])
def test_a_file_that_is_no_text_is_refused(data, message, tmp_path, invoke):
    """Binary and other encodings are named, not guessed."""
    path = tmp_path / "data.bin"
    path.write_bytes(data)
    assert message in str(invoke("compress", str(path), "--target-tokens", "9").exception)


def test_a_model_that_is_down_is_a_halt_of_each_line(pandora, tmp_path):
    """With servers configured and none there: the reason in the answer, exit code 1, the text untouched."""
    runtime = tmp_path / "runtime.yaml"
    shipped = (shipped_folder() / "data" / "runtime.yaml").read_text(encoding="utf-8")
    runtime.write_text(re.sub(r"http://[^/\s]+", "http://127.0.0.1:9", shipped), encoding="utf-8")
    env = {"PANDORA_RUNTIME": "sglang", "PANDORA_RUNTIME_FILE": str(runtime), "PANDORA_ROOT": str(tmp_path / "store")}
    line = json.dumps({"id": "a", "text": TEXT, "target_tokens": 400})
    done = pandora("compress", "--jsonl", "-", text=line, env=env)
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and answer["text"] is None and answer["halted"]


HOSTILE = {
    "empty": "",
    "one long line": "x y z, " * 60_000,
    "a million digits": "7" * 1_000_000,
    "broken JSON": '{"orders": [{"id": "#W123", "price": 12.5,' * 200,
    "unclosed _meta": "```yaml\n_meta:\n  type: x\n" + TEXT,
    "right to left": "הכיסא נמכר תמורת 240 שקלים ביום שלישי. " * 200,
    "CJK": "椅子は240ドルで売れました。天気が良かったです。" * 200,
    "emoji": "🪑🎉 sold for $240 👍🏽 yes\n" * 200,
    "nested fences": "````md\n```py\nx = 1\n```\n````\n" * 200,
    "broken table": "| a | b\n|--\n| 1 | 2 | 3 |\n" * 200,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_get_a_verdict(kind):
    """Within the target, or a HALT with its reason; never an exception, never over."""
    answer = compress_text(HOSTILE[kind], 200, id=kind)
    assert (answer["text"] is None) == (answer["halted"] is not None)
    assert answer["tokens"] <= 200 and answer["id"] == kind
