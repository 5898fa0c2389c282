"""Several processes on one store."""

import json

from tests.faults.processes import ended, pandora, started


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


def told(user, number, turns=12):
    """A conversation of its own words, as a line of an import file."""
    said = [f"Item {number}-{n} of the shelf is oak." for n in range(turns)]
    messages = [m for s in said for m in ({"role": "user", "content": s}, {"role": "assistant", "content": "Noted."})]
    return json.dumps({"id": f"talk{number}", "user_id": user, "created_at": "2026-01-04T10:00:00Z", "messages": messages})


def test_eight_at_once_lose_nothing(tmp_path):
    """Three imports, two questions, two searches and a rebuild of the index, all at the same time on one store: no error, no lost row."""
    root = tmp_path / "store"
    files = []
    for number in range(4):
        files.append(tmp_path / f"talk{number}.jsonl")
        files[-1].write_text(told("anna", number) + "\n")
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
