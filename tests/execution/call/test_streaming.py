"""Who listens to a call: words as they come, withdrawn where an attempt fails, and in the end exactly the result."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.errors import BadAnswerError, HaltError
from pandora_dagster.execution.call.answer_parser import read_answer
from pandora_dagster.execution.call.streaming import CallStream

WRITTEN = {"output_format": "markdown", "output_schema": None}
REASON = "answer: cites what was not given"


@dataclass
class Listener:
    """What it was reported, withdrawals as None; `shown` is what it has now."""

    pieces: list[str | None] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    shown: str = ""

    def on_text(self, text: str) -> None:
        assert text
        self.pieces.append(text)
        self.shown += text

    def on_withdrawal(self, reason: str) -> None:
        self.pieces.append(None)
        self.reasons.append(reason)
        self.shown = ""


def test_words_come_piece_by_piece_and_are_the_answer(rig: Any, make_recipe: Any) -> None:
    """White space at both ends is not part of it."""
    listener = Listener()
    result = rig("\n It costs $ 900.\n\n", recipe=make_recipe(**WRITTEN)).call(listener=listener)
    assert listener.pieces == ["It", " costs", " $ 90", "0."] and listener.shown == result.text


@pytest.mark.parametrize(
    "first", [("It costs 9", "length"), ("It costs 9", "broken"), "It costs 9 [7]."], ids=["cut", "broken off", "gate"]
)
def test_a_failed_attempt_is_withdrawn_before_the_next_one_speaks(rig: Any, make_recipe: Any, first: Any) -> None:
    """Never two glued answers: between them the listener is reported why the first one is none."""
    listener, gates = Listener(), {"evidence_required": True, "max_retries": 1}
    result = rig(first, "It costs $ 900.", recipe=make_recipe(**WRITTEN, quality_gates=gates)).call(
        listener=listener, query="It is $ 900. It costs $ 900."
    )
    assert listener.pieces.count(None) == 1 and listener.shown == result.text == "It costs $ 900."
    assert result.record.retries == 1 and all(listener.reasons)


def test_a_halt_leaves_nothing_told(rig: Any, make_recipe: Any) -> None:
    listener = Listener()
    with pytest.raises(HaltError):
        rig(("so", "length"), recipe=make_recipe(**WRITTEN, quality_gates={"max_retries": 1})).call(listener=listener)
    assert listener.pieces.count(None) == 2 and listener.shown == ""


def test_a_fence_around_the_whole_answer_is_not_reported(rig: Any, make_recipe: Any) -> None:
    """It is taken off once its end is seen, so the answer is reported then; a fence of code is reported as it comes."""
    wrapped, code = Listener(), Listener()
    rig("```markdown\nIt costs\nmore.\n```", recipe=make_recipe(**WRITTEN)).call(listener=wrapped)
    rig("```python\nprint(1)\n```\nso.", recipe=make_recipe(**WRITTEN)).call(listener=code)
    assert wrapped.pieces == ["It costs\nmore."]
    assert len(code.pieces) > 3 and code.shown == "```python\nprint(1)\n```\nso."


def test_a_value_is_not_reported(rig: Any) -> None:
    """JSON is for callers."""
    listener = Listener()
    rig().call(listener=listener)
    assert listener.pieces == []


def test_nobody_listens_and_nothing_is_streamed(rig: Any, make_recipe: Any) -> None:
    """The runtime is asked for words only where somebody hears them."""
    made, asked = rig("so.", recipe=make_recipe(**WRITTEN)), []
    complete = made.runtime.complete

    async def watched(pack: Any, **given: Any) -> Any:
        asked.append(given["on_words"])
        return await complete(pack, **given)

    made.runtime.complete = watched
    assert made.call().text == "so." and asked == [None]


@given(
    st.lists(st.sampled_from(["a", " ", "\n", "```", "markdown\n", "md", "`", "x [1]"]), max_size=9),
    st.sampled_from([OutputFormat.MARKDOWN, OutputFormat.TEXT]),
    st.integers(1, 7),
)
def test_what_was_reported_is_the_result(parts: list[str], output_format: OutputFormat, size: int) -> None:
    """For any text and any split: the listener ends with the text that the caller gets."""
    text, listener = "".join(parts), Listener()
    try:
        parsed = read_answer(text, output_format)
    except BadAnswerError:
        return
    hearing = CallStream(listener, output_format)
    hear = hearing.begin()
    assert hear
    for start in range(0, len(text), size):
        hear(text[start : start + size])
    hearing.finish(parsed)
    assert listener.shown == parsed


def test_a_listener_that_raises_stops_the_call(rig: Any, make_recipe: Any) -> None:
    """Its own error comes out; nothing is retried."""

    class Gone(Listener):
        def on_text(self, text: str) -> None:
            raise BrokenPipeError

    made = rig("so.", recipe=make_recipe(**WRITTEN))
    with pytest.raises(BrokenPipeError):
        asyncio.run(made.executor.call(made_request(listener=Gone())))
    assert len(made.runtime.packs) == 1


def made_request(**fields: Any) -> Any:
    from tests.execution.conftest import request

    return request(**fields)
