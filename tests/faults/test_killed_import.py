"""An import that dies in the middle, in processes of its own."""

import json
import shutil
from pathlib import Path

import dagster as dg

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


def reported_imports(store: Path) -> list[int]:
    """The turns of each import that Dagster shows; no imported turn has a partition, which would read Missing."""
    with open_instance(load_settings({"PANDORA_ROOT": str(store)})) as instance:
        assert not instance.get_dynamic_partitions("turns")
        events = instance.fetch_materializations(dg.AssetKey("imported_turns"), limit=10).records
    return [event.asset_materialization.metadata["turns"].value for event in events if event.asset_materialization]


def test_no_turn_stays_unknown_to_dagster(tmp_path: Path) -> None:
    """The process died before it reported its turns: the next import is an event of its own turns, an unchanged one is none."""
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "example")}))
    app.transfer.import_example()
    app.close()
    store, file = tmp_path / "store", tmp_path / "history.jsonl"
    file.write_text(pandora(tmp_path / "example", "export")[1], encoding="utf-8")
    assert ended(started(store, str(file), code=DYING))[0] == 9
    assert pandora(store, "import", str(file))[0] == 0
    everything = sorted(f"{t['user_id']}:{t['turn_id']}" for t in json.loads(pandora(store, "turns", "--json")[1]))
    (reported,) = reported_imports(store)
    assert 0 < reported < len(everything)
    assert pandora(store, "import", str(file))[0] == 0 and len(reported_imports(store)) == 1
    shutil.rmtree(load_settings({"PANDORA_ROOT": str(store)}).dagster_home)
    assert pandora(store, "index", "rebuild")[0] == 0 and reported_imports(store) == []
