"""context.md of recorded turns."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.documents.markdown import code_fence
from pandora_dagster.documents.recorded_context import recorded_answer, render_recorded_context, tool_results
from pandora_dagster.documents.sections import parse_context

_TEXTS = st.text(max_size=120) | st.sampled_from(["## 0. User Query\nx", "a\n## 5. Synthesis\n", "````\n```", "\r\n", "\\## 4. x"])


def _call(number: int, arguments: object = '{"a": 1}') -> dict[str, object]:
    return {"id": f"c{number}", "type": "function", "function": {"name": f"tool_{number}", "arguments": arguments}}


def _result(number: int, text: str) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": f"c{number}", "name": f"tool_{number}", "content": text}


@given(_TEXTS, _TEXTS.filter(lambda t: t.strip("\n")), _TEXTS)
@settings(max_examples=100)
def test_words_stand_verbatim(asked: str, answered: str, found: str) -> None:
    """Section 0 is the person's message, 4 holds the result, 5 the answer, whatever they say."""
    messages = [
        {"role": "user", "content": asked},
        {"role": "assistant", "content": None, "tool_calls": [_call(1)]},
        _result(1, found),
        {"role": "assistant", "content": answered},
    ]
    document = parse_context(render_recorded_context(messages), where="turn")
    assert document.query() == asked
    assert [s.number for s in document.sections] == [0, 4, 5]
    assert f"\n{found}\n" in document.body(4) + "\n"
    assert document.body(5) == answered.strip("\n")


def test_calls_stay_with_their_results() -> None:
    """Results stand under their own call, in the order of the calls, wherever the answers came."""
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "Looking.", "tool_calls": [_call(1), _call(2)]},
        _result(2, "second"),
        _result(1, "first"),
    ]
    one, two = tool_results(messages)
    assert one == '### Result 1: tool_1\n\nArguments: {"a": 1}\n\nResult:\n```\nfirst\n```'
    assert "second" in two
    assert recorded_answer(messages) == "Looking."


def test_a_call_without_result_and_a_result_of_an_earlier_turn_are_told() -> None:
    """Neither is lost."""
    messages = [{"role": "user", "content": "x"}, _result(9, "late"), {"role": "assistant", "content": None, "tool_calls": [_call(1)]}]
    first, late = tool_results(messages)
    assert first.endswith("No result was recorded.")
    assert late == "### Result 2: tool_9\n\nResult:\n```\nlate\n```"


def test_arguments_stand_on_one_line_and_broken_ones_verbatim() -> None:
    """Spread JSON is put on one line; what is no JSON stands in a fence."""
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [_call(1, '{\n "a": 1\n}'), _call(2, "{cut"), _call(3, {"b": 2})]},
    ]
    spread, broken, given = tool_results(messages)
    assert 'Arguments: {"a": 1}' in spread
    assert "Arguments:\n```\n{cut\n```" in broken
    assert 'Arguments: {"b": 2}' in given


def test_what_was_said_before_the_first_turn_stands_in_section_2_without_the_rules() -> None:
    """A greeting is shown with the turn that follows; the system prompt stays with the session."""
    preamble = [{"role": "system", "content": "RULES"}, {"role": "assistant", "content": "Welcome!"}]
    document = parse_context(render_recorded_context([{"role": "user", "content": "hi"}], preamble=preamble), where="turn")
    assert document.body(2) == "### Before This Turn\n\nWelcome!"
    assert "RULES" not in document.render()


def test_parts_are_rendered() -> None:
    """Text parts stand as text, other parts as their JSON."""
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}]
    assert parse_context(render_recorded_context([{"role": "user", "content": content}]), where="t").query() == (
        'look\n{"type": "image_url", "image_url": {"url": "http://x/y.png"}}'
    )


@given(st.text(alphabet="`a\n", max_size=30))
def test_a_fence_is_longer_than_any_inside(text: str) -> None:
    """No text closes its own fence."""
    lines = code_fence(text).split("\n")
    assert lines[0] == lines[-1]
    assert not any(lines[0] in line for line in lines[1:-1])
