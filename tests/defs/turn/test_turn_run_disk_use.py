"""What one `pandora ask` does to the disk of a store that holds earlier turns: documents opened for reading, fsyncs, documents written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.settings import load_settings
from tests.phases.rig import vocabulary

REPOSITORY = Path(__file__).parents[3]
MOST_OPENED = 100
MOST_FSYNCS_BESIDE_DOCUMENTS = 15
EARLIER = ("Which desk did we order, and what did it cost?", "I live in Graz and my sister is called Maja.", "Which chair did we order?")
QUESTIONS = {
    "Which order number does the desk have in the warehouse catalogue of Nordhus logistics?": "ORD-77120",
    "What is my sister called?": "Maja",
    "Thank you, that helps.": "welcome",
}
"""Each with what its answer says. The history answers a part of the first: it calls the search tool, as turns with more sources do."""


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("disk_use") / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}), counter=vocabulary())
    app.transfer.import_example()
    for query in EARLIER:
        app.run_turn(app.start(query, user="example", session="demo"), on_report=lambda _: None)
    app.close()
    return root


def counted_ask(root: Path, question: str) -> tuple[dict[str, object], dict[str, dict[str, int]]]:
    """The answer of `pandora ask --json` in a process of its own, and its counts by path below the store, Dagster's records left out."""
    report = root.parent / "report.json"
    command = [sys.executable, "-m", "tests.defs.turn.counted_program", str(report)]
    environment = {**os.environ, "PANDORA_ROOT": str(root), "DAGSTER_HOME": "", "PYTHONPATH": str(REPOSITORY)}
    asked = subprocess.run(
        [*command, "ask", question, "--user", "example", "--session", "demo", "--json"],
        env=environment,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    below, records = f"{root}{os.sep}", f"{root / 'dagster'}{os.sep}"
    counts = {
        action: {path.removeprefix(below): n for path, n in paths.items() if path.startswith(below) and not path.startswith(records)}
        for action, paths in json.loads(report.read_text()).items()
    }
    return json.loads(asked.stdout), counts


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_ask_reads_its_turn_once_and_little_else(store, question):
    """The limits hold from the first line of the process to its last, with the phases as Dagster assets."""
    answer, counts = counted_ask(store, question)
    read, written, synced = counts["read"], counts["written"], sum(counts["synced"].values())
    assert QUESTIONS[question] in str(answer["response"])
    indexes = [*(store / "indexes").iterdir()]
    assert indexes and sum(read.values()) + len(indexes) <= MOST_OPENED, read
    own = {path: count for path, count in read.items() if f"/{answer['turn_id']}/" in path}
    assert own and set(own.values()) == {1}, own
    assert synced <= min(len(written), sum(written.values())) + MOST_FSYNCS_BESIDE_DOCUMENTS, counts["synced"]
