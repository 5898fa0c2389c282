"""What a budget counts, and that a kept account goes on in the next process."""

from dataclasses import replace
from pathlib import Path

import pytest

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.errors import FetchRefusedError
from pandora_dagster.stores.user.research_run_files import TurnRunFiles
from pandora_dagster.tools.egress.web_budget import WebBudget
from tests.tools.egress.conftest import LIMITS


@pytest.mark.parametrize(
    ("limit", "value", "named"),
    [("pages", 2, "2 pages"), ("hosts", 2, "2 hosts"), ("total_bytes", 500, "500 bytes"), ("seconds", 0.0, "0")],
)
def test_what_was_used_stays_used_in_the_next_process(tmp_path: Path, limit: str, value: float, named: str) -> None:
    turn = TurnRunFiles(tmp_path, TurnKey.parse("anna:turn_000001"))
    before = WebBudget(LIMITS, turn.account)
    before.take_page("a.test")
    before.take_page("b.test")
    before.spend(500)
    after = WebBudget(replace(LIMITS, **{limit: value}), turn.account)  # type: ignore[arg-type]
    with pytest.raises(FetchRefusedError, match=f"the budget of {named}"):
        after.take_page("c.test")
        after.page_bytes()
    assert 0 < LIMITS.seconds - WebBudget(LIMITS, turn.account).seconds_left < 5
    assert turn.runs() == ()
    turn.delete()
    WebBudget(replace(LIMITS, pages=1), turn.account).take_page("c.test")
