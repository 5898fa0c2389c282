"""Which earlier turns go whole, as summaries, or stay out."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.retrieval.context_window import SessionTurn, choose_window
from pandora_dagster.retrieval.retrieval_policy import BUFFERS, RetrievalPolicy

POLICY = RetrievalPolicy()


class Words:
    """Counts words: easy to do in the head."""

    def count(self, text: str) -> int:
        return len(text.split())


def turns(count, *, whole=20, summary=3):
    return [SessionTurn(n, "w " * whole, "s " * summary) for n in range(1, count + 1)]


def made(given, *, policy=POLICY, kind="query", budget=1_000, rolled=0, retrieved=0):
    return choose_window(
        given, policy=policy, intent=kind, budget_tokens=budget, counter=Words(), summary_tokens=rolled, retrieved_tokens=retrieved
    )


def covered(given, count):
    """The same turns, the oldest `count` of them in the rolling summary."""
    return [replace(t, covered=place < count) for place, t in enumerate(given)]


_TURNS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.booleans()), max_size=20).map(
    lambda raw: [SessionTurn(n, "w " * whole, "s " * summary, chosen) for n, (whole, summary, chosen) in enumerate(raw, 1)]
)
_KINDS = st.sampled_from(sorted({*BUFFERS, "unknown"}))


@given(_TURNS, _KINDS, st.integers(0, 300), st.tuples(*[st.integers(0, 20)] * 2), st.integers(0, 200))
@settings(max_examples=150, deadline=None)
def test_every_turn_goes_one_way_in_order_within_the_budget(given_turns, kind, budget, rolling, retrieved) -> None:
    """Each turn is in one group with a reason, in order; the sent forms are the given ones and fit, unless protected turns can not."""
    count, tokens = rolling
    result = made(covered(given_turns, count), kind=kind, budget=budget, rolled=tokens, retrieved=retrieved)
    assert list(result.forms) == [t.number for t in given_turns]
    assert set(result.reasons) == {t.number for t in given_turns} and all(result.reasons.values())
    own = {t.number: t for t in given_turns if not t.chosen}
    sent = sum(len(own[n].whole.split()) for n in result.numbers("whole") if n in own) + sum(
        len(own[n].summary.split()) for n in result.numbers("summary")
    )
    sent += tokens if result.numbers("rolled up") else 0
    newest = given_turns[max(0, len(given_turns) - POLICY.protected(kind, has_summary=tokens > 0)) :]
    least = sum(min(len(text.split()) for text in (t.whole, t.summary) if text) for t in newest if not t.chosen and (t.whole or t.summary))
    assert sent == result.tokens and result.tokens <= max(budget, least)


@given(_TURNS, _KINDS, st.integers(0, 60), st.integers(0, 20))
@settings(max_examples=150, deadline=None)
def test_a_protected_turn_is_never_dropped(given_turns, kind, budget, rolled) -> None:
    """Whatever the budget: the newest six, or all that a minimal buffer sends, are there where any form of them is."""
    result = made(covered(given_turns, len(given_turns)), kind=kind, budget=budget, rolled=rolled, retrieved=1_000)
    count = min(6, POLICY.reach(kind, has_summary=False))
    protected = [t.number for t in given_turns[len(given_turns) - min(count, len(given_turns)) :] if t.whole or t.summary or t.chosen]
    assert not set(protected) & {*result.numbers("left out"), *result.numbers("rolled up")}


@pytest.mark.parametrize(
    ("policy", "kind", "has_summary", "whole", "sent"),
    [
        (POLICY, "commerce", False, 5, 12),
        (POLICY, "query", True, 5, 8),
        (POLICY, "recall", False, 5, 12),
        (POLICY, "preference", False, 4, 12),
        (POLICY, "navigation", False, 2, 2),
        (POLICY, "greeting", False, 0, 0),
        (POLICY, "unknown", False, 4, 12),
        (replace(POLICY, messages=14), "query", False, 5, 7),
    ],
)
def test_the_tables_of_002(policy, kind, has_summary, whole, sent) -> None:
    """With room enough: the buffer goes whole, the rest of the 8 or 12 turns as summaries, older turns stay out."""
    result = made(covered(turns(20), 12 if has_summary else 0), policy=policy, kind=kind, rolled=9 if has_summary else 0)
    assert result.numbers("whole") == tuple(range(21 - whole, 21)) and result.numbers("summary") == tuple(range(21 - sent, 21 - whole))
    older, is_rolled = tuple(range(1, 21 - sent)), has_summary and sent > 2
    assert (result.numbers("rolled up"), result.numbers("left out")) == ((older, ()) if is_rolled else ((), older))
    assert result.forms[1] == ("rolled up" if is_rolled else "left out")


def test_turns_since_the_summary_stay_in_reach() -> None:
    """A summary of the first five, made long ago: the fifteen after it go whole or as summaries, beyond the eight."""
    result = made(covered(turns(20), 5), rolled=9)
    assert (
        result.numbers("rolled up") == (1, 2, 3, 4, 5)
        and result.numbers("summary") == tuple(range(6, 16))
        and result.numbers("left out") == ()
    )


def test_a_rolling_summary_without_room_stays_out() -> None:
    """Protected turns come first; what does not fit beside them leaves the window as it is without one."""
    assert made(covered(turns(20), 12), budget=26, rolled=9).numbers("rolled up") == ()
    tight = made(covered(turns(20), 12), budget=27, rolled=9)
    assert tight.numbers("rolled up") == tuple(range(1, 13)) and tight.tokens == 18 + 9 and tight.numbers("left out") == (13, 14)


def test_older_history_takes_60_percent_where_retrieval_wants_its_40() -> None:
    """Six protected summaries of 3 leave 100: with retrieval waiting 60 are taken, without it all."""
    assert (made(turns(20), budget=118, retrieved=500).tokens, made(turns(20), budget=118, retrieved=500).numbers("whole")) == (
        18 + 51 + 9,
        (18, 19, 20),
    )
    assert made(turns(20), budget=118).numbers("whole") == (16, 17, 18, 19, 20)
    assert made(turns(20), budget=118, retrieved=20).tokens <= 98


def test_a_turn_without_room_says_so() -> None:
    """A protected turn falls back to its summary, an older one stays out; protected summaries over the budget are told."""
    tight = made(turns(8), budget=20)
    assert (tight.numbers("summary"), tight.numbers("left out")) == ((3, 4, 5, 6, 7, 8), (1, 2)) and tight.reasons[
        8
    ] == "protected; no room for it whole"
    assert tight.reasons[2] == "no room" and made(turns(8), budget=10).tokens == 18


def test_a_chosen_turn_is_whole_at_no_cost_of_the_history() -> None:
    """What retrieval loads stays whole however old it is."""
    given_turns = [replace(t, chosen=t.number in (1, 20)) for t in turns(20)]
    result = made(given_turns, budget=18)
    assert result.numbers("whole") == (1, 20) and result.reasons[1] == "chosen for the query" and result.tokens == 15 + 3
