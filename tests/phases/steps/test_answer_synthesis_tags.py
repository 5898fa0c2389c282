"""A recipe whose answers carry 002's micro-tags, through the real registry, executor and flow."""

import json
import shutil
from pathlib import Path

from tests.execution.call.test_streaming import Listener
from tests.phases.rig import open_rig

REPOSITORY = Path(__file__).parents[3]
SAID = """\
<thinking>
Mode: WITNESS
UserIntensity: 8
Strategy: reflect first
</thinking>
<draft>I would like us to talk on Sunday.</draft>
<dispatch>{"action": "EXPLAIN_PROCESS"}</dispatch>

That sounds hard."""
ANSWER = "I would like us to talk on Sunday.\n\n\nThat sounds hard."


def test_a_synthesizer_may_answer_with_tags(tmp_path):
    """The user hears, and every document holds, text and draft alone; the thinking lies in the call's record."""
    for part in ("recipes", "prompts"):
        shutil.copytree(REPOSITORY / part, tmp_path / part)
    file = tmp_path / "recipes" / "pipeline" / "phase5_synthesizer_chat.yaml"
    changed = file.read_text().replace("output_format: markdown", "output_format: tagged")
    file.write_text(changed.replace("prompt: 1318", "prompt: 1400").replace("total: 10000", "total: 10082"))
    rig, listener = open_rig(tmp_path / "store", recipes=tmp_path), Listener()
    rig.say(synthesizer=SAID)
    key = rig.start()
    reports = []
    rig.app.with_listener(listener).run_turn(key, on_report=reports.append)
    turn = rig.turn(key)
    assert turn.manifest.state == "saved" and rig.section(key, 5) == ANSWER and turn.files["response.md"] == ANSWER + "\n"
    assert listener.shown == ANSWER and listener.pieces.count(None) == 0 and len(listener.pieces) > 3
    assert "Mode: WITNESS" not in "".join(turn.files.values()) + turn.context
    (record,) = [json.loads(line) for line in (rig.app.folder(key) / "calls.jsonl").read_text().splitlines() if "synthesizer" in line]
    assert record["thinking"] == "Mode: WITNESS\nUserIntensity: 8\nStrategy: reflect first"
    assert "<thinking>" in rig.runtime.of("synthesizer")[0].system
    rig.app.close()
