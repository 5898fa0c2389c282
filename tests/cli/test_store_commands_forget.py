"""forget as a user types it."""

import json
import os

import pytest
from typer.testing import CliRunner

from pandora_dagster.app import open_app
from pandora_dagster.cli.program import command_line
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents

OTHER = json.dumps(
    {
        "id": "c1",
        "user_id": "exam",
        "created_at": "2026-01-04T10:00:00Z",
        "messages": [{"role": "user", "content": "My locker is B-55120."}, {"role": "assistant", "content": "Noted: B-55120."}],
    }
).encode()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`pandora --root ROOT ARGUMENTS` inside this process, over a store of two users."""
    for name in os.environ:
        if name.startswith(("PANDORA_", "DAGSTER_")):
            monkeypatch.delenv(name)
    root = tmp_path / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    app.transfer.import_example()
    app.transfer.import_conversations([OTHER], where="made")
    app.close()

    def invoke(*arguments, text=None):
        return CliRunner().invoke(command_line, ["--root", str(root), *arguments], prog_name="pandora", input=text)

    invoke.root = root
    return invoke


def test_it_asks_before_it_erases(run):
    """A no changes nothing, nor does a dry run; both show what there is, and none of it."""
    asked = run("forget", "example", text="n\n")
    assert asked.exit_code == 2 and "Erase example for good?" in asked.stderr and "turns" in asked.stdout
    dry = run("forget", "example", "--dry-run", "--json")
    assert json.loads(dry.stdout)["found"]["turns"] == 7
    assert (run.root / "users" / "example").is_dir() and not ErasureIntents(run.root).has_intent("example")


def test_yes_erases_and_tells_the_proof(run):
    assert run("archive").exit_code == 0
    done = run("forget", "example", "--yes", "--json")
    output = json.loads(done.stdout)
    assert done.exit_code == 0 and output["proof"]["hits"] == [] and output["proof"]["facts"] > 10 and output["proof"]["files"] > 10
    assert "Lofta" not in done.stdout + done.stderr and "NH-4410" not in done.stdout + done.stderr
    assert [t["user_id"] for t in json.loads(run("turns", "--json").stdout)] == ["exam"]
    assert "B-55120" in run("search", "locker", "--user", "exam").stdout
    assert run("index", "verify").exit_code == 0
    again = run("forget", "example", "--yes")
    assert again.exit_code == 2 and "no data in this store" in again.stderr


def test_a_hit_is_exit_code_1_and_a_second_run_goes_on(run, monkeypatch):
    """The place is reported, not what was found."""
    from pandora_dagster.app.erasure_service import ErasureService

    whole = ErasureService._proof

    def planted(self, traces, facts):
        (run.root / "left.txt").write_text("order ORD-77298 of the Mesh One\n")
        return whole(self, traces, facts)

    with monkeypatch.context() as patched:
        patched.setattr(ErasureService, "_proof", planted)
        done = run("forget", "example", "--yes")
    assert done.exit_code == 1 and ": 1 hit\n" in done.stdout and "left.txt: bytes" in done.stderr and "77298" not in done.stderr
    refused = run("import", str(example(run)))
    assert "is being erased" in str(refused.exception) + refused.stderr
    assert run("forget", "example", "--yes").exit_code == 0


def example(run):
    path = run.root.parent / "again.jsonl"
    path.write_bytes(OTHER.replace(b'"exam"', b'"example"').replace(b'"c1"', b'"c2"') + b"\n")
    return path


@pytest.mark.parametrize("user", ["../exam", "a/b", "/etc"])
def test_an_id_that_is_a_path_is_refused(run, user):
    done = run("forget", user, "--yes")
    assert done.exit_code != 0 and "user id" in str(done.exception) and (run.root / "users" / "exam").is_dir()


def test_an_id_that_never_was(run):
    done = run("forget", "nobody", "--yes")
    assert done.exit_code == 2 and "user nobody: no data in this store" in done.stderr
    assert not (run.root / "users" / "nobody").exists() and not ErasureIntents(run.root).has_intent("nobody")
