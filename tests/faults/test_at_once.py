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
