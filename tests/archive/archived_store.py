"""An imported store whose turns are due, and short ways to archive them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pandora_dagster.app.archive_service import open_archive
from pandora_dagster.archive.archive_run import archive_turns
from pandora_dagster.archive.archive_selection import select_turns
from tests.phases.rig import gathers_all, retrieval

LATER = timedelta(days=40)
WORDS = [
    "The oak desk from Miller costs $420 and arrives on 2026-01-17, order 7741.",
    "Ben said that the chair with arms is out of stock until March, and that the blue one is not.",
    "We agreed to keep the total under $900, without the lamp, because the invoice has to be one page.",
]


def archive_context(app, *, after=timedelta(), **rules):
    """The desk of an archival that happens `after` from now."""
    ctx = open_archive(app)
    deps = replace(ctx.deps, clock=lambda: datetime.now(UTC) + after)
    return replace(ctx, deps=deps, rules=replace(ctx.rules, **rules))


def archived(app, **how):
    """One run over all that is due, and its rows."""
    rows = []
    ctx = archive_context(app, **how)
    return app.run(archive_turns(select_turns(ctx), ctx, on_row=rows.append)), rows


def snapshot(folder):
    """The documents of a turn folder; the log of calls, the lock and the hold are none."""
    files = (p for p in Path(folder).rglob("*") if p.is_file() and p.name not in ("calls.jsonl", ".lock", "hold.json"))
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


def long_answer(lines=60):
    """What a model says that has much to say, and cites what it was given."""
    text = "\n\n".join(f"{WORDS[n % 3].removesuffix('.')} (item {n}, {n + 3} pieces)." for n in range(lines))
    return lambda pack: text + "".join(f" [{source.label}]" for source in pack.sources)


def two_turns(rig, lines):
    """A turn with a long answer, and one that cites it and answers as long."""
    rig.say(compressor="none of it", synthesizer=long_answer(lines))
    first = rig.ask("which chair?")
    rig.say(retrieval=retrieval(1), context_synthesis=gathers_all)
    return first, rig.ask("what did the oak desk cost?")
