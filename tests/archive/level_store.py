"""Stores whose archived turns are summed up, and short ways to do so."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime

from pandora_dagster.app.archive_service import open_levels
from pandora_dagster.archive.session_narratives import narrative_faults, summarize_sessions
from pandora_dagster.archive.user_digests import digest_faults, digest_users
from pandora_dagster.compression.levels.summarization_config import SummarizationConfig
from pandora_dagster.contracts.ids import SessionId, user_id
from pandora_dagster.contracts.user.summary_levels import LevelSubject
from tests.archive.archived_store import LATER

ANNA, EXAMPLE = user_id("anna"), user_id("example")
S1 = SessionId("s1")
NARRATIVE = "They talked about a chair."
DIGEST = {"key_decisions": [], "tools_used": [], "errors_encountered": [], "progress_toward_goal": NARRATIVE, "open_questions": []}


def imports(app, *conversations, user="anna", answer="Noted."):
    """Conversations (id, day, words...) into a store."""
    lines = [
        {
            "id": name,
            "user_id": user,
            "created_at": f"{day}T10:00:00Z",
            "messages": [m for record in words for m in ({"role": "user", "content": record}, {"role": "assistant", "content": answer})],
        }
        for name, day, *words in conversations
    ]
    assert not app.transfer.import_conversations((json.dumps(line).encode() for line in lines), where="test").faults


def levels(app, *, later=True, **triggers):
    """The desk of the levels, forty days from now: what was said today is at rest."""
    ctx = open_levels(app)
    rules = replace(ctx.rules, triggers=replace(SummarizationConfig(), **triggers))
    deps = replace(ctx.deps, clock=lambda: datetime.now(UTC) + LATER) if later else ctx.deps
    return replace(ctx, deps=deps, rules=rules)


def run_levels(ctx, which=None):
    """Both levels once; their reports, and the rows by subject."""
    rows = []
    first = asyncio.run(summarize_sessions(ctx, which, on_row=rows.append))
    return (first, asyncio.run(digest_users(ctx, on_row=rows.append))), {row.subject: row for row in rows}


def files(app):
    """All narratives and digests of a store, as bytes."""
    found = (p for name in ("narrative.json", "digest.json") for p in (app.settings.root / "users").rglob(name))
    return {p.relative_to(app.settings.root).as_posix(): p.read_bytes() for p in found}


def proved(app, ctx):
    """Everything that speaks against sources_linked."""
    users = app.turns.users()
    sessions = [(LevelSubject(user, s), stands) for user in users for s, stands in app.dependencies.index.sessions(user).items()]
    return [f for one in sessions for f in narrative_faults(ctx, *one)] + [f for user in users for f in digest_faults(ctx, user)]
