"""`pandora verify` on files: the report, the exit code, the page, invalid input."""

import json
import re

import pytest

from pandora_dagster.errors import InputError

ORIGINAL = "The seat costs 9 €. Ines is 9 years old.\n\nThe pump must be checked every week.\n"


@pytest.fixture
def texts(tmp_path):
    original, shortened = tmp_path / "long.md", tmp_path / "short.md"
    original.write_text(ORIGINAL, encoding="utf-8")
    shortened.write_text("The seat costs 9 £.\n\nThe pump must be checked every week.\n", encoding="utf-8")
    return str(original), str(shortened)


def test_the_lists_as_json(texts, invoke):
    """Each list has its entries with their places in both texts; the exit code says that something is missing or changed."""
    made = invoke("verify", *texts, "--json")
    answer = json.loads(made.stdout)
    assert made.exit_code == 1
    assert set(answer) == {"facts", "kept", "missing", "changed", "left_out", "invented", "for_review"}
    (changed,) = [entry for entry in answer["changed"] if entry["kind"] == "money"]
    assert (changed["fact"], changed["instead"]) == ("9 €", "9 £")
    assert changed["original"] == {"line": 1, "start": 15, "end": 18} == changed["shortened"]
    assert [entry["text"] for entry in answer["left_out"]] == ["Ines is 9 years old."]
    assert [entry["shortened"]["line"] for entry in answer["kept"] if entry["kind"] == "constraint"] == [3]


def test_the_report(texts, invoke):
    """One line for each entry, with the lines of both texts."""
    made = invoke("verify", *texts)
    assert "1 -> 1: 9 € -> 9 £ (another value in its place)" in made.stdout
    assert "1 -> -: Ines is 9 years old." in made.stdout


def test_a_list_counts_its_lines(texts, invoke):
    """The number in a heading is the number of lines below it; values of a statement that is listed are counted beside it."""
    report = invoke("verify", *texts).stdout
    lists = re.findall(r"^[a-z ]+ \((\d+)(?:, and \d+ values? in them)?\)\n((?:  .+\n)+)", report, re.MULTILINE)
    assert len(lists) == len(re.findall(r"^[a-z ]+ \(", report, re.MULTILINE)) > 2
    assert [int(number) for number, _ in lists] == [len(lines.splitlines()) for _, lines in lists]


def test_a_text_that_keeps_all(texts, invoke):
    """The exit code is 0 where nothing is missing, changed or invented."""
    assert invoke("verify", texts[0], texts[0]).exit_code == 0


def test_both_texts_side_by_side(texts, tmp_path, invoke):
    """The page marks what is changed and missing."""
    page = tmp_path / "page.html"
    invoke("verify", *texts, "--html", str(page))
    html = page.read_text(encoding="utf-8")
    assert 'class="mutated"' in html and 'class="missing' in html and html.count("<script") == 1


@pytest.mark.parametrize("wrong", [["-", "-"], ["--html", "no/such/folder/page.html"]])
def test_invalid_input(texts, wrong, invoke):
    """One sentence and exit code 2."""
    arguments = [*texts, *wrong] if wrong[0] == "--html" else wrong
    made = invoke("verify", *arguments)
    assert made.exit_code == 2


def test_a_file_that_is_not_there(invoke):
    """The error names the file."""
    made = invoke("verify", "missing.md", "missing.md")
    assert isinstance(made.exception, InputError) and "missing.md" in str(made.exception)
