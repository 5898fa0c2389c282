"""Fixtures of the archive's tests: archival works on what is stored, so that the whole application is open."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.settings import load_settings
from tests.archive.archived_store import archived
from tests.archive.level_store import DIGEST, NARRATIVE, imports
from tests.governance.recipe_copies import copied_without_evidence
from tests.phases.rig import Rig, open_rig
from tests.phases.vocabulary import vocabulary


@pytest.fixture(scope="session")
def recipes(tmp_path_factory) -> Path:
    """Recipes without the evidence gate of answers, for scripted answers that are long and have no source."""
    return copied_without_evidence(tmp_path_factory.mktemp("recipes"))


@pytest.fixture
def rig(tmp_path, recipes) -> Iterator[Rig]:
    """An application over a store of its own."""
    made = open_rig(tmp_path / "store", recipes=recipes)
    yield made
    made.app.close()


@pytest.fixture
def app(tmp_path):
    """The shipped example, imported and archived: seven turns of three conversations."""
    opened = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}), counter=vocabulary())
    opened.transfer.import_example()
    archived(opened)
    yield opened
    opened.close()


@pytest.fixture
def talk(rig):
    """A model that answers as expected, and a way to import a session of several turns and archive them."""
    rig.say(session_summarizer=NARRATIVE, digest_builder=json.dumps(DIGEST), compressor="none of it")

    def turns(*queries, session="s1", user="anna", answer=NARRATIVE):
        imports(rig.app, (session, "2026-01-04", *queries), user=user, answer=answer)
        archived(rig.app)

    rig.talk = turns
    return rig
