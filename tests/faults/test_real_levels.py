"""Real conversations archived, narrated and digested: every turn linked by hash, every sentence borne out, no call of nobody."""

import asyncio
from itertools import islice
from pathlib import Path

import pytest

from pandora_dagster.contracts.levels import Subject
from pandora_dagster.phases.digests import digest_users, lost_narratives
from pandora_dagster.phases.narratives import lost_turns, summarise_sessions
from pandora_dagster.settings import load_settings
from pandora_dagster.wiring import open_house, open_levels
from tests.phases.archival import archived

REAL = Path(__file__).parents[3] / "shared" / "data" / "tau_bench" / "airline_conversations.jsonl"
pytestmark = pytest.mark.skipif(not REAL.is_file(), reason=f"{REAL} is not on this machine")


def test_real_conversations_are_all_in_narratives_and_digests(tmp_path):
    """Twelve of them, on the embedded runtime: nothing failed, nothing lost, shorter than what they tell of."""
    house = open_house(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}))
    with REAL.open("rb") as lines:
        house.import_conversations(islice(lines, 12), where=REAL.name)
    archived(house)
    desk, rows = open_levels(house), []
    first = asyncio.run(summarise_sessions(desk, on_row=rows.append))
    second = asyncio.run(digest_users(desk, on_row=rows.append))
    assert not first.failed and not second.failed and not first.stopped and not second.stopped
    for user in house.turns.users():
        assert lost_narratives(desk, user) == ()
        assert [fault for s, stands in house.kit.index.sessions(user).items() for fault in lost_turns(desk, Subject(user, s), stands)] == []
    assert all(part.tokens <= 200 for user in house.turns.users() for n in desk.levels.narratives(user) for part in n.parts)
    narrated = [row for row in rows if row.subject.session]
    assert sum(row.links for row in narrated) == len(list(house.turns.keys())) and all(row.ratio >= 1 for row in rows)
    assert house.verify_index() == ()
    house.close()
