"""`pandora batch` as a user starts it: what it prints, what it keeps, its exit codes."""

import json
from pathlib import Path

from tests.cli.conftest import Pandora

GOOD = '{"query": "The oak desk costs 248 euros.", "user": "ann", "id": "one"}\n'


def test_a_file_is_asked_and_reported_as_a_table(pandora: Pandora, tmp_path: Path) -> None:
    """One row a line, a sum, a progress bar on stderr; exit code 0; a second time the same answer."""
    (tmp_path / "q.jsonl").write_text(GOOD)
    first = pandora("--root", "store", "batch", "q.jsonl")
    assert first.returncode == 0, first.stderr
    assert "ann:turn_000001" in first.stdout and "q.jsonl: 1 saved; " in first.stdout and "1/1 queries" in first.stderr
    assert pandora("--root", "store", "batch", "q.jsonl").stdout == first.stdout
    assert not (tmp_path / "q.rejected.jsonl").exists()


def test_bad_lines_are_kept_and_the_others_run(pandora: Pandora, tmp_path: Path) -> None:
    """Exit code 1; the rejected lines lie beside the file with their numbers and reasons; stdout is one JSON document."""
    (tmp_path / "q.jsonl").write_text("nonsense\n" + GOOD)
    done = pandora("--root", "store", "batch", "q.jsonl", "--json")
    output = json.loads(done.stdout)
    assert done.returncode == 1 and output["counts"] == {"rejected": 1, "saved": 1}
    assert [row["state"] for row in output["rows"]] == ["rejected", "saved"] and output["rejected"] == "q.rejected.jsonl"
    (kept,) = map(json.loads, (tmp_path / "q.rejected.jsonl").read_text().splitlines())
    assert kept["line"] == 1 and kept["text"] == "nonsense" and "expected a JSON object" in kept["reason"]


def test_a_file_that_is_not_there_is_reported(pandora: Pandora) -> None:
    """Exit code 2, and nothing is made."""
    done = pandora("--root", "store", "batch", "none.jsonl")
    assert done.returncode == 2 and "none.jsonl: not a file: expected queries as JSON lines" in done.stderr
