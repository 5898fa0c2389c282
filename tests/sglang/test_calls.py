"""Single calls against the real server: plain, streamed, constrained by a schema; and what it refuses."""

import itertools
import json
import re
from typing import Any

import pytest

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.model_calls import ModelAnswer, Part
from pandora_dagster.errors import BadAnswerError, ModelRejectedError
from pandora_dagster.runtime.sglang.sglang_runtime import SglangRuntime
from tests.runtime.sglang_packs import endpoints, pack, run
from tests.sglang.real_servers import CONTEXT, RealSglang

SLOW_S = 120
"""Far over what a call takes: nothing here is about speed."""
_CALLS = itertools.count(1)
"""Each call has an id of its own, as everywhere: the server ends a gone client's request by its id, some time later."""
FREE = {"output_format": OutputFormat.MARKDOWN, "output_schema": None, "max_output_tokens": 2_000}


YES = {"output_schema": {"enum": ["yes", "no"]}}


def ask(server: RealSglang, on_words: Any = None, *, message: Any = None, **changes: Any) -> ModelAnswer:
    """One call of a pack with these changes; `told` changes its layer in `runtime.yaml`."""

    async def work() -> ModelAnswer:
        wanted = {"model": server.model, "context_length": CONTEXT, **(message or {})}
        runtime = SglangRuntime(endpoints(server.base_url, **wanted), keys={})
        try:
            return await runtime.complete(
                pack(call_id=f"call-{next(_CALLS)}", temperature=1.0, **changes), timeout_s=SLOW_S, on_words=on_words
            )
        finally:
            await runtime.aclose()

    return run(work)


def usable(server: RealSglang, heard: list[str] | None = None, *, message: Any = None, **changes: Any) -> ModelAnswer:
    """An answer of a random model, which may say nothing or too much: then it is asked again, as a recipe's gates would."""
    for _ in range(6):
        if heard is not None:
            heard.clear()
        try:
            return ask(server, None if heard is None else heard.append, message=message, **changes)
        except BadAnswerError as error:
            if not re.search("an empty answer|the answer was cut", str(error)):
                raise
    raise AssertionError("6 unusable answers in a row: expected fewer than one in ten to be so")


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("streamed", [True, False])
def test_free_text(server: RealSglang, chat: bool, streamed: bool) -> None:
    """An answer comes to its end, with and without a chat template, in one body or word by word, and all its tokens are counted."""
    heard: list[str] = []
    answer = usable(server, heard if streamed else None, message={"chat": chat}, **FREE)
    assert (answer.finish_reason, answer.runtime, answer.model) == ("stop", "sglang", "tiny")
    assert answer.text.strip() and answer.usage.prompt > 10 and answer.usage.output > 0 and answer.latency_ms > 0
    if streamed:
        assert "".join(heard) == answer.text
        assert len(heard) > 1 or answer.usage.output <= 2, "a random model may say one word and end"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_schema_holds(server: RealSglang, streamed: bool) -> None:
    """A constrained answer is JSON of the asked shape, however it travels."""
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["decision", "confidence", "since", "topics", "note"],
        "properties": {
            "decision": {"enum": ["PROCEED", "CLARIFY"]},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "since": {"type": "string", "format": "date"},
            "topics": {"type": "array", "minItems": 2, "maxItems": 3, "items": {"enum": ["chair", "desk"]}},
            "note": {"anyOf": [{"$ref": "#/$defs/note"}, {"type": "null"}]},
        },
        "$defs": {"note": {"type": "object", "required": ["n"], "additionalProperties": False, "properties": {"n": {"type": "integer"}}}},
    }
    words: list[str] = []
    answer = usable(server, words if streamed else None, output_schema=schema, max_output_tokens=500)
    result = json.loads(answer.text)
    assert set(result) == set(schema["required"]) and 0 <= result["confidence"] <= 1 and 2 <= len(result["topics"]) <= 3
    assert not streamed or "".join(words) == answer.text


def test_a_model_answers_json_without_thinking(server: RealSglang) -> None:
    """The answer is all there is."""
    answer = usable(server, max_output_tokens=400)
    assert set(json.loads(answer.text)) == {"answer"}


def test_the_shared_prefix_comes_from_the_cache(server: RealSglang) -> None:
    """The second call of a recipe finds all that both share in the server's cache but its last token."""
    shared = Part("role", "role", "You plan with care, and say why. " * 60, 480)

    def asked(query: str) -> ModelAnswer:
        return ask(server, parts=(shared, Part("query", "query", query, 4)), **YES)

    asked("What is first?")
    second = asked("And what comes after that?")
    alone = ask(server, parts=(Part("query", "query", "And what comes after that?", 8),), **YES)
    assert second.usage.cached >= 0.98 * (second.usage.prompt - alone.usage.prompt)


def test_an_answer_over_its_budget_is_cut_and_said(server: RealSglang) -> None:
    """Cut JSON is a bad answer, never a result."""
    with pytest.raises(BadAnswerError, match="the answer was cut after"):
        ask(server, output_schema={"type": "array", "minItems": 50, "items": {"type": "integer"}}, max_output_tokens=20)


TOO_MUCH = Part("document", "context.md", "The chair and the desk. " * 7_000, 42_000)
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "prompt over the context": ({"parts": (TOO_MUCH,)}, "is longer than the model's context length"),
    "prompt and answer over the context": ({"max_output_tokens": CONTEXT}, "exceeds the model's maximum context length"),
    "a schema that is none": ({"output_schema": {"type": "banana"}}, "Failed to compile json grammar"),
    "a reference to nowhere": ({"output_schema": {"$ref": "#/$defs/nope"}}, "Failed to compile json grammar"),
}


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("case", WRONG)
def test_what_the_server_refuses(server: RealSglang, case: str, streamed: bool) -> None:
    """A request that can never succeed is rejected with the server's own reason, and is not retried."""
    changes, result = WRONG[case]
    with pytest.raises(ModelRejectedError) as caught:
        ask(server, (lambda _: None) if streamed else None, **changes)
    assert "status 400" in str(caught.value) and result in str(caught.value) and not caught.value.retryable
    assert str(caught.value).startswith(f"MIND at {server.base_url}: ")


def test_any_model_name_is_taken(server: RealSglang) -> None:
    """Why the names are checked at the start: a request for another model is answered as if it were there."""
    assert ask(server, message={"model": "larger"}, **YES).model == "larger"


@pytest.mark.parametrize("word", ["uniqueItems", "multipleOf"])
def test_keywords_that_the_grammar_refuses_never_reach_it(server: RealSglang, word: str) -> None:
    """The server refuses them raw; through the runtime the same schema is answered."""
    part = {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 2, "uniqueItems": True}
    number = {"type": "integer", "minimum": 0, "maximum": 9, "multipleOf": 2}
    schema = {"type": "object", "properties": {"a": part if word == "uniqueItems" else number}, "required": ["a"]}
    raw = {"type": "json_schema", "json_schema": {"name": "raw", "schema": schema}}
    message = {"model": "tiny", "max_tokens": 50, "messages": [{"role": "user", "content": "Hi"}], "response_format": raw}
    status, result = server.post("/v1/chat/completions", message)
    assert status == 400 and "grammar" in result
    assert "a" in json.loads(usable(server, output_schema=schema, max_output_tokens=300).text)


def test_an_all_of_is_merged_and_holds(server: RealSglang) -> None:
    """The grammar ignores an `allOf` of several branches in silence; what is sent has none, and its parts hold."""
    schema = {
        "allOf": [
            {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"]},
        ]
    }
    result = json.loads(usable(server, output_schema=schema, max_output_tokens=400).text)
    assert result["a"] == "x" and isinstance(result["b"], bool)


def test_bounds_of_length_are_left_to_us(server: RealSglang) -> None:
    """Strings may hold line breaks and quotes although the recipe bounds them: what is sent has no bound, so they come escaped."""
    text = {"type": "string", "minLength": 1, "maxLength": 4_000, "pattern": "^[^x]*$"}
    schema = {"type": "array", "minItems": 20, "maxItems": 20, "items": text}
    result = json.loads(usable(server, output_schema=schema, max_output_tokens=4_000).text)
    assert len(result) == 20
