"""What a HALT over a damaged or missing source says about its repair."""

from pathlib import Path

import pytest

from tests.phases.gather.test_source_documents import chosen
from tests.stores.user.test_source_files import research, visit

pytestmark = pytest.mark.stored


@pytest.mark.parametrize(
    ("plan", "harm", "says"),
    [
        (chosen(visits=["visit_gone"]), "", "add the record"),
        (chosen(topic="travel.rome"), "", "add the record"),
        (chosen(topic="commerce.laptop"), "research_cache", "correct the file that is named"),
        (chosen(visits=["visit_abc123"]), "webpage_cache", "correct the file that is named"),
    ],
)
def test_a_halt_over_a_source_says_how_to_repair_it(rig, plan, harm, says):
    """The intervention's hint, which `ask` prints, names the commands."""
    anna = rig.start().user
    rig.app.dependencies.sources.put(anna, research(webpage_cache=[]))
    rig.app.dependencies.sources.put(anna, visit())
    for path in (Path(rig.app.settings.root) / "users" / anna).glob(f"{harm}/*.json") if harm else ():
        path.write_text("{")
    rig.say(retrieval=plan)
    assert says in rig.halted(rig.ask()).hint and "pandora research add" in rig.halted(rig.ask()).hint
