"""002's micro-tags: the same however the text is split, only what is the person's told, and never a word lost."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.recipes.micro_tags import (
    MAX_DISPATCH_CHARACTERS,
    TaggedAnswer,
    TaggedAnswerReader,
    parse_dispatch,
    read_tagged,
)

WHOLE = """\
<thinking>
Mode: WITNESS
UserIntensity: 7
</thinking>
<draft>
I would like us to talk on Sunday.
</draft>
<dispatch>EXPLAIN_PROCESS</dispatch>

You sound tired [1].
"""
_TAGS = ("<thinking>", "</thinking>", "<draft>", "</draft>", "<dispatch>", "</dispatch>", "<THINKING>", "</Dispatch>", "<draft >", "<b>")
_PIECES = st.sampled_from([*_TAGS, "<think", "ing>", "</", "<", ">", "GO", '{"action": "GO"}', "[1]", "two words ", "\n", "ß<", "\u212a"])
TEXTS = st.one_of(st.lists(_PIECES, max_size=14).map("".join), st.text(max_size=60))
_BLOCK = re.compile(r"<(thinking|dispatch)>(.*?)</\1>", re.IGNORECASE | re.ASCII | re.DOTALL)
_TAG = re.compile(r"</?(?:thinking|draft|dispatch)>", re.IGNORECASE | re.ASCII)


def persons_text(text: str) -> str:
    """What the person gets, told in another way: the first tag or whole block is taken out, and so on after it."""
    told, place = [], 0
    while tag := _TAG.search(text, place):
        told.append(text[place : tag.start()])
        block = _BLOCK.match(text, tag.start())
        place = block.end() if block and is_whole(block[1].lower(), block[2]) else tag.end()
    return "".join([*told, text[place:]]).strip()


def is_whole(name: str, content: str) -> bool:
    return name == "thinking" or (len(content) <= MAX_DISPATCH_CHARACTERS and parse_dispatch(content.strip()) is not None)


def in_pieces(text: str, cuts: list[int]) -> TaggedAnswer:
    reading, told, ends = TaggedAnswerReader(), "", sorted(cut % (len(text) + 1) for cut in cuts)
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        told += reading.feed(text[start:end])
    return reading.result(told + reading.finish())


def test_the_protocol_as_it_is_meant() -> None:
    """Thinking and dispatch are kept from the person; the draft is theirs, and the caller's."""
    assert read_tagged(WHOLE) == TaggedAnswer(
        text="I would like us to talk on Sunday.\n\n\n\nYou sound tired [1].",
        thinking="Mode: WITNESS\nUserIntensity: 7",
        draft="I would like us to talk on Sunday.",
        dispatch={"action": "EXPLAIN_PROCESS"},
    )


@given(TEXTS, st.lists(st.integers(0, 10_000), max_size=12))
def test_a_split_changes_nothing(text: str, cuts: list[int]) -> None:
    """Tags that are cut in two, or come letter by letter, read as they do in one piece."""
    whole = read_tagged(text)
    assert in_pieces(text, cuts) == whole
    assert in_pieces(text, list(range(len(text)))) == whole


@given(TEXTS)
def test_nothing_outside_a_whole_block_is_lost(text: str) -> None:
    """Unclosed, nested, unknown and stray tags: every word beside them is told, and no tag that stood in the text."""
    assert read_tagged(text).text == persons_text(text)


@given(st.lists(st.sampled_from(["a", "b\n", " c"]), max_size=6), st.integers(1, 5))
def test_what_may_be_told_is_told_at_once(words: list[str], size: int) -> None:
    """Plain text is never held back; only what may still become a tag is."""
    reading, text = TaggedAnswerReader(), "".join(words)
    assert "".join(reading.feed(text[i : i + size]) for i in range(0, len(text), size)) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<thinking>a</thinking>b", "b"),
        ("<thinking>open, and no end", "open, and no end"),
        ("<thinking>a <dispatch>GO</dispatch> b", "a  b"),
        ("<thinking>a<thinking>b</thinking>c</thinking>d", "cd"),
        ("<thinking>a<draft>b</draft></thinking>c", "c"),
        ("x</thinking>y", "xy"),
        ("<dispatch>not an action</dispatch>", "not an action"),
        ('<dispatch>{"action": </dispatch>!', '{"action": !'),
        ("a <b>bold</b> <think>x</think>", "a <b>bold</b> <think>x</think>"),
        ("3 < 4 and <", "3 < 4 and <"),
        ("<draft>one", "one"),
    ],
)
def test_what_is_malformed_loses_no_word(text: str, told: str) -> None:
    assert read_tagged(text).text == told


@pytest.mark.parametrize(
    ("content", "action"),
    [
        ("GO", {"action": "GO"}),
        ('{"action": "GO", "to": [1]}', {"action": "GO", "to": [1]}),
        ("[1]", None),
        ("two words", None),
        ('{"a": NaN}', None),
        ("", None),
        ("[" * 3_000, None),
    ],
)
def test_an_action_is_a_word_or_an_object(content: str, action: dict[str, object] | None) -> None:
    assert parse_dispatch(content) == action


def test_a_dispatch_without_end_is_not_held_for_ever() -> None:
    """Beyond the longest action it is text, told at once."""
    reading = TaggedAnswerReader()
    reading.feed("<dispatch>")
    told = "".join(reading.feed("word ") for _ in range(MAX_DISPATCH_CHARACTERS))
    assert len(told) > MAX_DISPATCH_CHARACTERS * 4


def test_many_tags_that_are_never_closed_are_read_in_time() -> None:
    """Twice the text takes about twice as long, not four times; a dispatch of many is still read."""
    text = "<thinking><draft><dispatch>" * 40_000 + json.dumps({"action": "GO"}) + "</dispatch>"
    assert read_tagged(text).dispatch == {"action": "GO"}
