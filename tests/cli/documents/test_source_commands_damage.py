"""What is damaged or left out of a user's sources, and what the commands say about it."""

import json

import pytest

from tests.cli.documents.test_source_commands import invoke  # noqa: F401 - a fixture

FAULTY = {"broken.md": b"---\n[\n---\n", "large.md": b"x" * (1024 * 1024 + 1), "latin.md": b"caf\xe9"}


@pytest.fixture
def notes(tmp_path):
    """Three notes that cannot be read, and one that can."""
    folder = tmp_path / "store/users/anna/notes"
    folder.mkdir(parents=True)
    for name, data in {**FAULTY, "good.md": b"# Good"}.items():
        (folder / name).write_bytes(data)
    return folder


def test_the_doctor_names_each_note_that_is_left_out(invoke, notes):  # noqa: F811
    """A line a note, with what is wrong and what to do; mended, the line is gone."""
    result = invoke("doctor", "--json")
    found = [f for f in json.loads(result.stdout) if f["part"] == "notes of anna"]
    assert result.exit_code == 1 and [f["ok"] for f in found] == [False, False, False, True]
    for name in FAULTY:
        (line,) = [f for f in found if name in f["says"]]
        assert "expected" in line["says"] and "correct the note" in line["remedy"]
        (notes / name).write_text("# Mended")
    found = [f for f in json.loads(invoke("doctor", "--json").stdout) if f["part"] == "notes of anna"]
    assert [(f["ok"], f["says"]) for f in found] == [(True, "4 can be read")]


def test_ask_says_how_many_notes_could_not_be_read(invoke, notes):  # noqa: F811
    """One line beside the answer, in both forms, for their owner alone."""
    for more in ((), ("--json",)):
        output = invoke("ask", "Which lamp?", "--user", "anna", *more).stderr
        assert output.count("3 documents of anna could not be read: pandora doctor names them") == 1
    assert "could not be read" not in invoke("ask", "Which lamp?", "--user", "ben").stderr


def test_a_value_of_several_lines_is_reported_from_one_line(invoke):  # noqa: F811
    """A sign stands for each line end."""
    invoke("memory", "set", "address", "12 Oak Lane\nBonn", "--user", "anna")
    invoke("memory", "set", "town", "12 Oak Lane Bonn", "--user", "anna")
    shown = invoke("memory", "list", "--user", "anna").stdout
    assert "12 Oak Lane ⏎ Bonn" in shown and "12 Oak Lane Bonn" in shown
    assert "Turns are not changed" in invoke("memory", "forget", "--help").stdout


def test_a_broken_memory_page_costs_only_itself(invoke, tmp_path):  # noqa: F811
    """`ask` answers from the other page and says that a document could not be read; retrieval's record names it and the remedy."""
    invoke("memory", "set", "town", "Lund", "--kind", "fact", "--user", "anna")
    page = tmp_path / "store/users/anna/preferences.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("```yaml\nseat: [\n```\n")
    result = invoke("ask", "What is my town?", "--user", "anna")
    assert result.exit_code == 0 and "Lund" in result.stdout
    assert "1 document of anna could not be read: pandora doctor names them" in result.stderr
    listed = invoke("memory", "list", "--user", "anna")
    assert listed.exit_code == 1 and str(page) in str(listed.exception)


def test_the_doctor_names_a_memory_page_that_cannot_be_read(invoke, tmp_path):  # noqa: F811
    """With its file and the remedy, and how many entries there are once it is mended."""
    invoke("memory", "set", "seat", "window", "--user", "anna")
    page = tmp_path / "store/users/anna/preferences.md"
    kept = page.read_text()
    page.write_text("```yaml\nseat: [\n```\n")
    (found,) = [f for f in json.loads(invoke("doctor", "--json").stdout) if f["part"] == "memory of anna"]
    assert not found["ok"] and str(page) in found["says"] and "correct preferences.md by hand" in found["remedy"]
    page.write_text(kept)
    (found,) = [f for f in json.loads(invoke("doctor", "--json").stdout) if f["part"] == "memory of anna"]
    assert found["ok"] and found["says"] == "1 can be read"
