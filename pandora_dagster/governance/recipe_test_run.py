"""Runs the tests of a recipe on one version of it, and reports them as JUnit XML."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from jsonschema import Draft202012Validator

from pandora_dagster.contracts.recipe_schema import Expectation, LoadedRecipe, RecipeTest
from pandora_dagster.documents.citations import cited_labels
from pandora_dagster.execution.call.answer_parser import strings
from pandora_dagster.governance.call_metrics import counted_names, reads_prompts
from pandora_dagster.governance.dry_run import DryRunExecutor, DryRunResult

_FIELD_STEP = re.compile(r"([A-Za-z_]\w*)|\[(\d+)\]")
"""A step of a field such as `tasks[0].tool`: a name or an index."""
_MISSING = object()
_MAX_VALUE_CHARACTERS = 200
"""Characters of a value that a fault shows."""


@dataclass(frozen=True, slots=True)
class RecipeTestOutcome:
    """The outcome of one test of one version. It passed where `faults` is empty; each fault says what was found and expected."""

    recipe: str
    version: str
    test: str
    faults: tuple[str, ...]
    seconds: float
    runtime: str = ""
    """The runtime that answered."""
    model: str = ""

    @property
    def passed(self) -> bool:
        return not self.faults

    @property
    def reads_prompt(self) -> bool:
        """Whether what answered read the prompt. Otherwise the test shows schema, gates and data flow, and nothing about the prompt."""
        return reads_prompts(self.runtime)

    @property
    def answered_by(self) -> str:
        """The runtime, with its model where that has another name."""
        return self.runtime if self.model in ("", self.runtime) else f"{self.runtime} ({self.model})"


async def run_recipe_tests(loaded: LoadedRecipe, tests: Sequence[RecipeTest], executor: DryRunExecutor) -> tuple[RecipeTestOutcome, ...]:
    """Run each test on this version, in order."""
    executor.select_version(loaded)
    outcomes: list[RecipeTestOutcome] = []
    for test in tests:
        run = await executor.run_case(test)
        seconds = run.record.latency_ms / 1_000 if run.record else 0.0
        runtime, model = (run.record.runtime, run.record.model) if run.record else ("", "")
        faults = tuple(find_faults(test, run))
        outcomes.append(RecipeTestOutcome(loaded.path, loaded.version, test.name, faults, seconds, runtime, model))
    return tuple(outcomes)


def find_faults(test: RecipeTest, run: DryRunResult) -> Iterator[str]:
    """Yield why a test fails: a failed call, a gate, an unmet expectation, a missing fact."""
    if run.result is None:
        yield f"the call failed: {run.failure}"
        return
    yield from (f"gate {v.gate}: {v.reason}: expected it passed" for v in run.result.verdicts if not v.passed)
    parsed, text = run.result.parsed, "\n".join(strings(run.result.parsed))
    if test.answer_schema is not None:
        validator: Any = Draft202012Validator(dict(test.answer_schema))  # half-typed library
        yield from (f"answer_schema: {fault.json_path}: {fault.message}" for fault in validator.iter_errors(parsed))
    for expectation in test.expect:
        yield from unmet_expectations(expectation, parsed)
    yield from (f"fact {fact!r} is not in the answer: expected it there" for fact in test.facts if fact not in text)


def unmet_expectations(expectation: Expectation, parsed: object) -> Iterator[str]:
    """Yield why an expectation is not met; nothing where it is."""
    value, where = _value_at(parsed, expectation.field), expectation.field or "answer"
    if value is _MISSING:
        yield f"{where}: missing: expected {_expectation_text(expectation)}"
    elif not _is_met(expectation, value):
        yield f"{where}: {_short_value(value)}: expected {_expectation_text(expectation)}"


def _is_met(expectation: Expectation, value: object) -> bool:
    assertion, expected = expectation.assertion, getattr(expectation, expectation.assertion)
    if assertion == "equals":
        return value == expected
    if assertion == "one_of":
        return value in expected
    if assertion == "contains":
        return _contains(expected, value)
    if assertion == "lacks":
        return not _contains(expected, value)
    if assertion == "matches":
        return isinstance(value, str) and re.search(expected, value) is not None
    if assertion == "cites":
        return isinstance(value, str) and set(expected) <= set(cited_labels(value))
    amount = _amount_of(value)
    return amount is not None and (amount >= expected if assertion == "at_least" else amount <= expected)


def _contains(expected: object, value: object) -> bool:
    if isinstance(value, str):
        return str(expected) in value
    if isinstance(value, Mapping):
        return expected in cast("Mapping[object, object]", value)
    return isinstance(value, list) and expected in cast("list[object]", value)


def _amount_of(value: object) -> float | None:
    """A number as it is, the length of a list, an object or a text; None for any other value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value)
    return float(len(cast("Sequence[object]", value))) if isinstance(value, (list, dict, str)) else None


def _value_at(parsed: object, field: str) -> object:
    """The value of a field such as `tasks[0].tool`, or `_MISSING`."""
    value = parsed
    for name, index in _FIELD_STEP.findall(field):
        if name and isinstance(value, Mapping) and name in value:
            value = cast("Mapping[str, object]", value)[name]
        elif index and isinstance(value, list) and int(index) < len(cast("list[object]", value)):
            value = cast("list[object]", value)[int(index)]
        else:
            return _MISSING
    return value


def _expectation_text(expectation: Expectation) -> str:
    return f"{expectation.assertion} {_short_value(getattr(expectation, expectation.assertion))}"


def _short_value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_VALUE_CHARACTERS else f"{text[: _MAX_VALUE_CHARACTERS - 3]}..."


def answered_by(outcomes: Sequence[RecipeTestOutcome]) -> str:
    """What answered, with the number of tests: `sglang (Qwen/Qwen3-0.6B) 2`."""
    return counted_names(Counter(outcome.answered_by for outcome in outcomes if outcome.runtime))


def junit_xml(outcomes: Sequence[RecipeTestOutcome]) -> str:
    """Render JUnit XML: a `testsuite` for each recipe, a `testcase` for each test, its faults as one `failure`.

    Properties of a suite name what answered, and whether it read the prompt.
    """
    root = Element("testsuites", tests=str(len(outcomes)), failures=str(sum(not o.passed for o in outcomes)))
    for recipe, group in groupby(outcomes, key=lambda outcome: outcome.recipe):
        suite_outcomes = list(group)
        failures = sum(not outcome.passed for outcome in suite_outcomes)
        suite = SubElement(root, "testsuite", name=recipe, tests=str(len(suite_outcomes)), failures=str(failures))
        properties = SubElement(suite, "properties")
        SubElement(properties, "property", name="answered_by", value=answered_by(suite_outcomes))
        is_read = all(outcome.reads_prompt for outcome in suite_outcomes)
        SubElement(properties, "property", name="prompts_read", value="yes" if is_read else "no")
        for outcome in suite_outcomes:
            case = SubElement(suite, "testcase", classname=f"{recipe}@{outcome.version}", name=_remove_invalid_xml(outcome.test))
            case.set("time", f"{outcome.seconds:.3f}")
            if outcome.faults:
                failure = SubElement(case, "failure", message=_remove_invalid_xml(outcome.faults[0]))
                failure.text = _remove_invalid_xml("\n".join(outcome.faults))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _remove_invalid_xml(text: str) -> str:
    """The text without control characters, which a model's answer may have and XML cannot."""
    return "".join(c for c in text if c in "\t\n\r" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff"))
