"""Level 3's answers: read, repaired in shape only, capped and merged."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.compression.levels.level_prompts import DIGEST_KEYS, EMPTY_DIGEST, LIST_LIMITS, PROGRESS, L3DigestBuilder, empty_digest

BUILDER = L3DigestBuilder()
GOOD = {**empty_digest(), "tools_used": ["pip"], PROGRESS: "60%"}
WORDS = st.lists(st.sampled_from([f"{w}{n}" for n in range(12) for w in ("Flask", "flask", "Straße", "STRASSE", "d")]), max_size=40)
DIGESTS = st.fixed_dictionaries({**{name: WORDS for name in LIST_LIMITS}, PROGRESS: st.sampled_from(["", "10%", "90%"])})
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=35) | st.dictionaries(st.sampled_from([*DIGEST_KEYS, "x"]), inner, max_size=6),
    max_leaves=60,
)


@pytest.mark.parametrize(
    "response",
    [
        json.dumps(GOOD),
        f"```json\n{json.dumps(GOOD, indent=1)}\n```",
        f"```\n{json.dumps(GOOD)}\n```",
        f"```json {json.dumps(GOOD)} ```",
        f"Here is the digest:\n```json\n{json.dumps(GOOD)}\n```\nAnything else?",
        f"Here it is: {json.dumps(GOOD)} - done.",
        json.dumps({**GOOD, "extra": 1}),
        json.dumps({"tools_used": ["pip"], PROGRESS: "60%"}),
    ],
)
def test_answers_are_read(response: str) -> None:
    """Fences and prose around the object go; keys beyond the five go; missing ones are empty."""
    assert BUILDER.parse_digest_response(response) == GOOD


@pytest.mark.parametrize(
    "response",
    [
        "",
        "  ",
        "no json here",
        "{not json}",
        '{"tools_used": ["pip"',
        '{"tools_used": ["pip"],}',
        '{"tools_used": ["pip"], ...}',
        '{"tools_used": NaN}',
        "I'm sorry, but I can't help with that.",
        '["a", "list"]',
        '"text"',
        "42",
        "null",
        "[" * 100_000,
        '{"a":' * 5_000,
        "9" * 5_000,
    ],
)
def test_what_is_no_object_gives_the_empty_digest(response: str) -> None:
    """003 "Error Handling": malformed JSON and JSON that is no object, without an exception and without a guess."""
    assert BUILDER.parse_digest_response(response) == EMPTY_DIGEST


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ("pip", ["pip"]),
        (7, ["7"]),
        ({"name": "pip"}, ['{"name": "pip"}']),
        (["pip", 7, None, "", "  "], ["pip", "7"]),
        ([["a"], {"b": 1}], ['["a"]', '{"b": 1}']),
        (None, []),
        ("", []),
        ([], []),
    ],
)
def test_lists_are_lists_of_text(value: object, items: list[str]) -> None:
    """003 "Error Handling": what is no list becomes its one element; nothing stays nothing."""
    assert BUILDER.parse_digest_response(json.dumps({"tools_used": value}))["tools_used"] == items


@pytest.mark.parametrize(
    ("value", "text"), [("60%", "60%"), (60, "60"), (0.6, "0.6"), (None, ""), (["a"], '["a"]'), ({"p": 1}, '{"p": 1}')]
)
def test_progress_is_text(value: object, text: str) -> None:
    """003 "Error Handling": `progress_toward_goal` is always text."""
    assert BUILDER.parse_digest_response(json.dumps({PROGRESS: value}))[PROGRESS] == text


@pytest.mark.parametrize(("name", "cap"), [("key_decisions", 20), ("tools_used", 30), ("errors_encountered", 15), ("open_questions", 10)])
def test_lists_are_capped(name: str, cap: int) -> None:
    """The first items of an answer stay; the prompt asks for the most important first."""
    items = [f"item {n}" for n in range(cap + 5)]
    assert BUILDER.parse_digest_response(json.dumps({name: items}))[name] == items[:cap]


def test_nobody_can_spoil_the_empty_digest() -> None:
    """Each failure gives a new dictionary."""
    BUILDER.parse_digest_response("")["tools_used"].append("spoiled")
    assert BUILDER.parse_digest_response("") == EMPTY_DIGEST == empty_digest()


def test_no_summaries_no_prompt() -> None:
    """003 "Error Handling": empty in, empty out; a prompt asks for 500 tokens and may lack a task."""
    assert BUILDER.build_digest_prompt([], "task") == ""
    assert "at most 500 tokens" in BUILDER.build_digest_prompt(["one"], "")


def test_merging() -> None:
    """Old items first, equal ones once in their first spelling, the new progress."""
    old = {**empty_digest(), "tools_used": ["Pip", "git"], PROGRESS: "10%"}
    new = {**empty_digest(), "tools_used": ["docker", "PIP"], PROGRESS: "60%"}
    assert BUILDER.merge_digests(old, new) == {**empty_digest(), "tools_used": ["Pip", "git", "docker"], PROGRESS: "60%"}
    assert BUILDER.merge_digests(new, empty_digest()) == new
    assert BUILDER.merge_digests({}, {}) == EMPTY_DIGEST


def test_merging_over_a_cap_drops_the_oldest() -> None:
    """A full digest still learns; of the old items those go first that the new digest does not repeat."""
    old = {**empty_digest(), "open_questions": [f"old {n}" for n in range(10)]}
    new = {**empty_digest(), "open_questions": ["new", "OLD 0"]}
    assert BUILDER.merge_digests(old, new)["open_questions"] == ["old 0", *(f"old {n}" for n in range(2, 10)), "new"]


@given(DIGESTS, DIGESTS)
@settings(max_examples=80)
def test_merging_is_idempotent_capped_and_without_doubles(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Merging the same digest again changes nothing; no list is over its cap or says the same twice; the new one is kept whole."""
    merged = BUILDER.merge_digests(old, new)
    assert BUILDER.merge_digests(merged, new) == merged == BUILDER.merge_digests(merged, merged)
    for name, cap in LIST_LIMITS.items():
        folded = [item.casefold() for item in merged[name]]
        assert len(folded) == len(set(folded)) <= cap
        assert {item.casefold() for item in new[name][:cap]} <= set(folded)
        assert set(merged[name]) <= {*old[name], *new[name]}


@given(JUNK, JUNK)
@settings(max_examples=80)
def test_whatever_comes_a_digest_goes(first: Any, second: Any) -> None:
    """Any JSON at all is read and merged into the five keys with their types, within their caps, without an exception."""
    read = BUILDER.parse_digest_response(json.dumps(first))
    for digest in (read, BUILDER.merge_digests(first, second), BUILDER.merge_digests(read, second)):
        assert set(digest) == DIGEST_KEYS and isinstance(digest[PROGRESS], str)
        for name, cap in LIST_LIMITS.items():
            assert len(digest[name]) <= cap and all(isinstance(item, str) and item for item in digest[name])
