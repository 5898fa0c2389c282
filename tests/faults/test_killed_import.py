"""An import that dies in the middle, in processes of its own."""

import json
import shutil
from pathlib import Path

from pandora_dagster.app import open_app
from pandora_dagster.defs.instance import open_instance
from pandora_dagster.settings import load_settings
from tests.faults.processes import ended, pandora, started

DYING = """
import os, sys
from pathlib import Path
from pandora_dagster.settings import load_settings
from pandora_dagster.app import open_app
app = open_app(load_settings({"PANDORA_ROOT": os.environ["PANDORA_ROOT"]}))
app.transfer.import_conversations(Path(sys.argv[1]).read_bytes().splitlines()[:1], where="f")
os._exit(9)
"""


def known_to_dagster(store: Path) -> list[str]:
    with open_instance(load_settings({"PANDORA_ROOT": str(store)})) as instance:
        return sorted(instance.get_dynamic_partitions("turns"))


def test_no_turn_stays_unknown_to_dagster(tmp_path: Path) -> None:
    """Turns were stored and the process died before Dagster heard of them: importing again tells it of all, so does a rebuild."""
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "example")}))
    app.transfer.import_example()
    app.close()
    store, file = tmp_path / "store", tmp_path / "history.jsonl"
    file.write_text(pandora(tmp_path / "example", "export")[1], encoding="utf-8")
    assert ended(started(store, str(file), code=DYING))[0] == 9
    assert pandora(store, "import", str(file))[0] == 0
    everything = sorted(f"{t['user_id']}:{t['turn_id']}" for t in json.loads(pandora(store, "turns", "--json")[1]))
    assert everything and known_to_dagster(store) == everything
    shutil.rmtree(load_settings({"PANDORA_ROOT": str(store)}).dagster_home)
    assert pandora(store, "index", "rebuild")[0] == 0
    assert known_to_dagster(store) == everything
