"""`pandora compress`: a file, stdin, JSON lines; what it prints, its exit codes, and bad input."""

import json
import re
from pathlib import Path

import pytest

from pandora_dagster.app.composition import open_counter
from pandora_dagster.app.compression_service import _answer_object, answer_lines, compress_text, open_compressor
from pandora_dagster.compression.verification.text_facts import find_facts
from pandora_dagster.compression.verification.verifier import verify
from pandora_dagster.errors import InputError
from pandora_dagster.settings import load_settings
from pandora_dagster.shipped import shipped_folder
from tests.cli.conftest import REPOSITORY

FILLER = "We all talked about how nice the weather had been and what everybody was going to do at the weekend. "
TEXT = "\n\n".join(f"Chair CH{n}00X was sold for ${n}49.00 at store{n}.example.com. {FILLER * 2}" for n in range(1, 15))
ERROR = "Error: the disk /dev/sda1 is full since 2026-03-04 and nothing can be written to it."
FACTS = ["total", "kept", "equal", "recoverable", "dropped_by_rule", "missing", "mutated", "invented"]
LISTS = ("kept", "missing", "changed", "left_out")


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
    assert list(answer) == ["id", "text", "tokens", "facts", "kept", "missing", "changed", "left_out", "halted"]
    assert list(answer["facts"]) == FACTS and answer["tokens"] <= 400 and answer["halted"] is None and answer["changed"] == []
    assert answer["facts"]["kept"] == len(answer["kept"]) and set(answer["missing"]) <= set(answer["left_out"])


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
    assert answers[2]["text"] is None and "not one unit fits in 4 tokens" in answers[2]["halted"] and answers[3]["text"] == "hello there"


LIMIT = "The buyer must not pay more than $1,299.00 for chair CH700X."


def generations(invoke, tmp_path, *, damage=lambda text: text):
    """A text, its compression (damaged so), and the answer to compressing that again by the contract with the first."""
    first, second = tmp_path / "first.md", tmp_path / "second.md"
    first.write_text(f"{TEXT}\n\n{LIMIT}", encoding="utf-8")
    once = json.loads(invoke("compress", str(first), "--target-tokens", "450", "--json").stdout)
    second.write_text(damage(once["text"]), encoding="utf-8")
    return once, invoke("compress", str(second), "--original", str(first), "--target-tokens", "300", "--json")


def test_a_second_generation_is_judged_by_the_original(invoke, tmp_path):
    """Its facts are those of the first text, and what the first pass has lost is named as well."""
    once, done = generations(invoke, tmp_path, damage=lambda text: text.replace("$349.00", "a fair price"))
    twice = json.loads(done.stdout)
    assert done.exit_code == 0 and twice["tokens"] <= 300 and twice["facts"]["total"] == once["facts"]["total"]
    assert "$349.00" in twice["text"] or any("$349.00" in text for text in twice["missing"])


TRUE = "Nordlicht pays Tomas Ruiz 35 euros until 20 March 2026. Maren may not go above 25 euros. The flat has no balcony."


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("35 euros", "53 euros"),
        ("may not go", "may go"),
        ("Tomas Ruiz", "Birgit Hansen"),
        ("20 March", "2 March"),
        ("has no balcony", "has a balcony"),
        ("balcony.", "balcony. Rasmus Holt sold 77 lamps."),
    ],
)
def test_what_the_original_does_not_bear_out_is_left_out(said, instead):
    """A changed or made-up value, a denial turned around: the sentence goes, the others stay, nothing untrue comes out."""
    text = TRUE.replace(said, instead)
    for target in (60, 30):
        answer = compress_text(text, target, original=TRUE, settings=load_settings({}))
        assert answer["changed"] == [] and answer["facts"]["mutated"] == answer["facts"]["invented"] == 0
        assert answer["text"] is None or (instead not in answer["text"] and answer["text"] != text)
    assert compress_text(TRUE, 60, original=TRUE + " It is on the third floor.", settings=load_settings({}))["text"] == TRUE


def test_what_was_changed_is_named(invoke, file):
    """In the answer beside what is missing, and in the plain report."""
    text_facts = find_facts(TRUE)
    line = _answer_object("x", "text", 1, text_facts, verify(text_facts, TRUE.replace("35 euros", "53 euros")), None)
    assert "35 euros -> 53 euros: another value in its place" in line["changed"]
    done = invoke("compress", str(file), "--target-tokens", "120")
    assert re.search(r"^pandora: missing: .+; and \d+ more$", done.stderr, re.MULTILINE)


def test_a_halt_says_with_how_many_tokens_it_works():
    """So many do."""
    text = "\n".join(f"Error: disk {n} of rack {n * 7} is full and nothing can be written to it. {FILLER}" for n in range(8))
    halted = compress_text(text, 4, settings=load_settings({}))["halted"]
    found = re.search(r"not one unit fits in 4 tokens; with (\d+) tokens one fits$", halted)
    assert found and compress_text(text, int(found.group(1)), settings=load_settings({}))["text"]


def test_a_long_word_stands_whole_or_not_at_all():
    """A mark counts it; nothing is invented by that. Where there is nothing else, no unit fits."""
    code = "0123456789abcdef" * 40
    text = f"The token is {code} and it expires on 5 May 2026. Ann pays 40 euros. {FILLER * 3}"
    for target in (30, 60, 100):
        answer = compress_text(text, target, settings=load_settings({}))
        assert answer["changed"] == [] and "0123456789abcdef" not in answer["text"].replace(code, "")
    assert compress_text("a" * 400_000, 50, settings=load_settings({}))["text"] is None


def test_ten_generations_are_judged_by_the_first_text():
    """Ever smaller, each made of the one before: within its target, verdicts about the first text, nothing changed or invented."""
    settings = load_settings({})
    first = "\n".join(
        (
            f"user: I must not pay more than $1,299.00 for chair CH700X. {FILLER}",
            *(f"assistant: I looked at shop {n} of the town, which sells many things. {FILLER * 2}" for n in range(30)),
            "tool pay: Error: card_5512 was declined",
            f"user: My order is #W2378156. {FILLER}",
        )
    )
    text = first
    for target in range(1_000, 90, -100):
        answer = compress_text(text, target, original=first, settings=settings)
        text = answer["text"]
        assert text and answer["tokens"] <= target and answer["facts"]["total"] == compress_text(first, 9_000)["facts"]["total"]
        assert answer["changed"] == []


def test_json_lines_may_name_their_originals(pandora):
    """`original` in a line is the option of a file; only one text can come from stdin."""
    line = {"id": 1, "text": "Chairs were sold in many shops.", "target_tokens": 100, "original": f"{TEXT} {LIMIT}"}
    done = pandora("compress", "--jsonl", "-", text=json.dumps(line))
    assert done.returncode == 0 and LIMIT in json.loads(done.stdout)["missing"]
    wrong = pandora("compress", "--jsonl", "-", text=json.dumps(line | {"original": 5}))
    assert wrong.returncode == 1 and "original: missing or of the wrong type: expected a string" in wrong.stdout
    assert pandora("compress", "--jsonl", "-", "--original", "x", text="").returncode == 2
    both = pandora("compress", "-", "--original", "-", "--target-tokens", "9", text="x")
    assert both.returncode == 2 and "stdin is FILE already" in both.stderr


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
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(kind, invoke):
    """Where, what, what was expected."""
    arguments, text, message = BAD[kind]
    from typer.testing import CliRunner

    from pandora_dagster.cli.program import command_line

    done = CliRunner().invoke(command_line, ["compress", *arguments], input=text)
    said = done.stderr + str(done.exception or "")
    assert message in said
    assert done.exit_code == 2 or isinstance(done.exception, InputError)


GOOD = b'{"id": "good", "text": "hello there", "target_tokens": 50}'
BROKEN = {
    "not JSON": (b"{nope", None, "not JSON"),
    "no UTF-8": (b'{"id": 1, "text": "caf\xe9", "target_tokens": 3}', None, "not UTF-8 at byte 22: expected one JSON object"),
    "empty": (b"", None, "an empty line: expected one JSON object"),
    "nested": (b"[" * 100_000, None, "nested deeper than 64 levels"),
    "a list": (b"[1]", None, "a list instead of an object"),
    "no id": (b'{"text": "a", "target_tokens": 3}', None, "id: missing"),
    "id is a list": (b'{"id": [1], "text": "a", "target_tokens": 3}', None, "id: missing or of the wrong type: expected a string or"),
    "id is half a character": (b'{"id": "\\ud83d", "text": "a", "target_tokens": 3}', None, "half of a surrogate pair"),
    "no text": (b'{"id": 1, "target_tokens": 3}', 1, "text: missing"),
    "half a character": (b'{"id": 1, "text": "a \\ud83d b", "target_tokens": 3}', None, "half of a surrogate pair"),
    "target is a word": (b'{"id": "x", "text": "a", "target_tokens": "3"}', "x", "target_tokens: missing or of the wrong type"),
    "target 0": (b'{"id": "x", "text": "a", "target_tokens": 0}', "x", "0: expected at least 1"),
    "unknown type": (b'{"id": "x", "text": "a", "target_tokens": 3, "type": "poem"}', "x", "type 'poem': expected one of"),
    "unknown field": (b'{"id": "x", "text": "a", "target": 3}', "x", "'target': unknown: expected id, text, target_tokens, type, query"),
    "an id again": (b'{"id": "good", "text": "a", "target_tokens": 3}', "good", "id 'good': the same as in line 1: expected another"),
    "a number of a million digits": (
        b'{"id": 1, "text": "a", "target_tokens": ' + b"9" * 1_000_000 + b"}",
        None,
        "a number of 1,000,000 digits",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_line_is_answered_in_its_place(kind, invoke, tmp_path):
    """As many lines come out as went in; the broken one says where, what and what was expected, and makes the exit code 1."""
    line, id, message = BROKEN[kind]
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join((GOOD, line, GOOD.replace(b"good", b"also"))) + b"\n")
    done = invoke("compress", "--jsonl", str(path))
    first, broken, last = map(json.loads, done.stdout.splitlines())
    assert done.exit_code == 1 and first == last | {"id": "good"} and first["text"] == "hello there" and "line" not in first
    said = broken.pop("halted")
    assert said.startswith(f"{path}:2: ") and message in said and said in done.stderr
    assert broken == {"id": id, "line": 2, "text": None, "tokens": 0, "facts": dict.fromkeys(FACTS, 0), **{name: [] for name in LISTS}}


def test_a_line_over_the_limit_is_answered(monkeypatch):
    """Before it is read."""
    monkeypatch.setattr("pandora_dagster.app.compression_service._MAX_LINE_BYTES", 70)
    with open_compressor(load_settings({})) as compressed:
        first, second = answer_lines(
            GOOD + b"\n" + GOOD.replace(b"good", b"more").replace(b"hello", b"hello" * 9), compressed, where="here"
        )
    assert first["text"] == "hello there" and second["halted"].startswith("here:2: ") and "at most 70" in second["halted"]


def test_a_binary_file_of_lines_is_one_error(invoke, tmp_path):
    """Not one a line, and no answer at all."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\x1f\x8b\n\0\n\0\n" + GOOD)
    done = invoke("compress", "--jsonl", str(path))
    assert isinstance(done.exception, InputError) and "a binary file: expected UTF-8 text" in str(done.exception) and done.stdout == ""


def test_the_size_of_the_original_is_told(file, invoke):
    """Beside what it became."""
    done = invoke("compress", str(file), "--target-tokens", "400", "--json")
    before, after = re.match(r"([\d,]+) -> ([\d,]+) tokens; ", done.stderr).groups()
    assert int(before.replace(",", "")) == open_counter().count(TEXT) and int(after) == json.loads(done.stdout)["tokens"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": 1,\n "b": 2,\n "c" 3}', 3),
        ('{"a": 1}\n{"a": 2}\n{"a": }\n', 3),
        ('[{"a": "cut', 1),
        ('{"a": 1}\n{"a": 2}\n', None),
        ("[1] A note, {as it stands}", None),
        ("plain words", None),
    ],
)
def test_broken_json_is_told_with_its_line(text, line, invoke, tmp_path):
    """And taken as text; what is JSON, JSON lines or no JSON at all is not complained about."""
    path = tmp_path / "data.txt"
    path.write_text(text, encoding="utf-8")
    done = invoke("compress", str(path), "--target-tokens", "90")
    assert done.stdout == text + "\n"
    assert (f"broken JSON from line {line} on: read as text" in done.stderr) == (line is not None) == ("broken" in done.stderr)


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
    runtime.write_text(shipped.replace("http://127.0.0.1:300", "http://127.0.0.1:10"), encoding="utf-8")
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


def test_the_documented_example_runs_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The talk and the lines of docs/guides/compress-a-document.md, as the page shows them."""
    page = (REPOSITORY / "docs/guides/compress-a-document.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"```(python|text file=\"talk.txt\")\n(.*?)```", page, re.DOTALL))
    (tmp_path / "talk.txt").write_text(blocks['text file="talk.txt"'], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks["python"], "docs/guides/compress-a-document.md", "exec"), scope := {})
    answer, again = scope["answer"], scope["again"]
    assert "SK1470" in answer["text"] and answer["tokens"] <= 70 and answer["changed"] == []
    assert again["text"] and again["tokens"] <= 60 and again["facts"]["total"] == answer["facts"]["total"]
    assert "SK1470" in capsys.readouterr().out
