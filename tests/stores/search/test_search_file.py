"""The SQLite file of the turn index: missing, damaged, behind or ahead of the DuckDB file, in use, erased."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.errors import DamagedIndexError
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.erasure.row_erasure import erase_rows
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
from tests.stores.search.index_rig import message_row

ROWS = [message_row(1, "we ordered the oak desk"), message_row(2, "a walnut lamp"), message_row(1, "a secret of Zephyrine", user="bob")]
KILLED_BETWEEN_COMMITS = """
import os, signal, sys
from contextlib import contextmanager
from pathlib import Path
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.disk.sqlite_file import SqliteFile
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
from tests.stores.search.index_rig import message_row
writing = SqliteFile.writing
@contextmanager
def killed(self):
    with writing(self) as db:
        yield db
    os.kill(os.getpid(), signal.SIGKILL)
SqliteFile.writing = killed
DuckTurnIndex(DuckDBFile(Path(sys.argv[1]), TURN_SCHEMA)).put([message_row(3, "a marble table")])
"""

KILLED_IN_A_REBUILD = """
import os, signal, sys
from pathlib import Path
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA
from tests.stores.search.test_search_file import ROWS, message_row
path, replace = Path(sys.argv[1]), Path.replace
def killed(self, target):
    replace(self, target)
    if ".rebuilt" in self.name and ".rebuilt" not in target.name:
        os.kill(os.getpid(), signal.SIGKILL)
Path.replace = killed
DuckTurnIndex(DuckDBFile(path, TURN_SCHEMA)).rebuild([[*ROWS, message_row(3, "a marble table")]])
"""


@pytest.fixture
def index(tmp_path: Path) -> DuckTurnIndex:
    index = DuckTurnIndex(DuckDBFile(tmp_path / "turn_index.duckdb", TURN_SCHEMA, 0.2))
    index.put(ROWS)
    return index


def _texts(index: DuckTurnIndex, query: str, user: str = "ann") -> list[str]:
    return [message.text for message in index.messages(user, query, limit=1)]


def test_a_search_waits_for_no_writer(index: DuckTurnIndex) -> None:
    """A process that writes held the only file."""
    with index.file.writing():
        assert _texts(index, "oak desk") == ["we ordered the oak desk"]


def test_a_missing_file_is_made_again_from_the_documents(index: DuckTurnIndex) -> None:
    """Once, by a search as by a turn that is put; nothing is found less."""
    made: list[int] = []

    def remake() -> None:
        made.append(1)
        index.rebuild([ROWS])

    remade = replace(index, file=replace(index.file, remake=remake))
    index.search_file.discard()
    assert _texts(remade, "oak desk") == _texts(remade, "the oak desk") == ["we ordered the oak desk"] and made == [1]
    index.search_file.discard()
    remade.put([message_row(3, "a marble table")])
    assert _texts(remade, "oak desk") == ["we ordered the oak desk"] and _texts(remade, "marble") == ["a marble table"] and made == [1, 1]


def test_a_missing_file_that_cannot_be_made_again_is_named(index: DuckTurnIndex) -> None:
    """An empty one in its place would hide every turn."""
    index.search_file.discard()
    for use in (lambda: index.messages("ann", "desk", limit=1), lambda: index.put(ROWS)):
        with pytest.raises(DamagedIndexError, match=r"turn_index.duckdb.sqlite: missing, expected an index"):
            use()


def test_a_damaged_file_is_named_and_kept_by_a_rebuild(index: DuckTurnIndex) -> None:
    """Its path, what is wrong, and the command that helps."""
    index.search_file.path.write_bytes(b"no database" * 500)
    with pytest.raises(DamagedIndexError, match=r"turn_index.duckdb.sqlite: damaged or not an index") as caught:
        index.messages("ann", "desk", limit=1)
    assert "pandora index rebuild" in caught.value.with_hint and "sqlite" in str(index.fault())
    kept = index.rebuild([ROWS])
    assert kept is not None and kept.name == "turn_index.duckdb.sqlite.damaged-1" and kept.exists()
    assert index.fault() is None and _texts(index, "oak desk") == ["we ordered the oak desk"]


@pytest.mark.parametrize("killed_in", [KILLED_BETWEEN_COMMITS, KILLED_IN_A_REBUILD], ids=["between the commits", "between the files"])
def test_a_turn_in_one_file_alone_counts_as_missing_and_is_put_again(index: DuckTurnIndex, killed_in: str) -> None:
    """The process was killed after the change of the SQLite file and before that of the DuckDB file."""
    command = [sys.executable, "-c", killed_in, str(index.file.path)]
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])})
    assert killed.returncode == -signal.SIGKILL
    key = TurnKey(UserId("ann"), 3)
    assert _texts(index, "marble") == ["a marble table"] and index.missing([key]) == (key,)
    assert [c.row.number for c in index.candidates("ann", "marble table", limit=5)] != [3]
    index.put([message_row(3, "a marble table")])
    assert index.missing([key]) == () and [m.text for m in index.messages("ann", "marble", limit=9)].count("a marble table") == 1


def test_a_sound_file_is_replaced_in_one_step(index: DuckTurnIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search takes no lock: it finds the old file or the new one, and what a killed process left to roll back is gone."""
    replace_file, seen = Path.replace, list[bool]()

    def watched(self: Path, target: Path) -> Path:
        if target == index.search_file.path:
            seen.append(target.exists())
        return replace_file(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    index.rebuild([ROWS])
    assert erase_rows(index.file.path, "bob", wait_s=1)
    assert seen == [True, True] and _texts(index, "oak desk") == ["we ordered the oak desk"]


def test_nothing_of_an_erased_user_is_left_in_the_file(index: DuckTurnIndex) -> None:
    """Neither words nor terms nor the name; what others find stays."""
    before = index.messages("ann", "oak desk", limit=9)
    assert b"zephyrin" in index.search_file.path.read_bytes().lower()
    assert erase_rows(index.file.path, "bob", wait_s=1)
    for path in index.file.path.parent.iterdir():
        assert not {word for word in (b"zephyrin", b"secret", b"bob") if word in path.read_bytes().lower()}
    assert index.messages("ann", "oak desk", limit=9) == before and index.messages("bob", "secret", limit=9) == ()
