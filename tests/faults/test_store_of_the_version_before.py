"""A store that the version before made opens, and what that version answered about it is answered still.

`store.tar.xz` and `expected.json` were made by `make_store.py` with the last commit before the restructuring (3d5ad50). Only the command
line is used, by the entry point that the package declares; no module of it is named here.
"""

import difflib
import json
import zlib
from pathlib import Path

import pytest

from tests.faults.changed_answers import CHANGED, EXPECTED, comparable
from tests.faults.store_before import DATA, Answer, answers_of, export, pandora, read, turn_ids, unpacked


def _shown(answer: Answer) -> list[str]:
    return json.dumps(answer, ensure_ascii=False, indent=1, sort_keys=True).splitlines()


def _difference(command: str, before: Answer | None, now: Answer | None) -> str:
    old, new = (_shown(answer) if answer else [] for answer in (before, now))
    return "\n".join([f"$ {command}", *list(difflib.unified_diff(old, new, "before", "now", lineterm="", n=2))[:40]])


def test_what_was_answered_is_answered_still(tmp_path: Path) -> None:
    """The exit code and everything on stdout, of every command that reads; all that differ are shown. One test: several processes that
    share the tests would each read the store."""
    now = {command: comparable(command, answer) for command, answer in answers_of(DATA / "store.tar.xz", tmp_path).items()}
    before = {command: comparable(command, answer) for command, answer in (EXPECTED | CHANGED).items()}
    differ = sorted(command for command in {*before, *now} if before.get(command) != now.get(command))
    shown = "\n".join(_difference(one, before.get(one), now.get(one)) for one in differ)
    assert EXPECTED and not differ, f"{len(differ)} of {len(before)} differ\n{shown}"


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the version before, for tests that write: each adds, none takes away what another reads."""
    return unpacked(DATA / "store.tar.xz", tmp_path_factory.mktemp("lived-in"))


def test_reading_changes_no_document(tmp_path: Path) -> None:
    """After a reading each file of the old store has the bytes it had, but for what is made of the others: indexes, locks, metrics."""
    root = unpacked(DATA / "store.tar.xz", tmp_path)
    before = _documents(root)
    for command in (("turns", "--json"), ("show", "ann:turn_000001"), ("search", "sandstone", "--user", "ann"), ("lineage", "--verify")):
        pandora(root, *command)
    assert _documents(root) == before


def _documents(root: Path) -> dict[str, int]:
    return {
        str(path.relative_to(root)): zlib.crc32(path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in ("indexes", "dagster", "metrics") and not path.name.endswith(".lock")
    }


def test_a_new_turn_goes_on_from_the_old_ones(lived_in: Path) -> None:
    """The next number, in an old session, answered out of what the version before kept."""
    numbers = [int(turn[-6:]) for turn in turn_ids(lived_in) if turn.startswith("ann:")]
    code, out = pandora(lived_in, "ask", "What did the sandstone of offer Q-3311 cost?", "--user", "ann", "--session", "wall", "--json")
    assert code == 0 and "846.00 euros" in json.loads(out)["response"]
    assert json.loads(out)["turn_id"] == f"turn_{max(numbers) + 1:06d}"


def test_an_old_archived_turn_comes_back_byte_for_byte(lived_in: Path) -> None:
    """Its export is the one that it was imported with."""
    (one, *_) = [one for one in EXPECTED["pandora turns --state archived --json"]["out"] if one["user_id"] == "example"]
    code, out = pandora(lived_in, "restore", f"example:{one['turn_id']}", "--json")
    assert code == 0, out
    assert export(lived_in, "example") == EXPECTED["pandora export --user example"]


def test_an_old_halted_turn_is_ended(lived_in: Path) -> None:
    """The intervention that is open in the old store is retried by the recipes of today."""
    (open_one,) = EXPECTED["pandora interventions list --json"]["out"]
    code, _ = pandora(lived_in, "interventions", "resolve", open_one["id"], "--retry")
    assert code == 0 and json.loads(pandora(lived_in, "interventions", "list", "--json")[1]) == []


def test_indexes_made_anew_hold_the_same(tmp_path: Path) -> None:
    """From the documents alone: no old index is left, and verify finds no difference."""
    root = unpacked(DATA / "store.tar.xz", tmp_path)
    for path in (root / "indexes").glob("*.duckdb*"):
        path.unlink()
    assert pandora(root, "index", "rebuild")[0] == 0
    assert json.loads(pandora(root, "index", "verify", "--json")[1])["differences"] == []
    for command in (("turns",), ("search", "What did the sandstone cost?", "--user", "ann"), ("research", "list", "--user", "ann")):
        shown = f"pandora {' '.join((*command, '--json'))}"
        assert comparable(shown, read(root, (*command, "--json"))) == comparable(shown, EXPECTED[shown]), command
