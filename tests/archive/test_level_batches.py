"""What a narrative takes up, and the proof that its links leave nothing out: laws over any session."""

from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.archive.level_batches import (
    LevelEntry,
    batches_due,
    narrative_edges,
    sort_parts,
    turn_link_faults,
    valid_parts,
)
from pandora_dagster.compression.levels.summarization_config import SummarizationConfig
from pandora_dagster.contracts.archive_records import ArchiveRecord
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.contracts.user.summary_levels import NarrativePart, SessionNarrative, TextOrigin
from pandora_dagster.documents.turn_entry import turn_entry

MADE = TextOrigin(recipe="r", recipe_version="a", prompt_version="b", runtime="x", model="m", call_id="call_1", at="2026-01-04T14:30:00Z")


COLD = ArchiveRecord(
    archived_at="2026-02-04T02:00:00Z", day="2026-01-04", was="saved", cold="cold/ann/2026/01/x.tar.zst", sha256="0" * 64, size=1, files={}
)


def manifest(number, day=4, archived=True, summary="They met.", topics=("desk",)):
    return Manifest(
        user_id="ann",
        turn_id=f"turn_{number:06d}",
        session_id="s1",
        state="archived" if archived else "saved",
        archive=COLD if archived else None,
        created_at=f"2026-01-{day:02d}T14:30:00Z",
        last_activity="2026-01-04T14:30:00Z",
        summary={"summary": summary, "topics": topics},
    )


def part(batch):
    return NarrativePart(links=tuple(e.link for e in batch), text="They met.", tokens_before=9, tokens=3, made=MADE)


def narrative(parts):
    return SessionNarrative(user_id="ann", session_id="s1", parts=parts) if parts else None


SESSIONS = st.lists(st.tuples(st.integers(1, 28), st.booleans(), st.text(max_size=20)), max_size=40)
RULES = st.builds(
    SummarizationConfig, l2_trigger_entries=st.integers(0, 25), l2_batch_size=st.integers(0, 7), preserve_recent_n=st.integers(0, 8)
)


@given(SESSIONS, RULES, st.booleans())
def test_every_archived_turn_is_taken_up_once_or_waits(turns, rule, is_quiet):
    """No turn twice, none that is not archived, nothing waits at rest; and with the batches made, only those that wait are unlinked."""
    entries = [LevelEntry.of(manifest(n, *turn)) for n, turn in enumerate(turns, start=1)]
    batches, waiting = batches_due(entries, [e.turn for e in entries], rule, is_quiet=is_quiet)
    taken = [e.turn for batch in batches for e in batch]
    archived = [e.turn for e in entries if e.is_archived]
    assert len(set(taken)) == len(taken) and set(taken) <= set(archived) and len(archived) - len(taken) == waiting
    assert not (is_quiet and waiting) and all(1 <= len(batch) <= max(1, rule.l2_batch_size) for batch in batches)
    assert not is_quiet or [e.turn for batch in batches for e in batch] == sorted(archived, key=lambda n: (turns[n - 1][0], n))
    made = narrative(sort_parts(map(part, batches)))
    assert len(turn_link_faults(made, entries)) == waiting
    assert valid_parts(made, {e.turn: e for e in entries}) == (made.parts if made else ())


@given(SESSIONS, st.data())
def test_a_turn_that_is_gone_or_says_something_else_is_found(turns, data):
    """Its part falls, and only that one; the proof names it."""
    entries = [LevelEntry.of(manifest(n, day, True, text)) for n, (day, _, text) in enumerate(turns, start=1)]
    batches, _ = batches_due(entries, [], SummarizationConfig(l2_batch_size=3), is_quiet=True)
    made = narrative(sort_parts(map(part, batches)))
    if made is None:
        return
    victim = data.draw(st.sampled_from([e.turn for e in entries]))
    others = {e.turn: e for e in entries if e.turn != victim}
    changed = {**others, victim: LevelEntry.of(manifest(victim, 4, True, "Something else."))}
    left = tuple(p for p in made.parts if victim not in [link.turn for link in p.links])
    assert valid_parts(made, others) == left == valid_parts(made, changed)
    assert turn_link_faults(made, others.values()) == (f"turn {victim}: linked, but missing",)
    assert turn_link_faults(made, changed.values()) == (f"turn {victim}: linked with another hash than its entry has",)


def test_an_entry_without_more_is_one_line_without_credentials():
    """Day, keywords, summary; whatever the summary holds."""
    report = turn_entry(manifest(1, summary="The key\nis sk-abcdefghijklmnopqrstuvwxyz123456.", topics=("desk", "two\nlines")))
    assert report.startswith("2026-01-04 (desk, two lines): The key is ") and "\n" not in report and "abcdefghij" not in report
    assert turn_entry(manifest(1).model_copy(update={"summary": None})) == "2026-01-04: A turn without a summary."


def test_an_entry_carries_limits_tools_and_errors():
    """Each on a line of its own behind the summary, credentials taken out; a limit that the summary names is not named twice."""
    trace = {
        "limits": ["It must not be wider than 140 cm.", "They met."],
        "tools": ["doc.search", "buy"],
        "errors": ["buy: the key sk-abcdefghijklmnopqrstuvwxyz123456 is not valid"],
    }
    plain = manifest(1)
    head, limit, tools, error = turn_entry(plain.model_copy(update={"summary": {**plain.summary, **trace}})).split("\n")
    assert head == turn_entry(plain) and limit == "Limit: It must not be wider than 140 cm." and tools == "Tools used: doc.search, buy"
    assert error.startswith("Error: buy: the key ") and "abcdefghij" not in error


def test_edges_name_texts_by_id_and_hash():
    """A row for each turn; the narrative's own hash on all of them."""
    entries = [LevelEntry.of(manifest(n)) for n in (1, 2)]
    made = narrative((part(entries),))
    edges = narrative_edges(made, entry_tokens={1: 9})
    assert [(e.parent, e.child, e.parent_tokens) for e in edges] == [
        ("ann:turn_000001/summary", "ann:session/s1", 9),
        ("ann:turn_000002/summary", "ann:session/s1", 0),
    ]
    assert {(e.parent_sha, e.child_sha) for e in edges} == {(entries[0].link.sha, made.sha)}
