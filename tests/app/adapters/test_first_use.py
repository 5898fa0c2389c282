"""What an answer does not need is not imported for it: services, erasure, import and export, archival, compression."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from pandora_dagster.app import open_app
from pandora_dagster.app.adapters.store_adapters import StoreAdapters
from pandora_dagster.settings import load_settings
from tests.phases.vocabulary import vocabulary

LATER = (
    *("app.archive_service", "app.erasure_service", "app.health", "app.index_service", "app.lineage_service", "app.transfer_service"),
    *("archive", "transfer", "stores.erasure", "compression.compressor", "governance"),
)
ANSWERS = """
import sys
from pandora_dagster.app import open_app
from pandora_dagster.settings import load_settings

app = open_app(load_settings({"PANDORA_ROOT": sys.argv[1]}))
key = app.start("Which chair did we order?")
seen = []


def on_report(report):
    if report.has_answer and not seen:
        assert app.answer_of(key, report.turn).response
        seen.extend(name for name in sys.modules if name.startswith("pandora_dagster."))


app.run_turn(key, on_report=on_report)
print(*seen)
app.close()
"""


def is_within(name: str, packages: Iterable[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def test_an_answer_imports_no_service_that_it_does_not_use(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ANSWERS, str(tmp_path / "store")], check=True, capture_output=True, text=True)
    imported = done.stdout.split()
    assert "pandora_dagster.app.composition" in imported
    assert [name for name in imported if is_within(name.removeprefix("pandora_dagster."), LATER)] == []


def test_a_service_is_built_once_over_the_stores_of_the_application(tmp_path: Path) -> None:
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    assert isinstance(app.services.stores, StoreAdapters)
    assert app.lineage is app.lineage and app.lineage.index is app.services.stores.lineage_index
    assert app.indexes is app.services.indexes and app.search is app.services.search and app.transfer is app.services.transfer
    assert app.health.indexes is app.indexes
    app.close()
