"""Several processes on one store."""

import json
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from pandora_dagster.app import open_app
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.defs.instance import add_turn_partitions, open_instance_at
from pandora_dagster.settings import load_settings
from tests.faults.processes import ended, pandora, started

SHIPPED = Path(__file__).parents[2] / "data" / "dagster.yaml"


def test_two_that_ask_at_once_both_get_their_answer(tmp_path):
    """Two `pandora ask` of one user at the same time: two numbers, both saved and indexed."""
    root = tmp_path / "store"
    running = [started(root, "ask", f"my favourite colour is {c}", "--user", "anna", "--json") for c in ("red", "blue")]
    answers = []
    for process in running:
        code, out, err = ended(process)
        assert code == 0, err
        answers.append(json.loads(out))
    assert {a["turn_id"] for a in answers} == {"turn_000001", "turn_000002"} and {a["state"] for a in answers} == {"saved"}
    code, out, err = pandora(root, "turns", "--json")
    assert [t["state"] for t in json.loads(out)] == ["saved", "saved"], err
    code, out, err = pandora(root, "index", "verify")
    assert code == 0, out + err


def message(user, number, turns=12):
    """A conversation of its own words, as a line of an import file."""
    texts = [f"Item {number}-{n} of the shelf is oak." for n in range(turns)]
    messages = [m for s in texts for m in ({"role": "user", "content": s}, {"role": "assistant", "content": "Noted."})]
    return json.dumps({"id": f"talk{number}", "user_id": user, "created_at": "2026-01-04T10:00:00Z", "messages": messages})


def test_eight_at_once_lose_nothing(tmp_path):
    """Three imports, two questions, two searches and a rebuild of the index, all at the same time on one store: no error, no lost row."""
    root = tmp_path / "store"
    files = []
    for number in range(4):
        files.append(tmp_path / f"talk{number}.jsonl")
        files[-1].write_text(message("anna", number) + "\n")
    code, _, err = pandora(root, "import", str(files[0]))
    assert code == 0, err
    search = ("search", "oak shelf", "--user", "anna", "--json")
    commands = [("import", str(file)) for file in files[1:]] + [("ask", f"Which shelf, {n}?", "--user", "anna", "--json") for n in (1, 2)]
    running = [started(root, *command) for command in (*commands, search, search, ("index", "rebuild"))]
    for process in running:
        code, out, err = ended(process)
        assert code == 0, (process.args, out, err)
    code, out, err = pandora(root, "index", "verify")
    assert code == 0, out + err
    code, out, err = pandora(root, "turns", "--json")
    assert sorted(t["turn_id"] for t in json.loads(out)) == [f"turn_{n:06d}" for n in range(1, 51)], err
    assert {t["state"] for t in json.loads(out)} == {"saved"}


def test_two_that_resume_one_turn_do_nothing_twice(tmp_path):
    """One continues it; the other waits for the lock in vain, or finds nothing left. No phase runs twice, and there is no new revision."""
    root = tmp_path / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    key = app.start("Which chair did we order?", user="anna")
    app.close()
    running = [started(root, "resume", str(key), "--no-stream") for _ in range(2)]
    codes = []
    for process in running:
        code, _, err = ended(process)
        assert code in (0, 2), err
        assert code == 0 or "another process works on turn" in err or "nothing is left to do" in err, err
        codes.append(code)
    assert 0 in codes
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    manifest = app.turns.manifest(key)
    called = Counter(json.loads(line)["phase"] for line in (app.folder(key) / "calls.jsonl").read_text().splitlines())
    assert (manifest.state, manifest.revision) == ("saved", 0)
    assert {called[phase] for phase in ("query_analysis", "reflection", "response", "validation", "turn_summary")} == {1}
    assert app.indexes.verify() == ()
    app.close()


def test_processes_that_open_a_new_home_at_once_all_succeed(tmp_path):
    """Two `ask` at once on a fresh machine do not stumble over each other's tables."""
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_open_and_add, [str(tmp_path)] * 3, range(1, 4))) == [None] * 3
    with open_instance_at(tmp_path, SHIPPED) as instance:
        assert sorted(instance.get_dynamic_partitions("turns")) == [f"ann:turn_{n:06d}" for n in range(1, 4)]


def _open_and_add(home, number):
    with open_instance_at(Path(home), SHIPPED) as instance:
        add_turn_partitions(instance, [TurnKey(user_id("ann"), number)])


def test_indexes_are_right_after_turns_at_once_that_cite_the_same_turns(tmp_path):
    """4 rounds of 8 `ask` of one user, half of them in one session: turns, calls and lineage agree with the documents after each round."""
    root = tmp_path / "store"
    file = tmp_path / "talk.jsonl"
    file.write_text(message("anna", 1) + "\n")
    code, _, err = pandora(root, "import", str(file))
    assert code == 0, err
    for number in range(4):
        sessions = [["--session", "shared"] if n % 2 else [] for n in range(8)]
        running = [
            started(root, "ask", f"Which wood is item 1-{n} of the shelf?", "--user", "anna", "--json", *session)
            for n, session in enumerate(sessions)
        ]
        for process in running:
            code, out, err = ended(process)
            assert code == 0, err
        code, out, err = pandora(root, "index", "verify")
        assert code == 0, f"round {number}: {out}{err}"
        code, out, err = pandora(root, "doctor", "--json")
        findings = {finding["part"]: finding for finding in json.loads(out)}
        assert findings["index of turns"]["ok"], findings["index of turns"]
