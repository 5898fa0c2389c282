"""Model answers by output format."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.errors import BadAnswerError
from pandora_dagster.execution.call.answer_parser import is_refusal, read_answer, strings

JSON, MARKDOWN, YAML, TEXT = OutputFormat.JSON, OutputFormat.MARKDOWN, OutputFormat.YAML, OutputFormat.TEXT
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('  \n{"a": "```"}\n', {"a": "```"}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Here it is:\n```\n{"a": [1, 2]}\n```\nAnything else?', {"a": [1, 2]}),
        ('As [1] says: {"a": {"b": 2}} - done.', {"a": {"b": 2}}),
        ('{"a": 1,}', {"a": 1}),
        ("{'a': True}", {"a": True}),
        ('{"a": "x" "b": 2}', {"a": "x", "b": 2}),
    ],
)
def test_reads_an_object_out_of_what_models_write(text: str, value: object) -> None:
    """Strict JSON, fenced JSON, JSON in prose and small slips all give the object."""
    assert read_answer(text, JSON) == value


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        ("", "stop", "empty"),
        (" \n\t", "stop", "empty"),
        ("Sure, I would plan a search.", "stop", "no JSON"),
        ("I'm sorry, but I can't help with that.", "stop", "refusal"),
        ('{"a": {"b": 1}, "c": "half a sen', "stop", "stops in the middle"),
        ('```json\n{"a": [1, 2', "stop", "stops in the middle"),
        ('{"a": 1}', "length", "output limit"),
        ('{"a": 1}', "abort", "aborted"),
        ('["a"]', "stop", "list instead of an object"),
        ('"a"', "stop", "str instead of an object"),
        ("{}}}{", "stop", "not JSON"),
        ('{"a": NaN', "stop", "stops in the middle"),
        ("[" * 100_000, "stop", "stops in the middle"),
        ("[" * 100_000 + "]" * 100_000, "stop", "answer"),
    ],
)
def test_says_what_is_wrong_with_a_json_answer(text: str, reason: str, said: str) -> None:
    """Every kind of bad JSON answer is a BadAnswerError that names its kind and can be retried."""
    with pytest.raises(BadAnswerError, match=said) as raised:
        read_answer(text, JSON, finish_reason=reason)
    assert raised.value.retryable


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=5))
@settings(max_examples=60)
def test_every_object_comes_back_whatever_stands_around_it(value: dict[str, object]) -> None:
    """Written plainly, in a fence or indented, an object reads back as itself."""
    plain = json.dumps(value)
    for text in (plain, f"```json\n{plain}\n```", json.dumps(value, ensure_ascii=False, indent=2)):
        assert read_answer(text, JSON) == value


@given(st.dictionaries(st.text(max_size=8), VALUES, min_size=1, max_size=5), st.data())
@settings(max_examples=60)
def test_a_cut_object_is_never_completed(value: dict[str, object], data: st.DataObject) -> None:
    """An object cut anywhere is refused: what is missing can not be guessed."""
    plain = json.dumps(value)
    cut = plain[: data.draw(st.integers(1, len(plain) - 1))]
    with pytest.raises(BadAnswerError):
        read_answer(cut, JSON)


@given(st.text(max_size=300))
@settings(max_examples=100)
def test_any_text_gives_a_value_or_a_bad_answer(text: str) -> None:
    """No text makes the reader raise anything but BadAnswerError."""
    for output_format in OutputFormat:
        try:
            read_answer(text, output_format)
        except BadAnswerError as error:
            assert str(error).startswith("answer")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, y]", {"a": 1, "b": ["x", "y"]}),
        ("```yaml\na: 2026-01-04\n```", {"a": "2026-01-04"}),
    ],
)
def test_reads_yaml_with_json_types_only(text: str, value: object) -> None:
    """YAML gives a mapping of JSON's types; a date stays text."""
    assert read_answer(text, YAML) == value


@pytest.mark.parametrize("text", ["just a sentence", "a: [1", "a: &x [1]\nb: *x", "- 1\n- 2", "a: !!python/object:os.system x"])
def test_refuses_yaml_that_is_no_plain_mapping(text: str) -> None:
    """Sentences, broken YAML, aliases, lists and object tags are no answers."""
    with pytest.raises(BadAnswerError):
        read_answer(text, YAML)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("## Answer\n\nIt is [1].\n", "## Answer\n\nIt is [1]."),
        ("```markdown\n## Answer\n\n```py\nx\n```\n\ndone\n```", "## Answer\n\n```py\nx\n```\n\ndone"),
        ("```python\nprint(1)\n```", "```python\nprint(1)\n```"),
        ("```markdown\na\n```\n\n```py\nb\n```", "```markdown\na\n```\n\n```py\nb\n```"),
        ("I cannot find it in the documents.", "I cannot find it in the documents."),
        ("I'm sorry, I can't change it: the fare forbids that [1].", "I'm sorry, I can't change it: the fare forbids that [1]."),
    ],
)
def test_markdown_stays_what_it_is_but_for_a_fence_around_all_of_it(text: str, value: str) -> None:
    """Only a markdown fence around the whole answer is taken off."""
    assert read_answer(text, MARKDOWN) == value


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, I can't",
        "I’m sorry, but I can’t assist with that request.",
        "I am very sorry, but I am unable to do this.",
        "Sorry, I cannot help with that.",
        "I cannot assist with this.",
        "As an AI language model, I have no access.",
        "Unfortunately, I can't comply.",
    ],
)
def test_knows_a_refusal(text: str) -> None:
    """Usual refusals are bad answers in every format."""
    assert is_refusal(text)
    for output_format in OutputFormat:
        with pytest.raises(BadAnswerError, match="refusal"):
            read_answer(text, output_format)


@pytest.mark.parametrize(
    "text", ["Sorry to hear that! Your flight [1] is on time.", "I can't find your booking.", "You can't check in yet."]
)
def test_an_honest_negative_is_no_refusal(text: str) -> None:
    """An answer that says what the documents lack, or that cites, is an answer."""
    assert read_answer(text, TEXT) == text


def test_finds_every_string() -> None:
    """Strings at any depth are found, keys and numbers left out."""
    assert list(strings({"a": ["x", {"b": "y"}], "c": 1, "d": None})) == ["x", "y"]
