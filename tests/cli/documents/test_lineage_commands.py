"""lineage as a user types it."""

import json
import os

import pytest
from typer.testing import CliRunner

from pandora_dagster.app import open_app
from pandora_dagster.cli.program import command_line
from pandora_dagster.settings import load_settings


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`pandora --root ROOT ARGUMENTS` inside this process, over the archived example."""
    for name in os.environ:
        if name.startswith(("PANDORA_", "DAGSTER_")):
            monkeypatch.delenv(name)
    root = tmp_path / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    app.transfer.import_example()
    app.close()
    invoke = lambda *arguments: CliRunner().invoke(command_line, ["--root", str(root), *arguments], prog_name="pandora")  # noqa: E731
    assert invoke("archive", "--older-than", "30d").exit_code == 0
    invoke.root = root
    return invoke


def test_a_tree_a_page_and_a_proof(run, tmp_path):
    """Short forms as everywhere; --depth cuts; --html writes one file; damage is exit code 1, with a sentence for each broken link."""
    shown = run("lineage", "example:turn_000002")
    assert shown.exit_code == 0 and shown.stdout.startswith("example:turn_000002/context.md  ")
    assert shown.stderr == ""  # the archival wrote the rows: they are not made anew
    assert "compress_context@" in shown.stdout and " -> " in shown.stdout and "example:turn_000002/cold/context.md#5" in shown.stdout
    assert run("lineage", "2").stdout == run("lineage", "turn_000002/context.md").stdout == shown.stdout
    assert run("lineage", "2").stderr == ""
    cut = run("lineage", "2", "--depth", "1").stdout
    assert len(cut.splitlines()) == 2 and "3 sources below this depth" in cut
    (_, original, *_) = json.loads(run("lineage", "2", "--json").stdout)
    assert original["links"][0]["relation"] == "compressed" and len(original["sha256"]) == 64
    page = tmp_path / "page.html"
    assert run("lineage", "2", "--html", str(page)).exit_code == 0 and page.read_text().startswith("<!DOCTYPE html>")
    proved = run("lineage", "--verify")
    assert proved.exit_code == 0 and "links verified" in proved.stdout and run("index", "verify").exit_code == 0
    path = run.root / "users" / "example" / "turns" / "turn_000002" / "context.md"
    path.write_text(path.read_text().replace("Nordhus", "Northus"))
    for arguments in (("--verify",), ("2", "--verify")):
        broken = run("lineage", *arguments, "--json")
        assert broken.exit_code == 1 and any(
            "turn_000002/context.md" in f and "changed since" in f for f in json.loads(broken.stdout)["broken"]
        )
    assert run("lineage", "3", "--verify").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "no document: expected one such as example:turn_000002"),
        (("2", "--html", "/nowhere/at/all.html"), "no folder /nowhere/at"),
        (("2", "--html", "x.html", "--verify"), "--html: expected it without"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(run, arguments, says):
    """Exit code 2."""
    done = run("lineage", *arguments)
    assert done.exit_code == 2 and says in done.stderr


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("example:turn_000099", "no such turn"),
        ("example:turn_000002/nothing.md", "names no such document"),
        ("example:../../etc/passwd", "turn id"),
        ("example:notes/../../../etc/passwd", "expected one such as"),
        ("anna:digest", "there is no digest"),
        ("example:session/never", "there is no such narrative"),
        ("example:turn_000002/context.md#9", "expected one such as"),
    ],
)
def test_a_document_that_is_not_there_is_named(run, document, says):
    """Exit code 2 in the program, here the error that becomes it."""
    done = run("lineage", document)
    assert done.exit_code != 0 and says in str(done.exception)


def test_the_index_is_made_again_with_the_others(run):
    """`index rebuild` counts its links and keeps a damaged file aside."""
    path = run.root / "indexes" / "lineage.duckdb"
    path.write_bytes(b"no index" * 500)
    done = run("index", "rebuild")
    assert done.exit_code == 0 and "links of lineage" in done.stdout and "lineage.duckdb.damaged-1" in done.stderr
    assert run("index", "verify").exit_code == 0
