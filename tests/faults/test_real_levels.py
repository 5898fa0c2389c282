"""Real conversations archived, narrated and digested: every turn linked by hash, every sentence supported, no call of nobody."""

import asyncio
from itertools import islice
from pathlib import Path

import pytest

from pandora_dagster.app import open_app
from pandora_dagster.app.archive_service import open_levels
from pandora_dagster.archive.session_narratives import narrative_faults, summarize_sessions
from pandora_dagster.archive.user_digests import digest_faults, digest_users
from pandora_dagster.contracts.user.summary_levels import LevelSubject
from pandora_dagster.settings import load_settings
from tests.archive.archived_store import archived

REAL = Path(__file__).parents[3] / "shared" / "data" / "tau_bench" / "airline_conversations.jsonl"
pytestmark = pytest.mark.skipif(not REAL.is_file(), reason=f"{REAL} is not on this machine")


def test_real_conversations_are_all_in_narratives_and_digests(tmp_path):
    """Twelve of them, on the embedded runtime: nothing failed, nothing lost, shorter than what they tell of."""
    app = open_app(load_settings({"PANDORA_ROOT": str(tmp_path / "store")}))
    with REAL.open("rb") as lines:
        app.transfer.import_conversations(islice(lines, 12), where=REAL.name)
    archived(app)
    ctx, rows = open_levels(app), []
    first = asyncio.run(summarize_sessions(ctx, on_row=rows.append))
    second = asyncio.run(digest_users(ctx, on_row=rows.append))
    assert not first.failed and not second.failed and not first.stopped and not second.stopped
    for user in app.turns.users():
        assert digest_faults(ctx, user) == ()
        assert [
            fault
            for s, stands in app.dependencies.index.sessions(user).items()
            for fault in narrative_faults(ctx, LevelSubject(user, s), stands)
        ] == []
    assert all(part.tokens <= 200 for user in app.turns.users() for n in ctx.levels.narratives(user) for part in n.parts)
    narrated = [row for row in rows if row.subject.session]
    assert sum(row.links for row in narrated) == len(list(app.turns.keys())) and all(row.ratio >= 1 for row in rows)
    assert app.indexes.verify() == ()
    app.close()
