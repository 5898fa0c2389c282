"""The shipped example in a store, and Dagster's definitions over it."""

import os

import dagster as dg
import pytest

from pandora_dagster.app import open_app
from pandora_dagster.settings import load_settings
from tests.defs.archival.test_archive_assets import definitions


@pytest.fixture
def app(tmp_path, monkeypatch):
    """The shipped example: recorded turns of last January."""
    for name in [name for name in os.environ if name.startswith(("PANDORA_", "DAGSTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PANDORA_ROOT", str(tmp_path))
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path)}))
    opened.transfer.import_example()
    yield opened
    opened.close()


@pytest.fixture
def instance():
    with dg.instance_for_test() as opened:
        yield opened


@pytest.fixture
def graph(app):
    return definitions(app)
