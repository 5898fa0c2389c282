"""archive, restore, pin, unpin as a user types them."""

import json
import os
from pathlib import Path

import pytest
from dagster import AssetKey
from typer.testing import CliRunner

from pandora_dagster.app import open_app
from pandora_dagster.app.archive_service import open_archive
from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import select_turns
from pandora_dagster.archive.turn_restoration import restore as bring_back
from pandora_dagster.cli.program import command_line
from pandora_dagster.defs.archival import recorded_archival
from pandora_dagster.defs.instance import add_turn_partitions, open_instance
from pandora_dagster.defs.turn import turn_run
from pandora_dagster.settings import load_settings


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`pandora --root ROOT ARGUMENTS` inside this process, over a store that holds the example."""
    for name in os.environ:
        if name.startswith(("PANDORA_", "DAGSTER_")):
            monkeypatch.delenv(name)
    root = tmp_path / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    app.transfer.import_example()
    app.close()
    invoke = lambda *arguments: CliRunner().invoke(command_line, ["--root", str(root), *arguments], prog_name="pandora")  # noqa: E731
    invoke.root = root
    return invoke


@pytest.fixture
def live(monkeypatch):
    """The example's turns count as turns that phases ran for: only those have partitions."""
    monkeypatch.setattr(turn_run, "_is_imported", lambda app, key: False)


def partitions(root):
    """The turns that Dagster lists."""
    with open_instance(load_settings({"PANDORA_ROOT": str(root)})) as instance:
        return sorted(instance.get_dynamic_partitions("turns"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--older-than", "0"), "--older-than 0: expected days from 1d to 36500d"),
        (("--older-than", "0d"), "--older-than 0d: expected days"),
        (("--older-than=-3d",), "--older-than -3d: expected days"),
        (("--older-than", "a month"), "--older-than a month: expected days"),
        (("--older-than", "99999d"), "--older-than 99999d: expected days"),
        (("--older-than", "3h"), "--older-than 3h: expected days"),
        (("--date", "2026-02-30"), "--date 2026-02-30: not a day: expected one such as 2026-01-04"),
        (("--date", "2999-01-01"), "--date 2999-01-01: in the future"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(run, arguments, says):
    """Exit code 2, and nothing is archived."""
    done = run("archive", *arguments)
    assert done.exit_code == 2 and says in done.stderr and not (run.root / "cold").exists()


def test_archive_restore_pin_and_show(run, live):
    """A dry run changes nothing; a pinned turn stays; an archived one says so and comes back; a bad one is exit code 1."""
    listed = json.loads(run("turns", "--json").stdout)
    one, two, three, *_ = [f"{t['user_id']}:{t['turn_id']}" for t in listed]
    assert run("pin", one).exit_code == 0
    dry = json.loads(run("archive", "--dry-run", "--json").stdout)
    assert len(dry["due"]) == len(listed) - 1 and [n["turn"] for n in dry["not_due"]] == [one] and not (run.root / "cold").exists()
    assert "turns are due" in run("archive", "--dry-run").stdout
    user, turn = three.split(":")
    (run.root / "users" / user / "turns" / turn / "context.md").write_text("changed")
    assert run("index", "rebuild").exit_code == 1 and len(partitions(run.root)) == len(listed)
    done = run("archive", "--older-than", "30d", "--json")
    output = json.loads(done.stdout)
    assert done.exit_code == 1 and output["counts"] == {"archived": len(listed) - 2, "failed": 1}
    (failed,) = [row for row in output["turns"] if row["outcome"] == "failed"]
    assert failed["key"] == three and Path(run.root / "interventions" / f"{failed['intervention']}.json").is_file()
    shown = run("show", two)
    assert f"pandora restore {two}" in shown.stderr and "archived" in shown.stderr
    assert partitions(run.root) == sorted([one, three]), "archived turns have no partition"
    assert run("index", "rebuild").exit_code == 1 and partitions(run.root) == sorted([one, three])
    assert "nothing is due" in run("archive").stdout
    assert json.loads(run("restore", two, "--json").stdout)["state"] == "saved"
    assert partitions(run.root) == sorted([one, two, three])
    assert "not archived; nothing was changed" in run("restore", two).stdout
    assert "unpinned" in run("unpin", one).stdout and "was not pinned" in run("unpin", one).stdout


def test_keys_that_a_kill_left_or_kept_back_are_put_right(run, live):
    """An archival killed before it took its turns' keys: the next takes them; a restoring killed before it gave one: the next does."""
    assert run("index", "rebuild").exit_code == 0
    app = open_app(load_settings({"PANDORA_ROOT": str(run.root)}))
    keys = list(app.turns.keys())
    assert partitions(run.root) == sorted(map(str, keys))
    ctx = open_archive(app)
    app.run(archive_turns(select_turns(ctx), ctx))
    assert partitions(run.root) == sorted(map(str, keys))
    assert run("archive").exit_code == 0 and partitions(run.root) == []
    bring_back(keys[0], ctx)
    app.close()
    again = run("restore", str(keys[0]))
    assert again.exit_code == 0 and "not archived" in again.stdout and partitions(run.root) == [str(keys[0])]


def test_an_archival_is_a_run_in_dagster_with_its_days(run, monkeypatch):
    """Once: a second command has nothing to add. Where Dagster's records cannot be written, the archival succeeds and says so."""
    with monkeypatch.context() as patched:
        patched.setattr(recorded_archival, "open_instance", _broken_instance)
        done = run("archive")
    assert done.exit_code == 0 and "7 turns archived" in done.stdout
    assert "Dagster has no record of this archival: no space left; the next" in done.stderr
    assert run("archive").exit_code == 0 == run("archive").exit_code
    with open_instance(load_settings({"PANDORA_ROOT": str(run.root)})) as instance:
        (stored,) = instance.get_runs()
        days = instance.get_dynamic_partitions("archival_days")
        assert stored.job_name == "archival" and len(days) == 3
        assert instance.get_materialized_partitions(AssetKey("archived_turns")) == set(days)


def _broken_instance(*_, **__):
    raise OSError("no space left")


def test_imported_turns_have_no_partition_that_would_read_missing(run):
    """No phase ran for them; a rebuild deletes the partitions that earlier versions added."""
    settings = load_settings({"PANDORA_ROOT": str(run.root)})
    app = open_app(settings)
    with open_instance(settings) as instance:
        add_turn_partitions(instance, app.turns.keys())
    app.close()
    assert partitions(run.root)
    assert run("index", "rebuild").exit_code == 0 and partitions(run.root) == []
