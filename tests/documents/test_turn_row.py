"""A turn's row from its documents."""

from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.documents.sections import new_context
from pandora_dagster.documents.turn_row import build_turn_row

_CONTEXT = new_context("which flight?").with_section(2, "older things").with_section(4, "HAT113").with_section(5, "It is HAT113.").render()


def _manifest(**fields: object) -> Manifest:
    return Manifest.model_validate(
        {
            "user_id": "ann",
            "turn_id": "turn_000811",
            "session_id": "s1",
            "state": "saved",
            "created_at": "2026-01-04T14:30:00Z",
            "last_activity": "2026-01-05T00:00:00Z",
            **fields,
        }
    )


def test_a_row_carries_the_manifest_and_its_summary() -> None:
    """The fields of 004 section 3.3 come from the summary, the rest from the manifest."""
    summary = {
        "summary": "A flight.",
        "topics": ["flight", "hat113"],
        "intent": "recall",
        "has_research": True,
        "research_topic": "a.b",
        "runtime": "x",
    }
    row = build_turn_row(_manifest(summary=summary, tokens=7, context_sha="abc", revision=2, recorded=True, runtime="recorded"), _CONTEXT)
    assert (row.turn_id, row.number, row.session_id, row.state) == ("turn_000811", 811, "s1", TurnState.SAVED)
    assert (row.summary, row.topics, row.intent, row.has_research, row.research_topic) == (
        "A flight.",
        ("flight", "hat113"),
        "recall",
        True,
        "a.b",
    )
    assert (row.tokens, row.context_sha, row.revision, row.recorded, row.runtime) == (7, "abc", 2, True, "recorded")


def test_a_turn_without_a_summary_has_a_row() -> None:
    """An open or unsummarised turn is listed all the same."""
    assert build_turn_row(_manifest(state="open"), _CONTEXT).summary == ""


def test_gathered_context_of_a_live_turn_is_not_searched() -> None:
    """Section 2 repeats older turns; only a recorded turn's greeting in it is searched."""
    row = build_turn_row(_manifest(), _CONTEXT)
    assert row.text == "which flight?\n\nIt is HAT113."
    assert [(m.id, m.role, m.text) for m in row.messages] == [("query", "user", "which flight?"), ("answer", "assistant", "It is HAT113.")]
    assert "older things" in build_turn_row(_manifest(recorded=True), _CONTEXT).text


def test_a_live_turn_tells_what_is_new_and_leaves_quotations_to_their_sources() -> None:
    """Earlier turns found again, and an embedded answer, quotations under fixed sentences, do not become sources of their own."""
    results = (
        "### Result 1: doc.search\n\n**Status:** success [1]\n\nTurn 3: paid 429 [1]\n\n"
        "### Result 2: memory.create\n\n**Status:** success [2]\n\nStored preference seat: aisle [2]\n\n"
        "### Source References\n\n- [1] `turns/turn_000003/context.md` - desk\n- [2] `preferences.md` - Stored memory"
    )
    context = new_context("and the desk?").with_section(4, results).with_section(5, "- paid 429 [1]\n\nI found no receipt.")
    live = Manifest(user_id="ann", turn_id="turn_000009", session_id="s", created_at="", last_activity="", runtime="extractive")
    row = build_turn_row(live, context.render())
    said = "\n".join(m.text for m in row.messages)
    assert [m.id for m in row.messages] == ["query", "results"]
    assert "and the desk?" in said and "seat: aisle" in said
    assert "429" not in said and "I found no receipt." not in said
    assert "429" in build_turn_row(live.model_copy(update={"runtime": "sglang"}), context.render()).messages[-1].text
