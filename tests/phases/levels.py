"""Stores whose archived turns are summed up, and short ways to do so."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime

from pandora_dagster.compression.levels.config import SummarizationConfig
from pandora_dagster.contracts.ids import SessionId, user_id
from pandora_dagster.contracts.levels import Subject
from pandora_dagster.phases.digests import digest_users, lost_narratives
from pandora_dagster.phases.narratives import lost_turns, summarise_sessions
from pandora_dagster.wiring import open_levels
from tests.phases.archival import LATER

ANNA, EXAMPLE = user_id("anna"), user_id("example")
S1 = SessionId("s1")
NARRATIVE = "They talked about a chair."
DIGEST = {"key_decisions": [], "tools_used": [], "errors_encountered": [], "progress_toward_goal": NARRATIVE, "open_questions": []}


def imports(house, *conversations, user="anna", answer="Noted."):
    """Conversations (id, day, words...) into a store."""
    lines = [
        {
            "id": name,
            "user_id": user,
            "created_at": f"{day}T10:00:00Z",
            "messages": [m for said in words for m in ({"role": "user", "content": said}, {"role": "assistant", "content": answer})],
        }
        for name, day, *words in conversations
    ]
    assert not house.import_conversations((json.dumps(line).encode() for line in lines), where="test").faults


def levels(house, *, later=True, **triggers):
    """The desk of the levels, forty days from now: what was said today is at rest."""
    desk = open_levels(house)
    rules = replace(desk.rules, triggers=replace(SummarizationConfig(), **triggers))
    kit = replace(desk.kit, clock=lambda: datetime.now(UTC) + LATER) if later else desk.kit
    return replace(desk, kit=kit, rules=rules)


def night(desk, which=None):
    """Both levels once; their reports, and the rows by subject."""
    rows = []
    first = asyncio.run(summarise_sessions(desk, which, on_row=rows.append))
    return (first, asyncio.run(digest_users(desk, on_row=rows.append))), {row.subject: row for row in rows}


def files(house):
    """All narratives and digests of a store, as bytes."""
    found = (p for name in ("narrative.json", "digest.json") for p in (house.settings.root / "users").rglob(name))
    return {p.relative_to(house.settings.root).as_posix(): p.read_bytes() for p in found}


def proved(house, desk):
    """Everything that speaks against no_fact_lost."""
    users = house.turns.users()
    sessions = [(Subject(user, s), stands) for user in users for s, stands in house.kit.index.sessions(user).items()]
    return [f for one in sessions for f in lost_turns(desk, *one)] + [f for user in users for f in lost_narratives(desk, user)]
