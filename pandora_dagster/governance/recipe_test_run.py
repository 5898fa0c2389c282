"""Runs the tests of a recipe on one version of it, and reports them as JUnit XML."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from jsonschema import Draft202012Validator

from pandora_dagster.contracts.recipe_schema import Expectation, LoadedRecipe, RecipeTest
from pandora_dagster.documents.citations import cited_labels
from pandora_dagster.execution.call.answer_parser import strings
from pandora_dagster.governance.dry_run import DryRunExecutor, DryRunResult

_STEP = re.compile(r"([A-Za-z_]\w*)|\[(\d+)\]")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class RecipeTestOutcome:
    """The outcome of one test of one version. It passed where `faults` is empty; each fault says what was found and expected."""

    recipe: str
    version: str
    test: str
    faults: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        return not self.faults


async def run_recipe_tests(loaded: LoadedRecipe, tests: Sequence[RecipeTest], executor: DryRunExecutor) -> tuple[RecipeTestOutcome, ...]:
    """Run each test on this version, in order."""
    executor.select_version(loaded)
    outcomes: list[RecipeTestOutcome] = []
    for test in tests:
        done = await executor.run_case(test)
        seconds = done.record.latency_ms / 1_000 if done.record else 0.0
        outcomes.append(RecipeTestOutcome(loaded.path, loaded.version, test.name, tuple(find_faults(test, done)), seconds))
    return tuple(outcomes)


def find_faults(test: RecipeTest, done: DryRunResult) -> Iterator[str]:
    """Why a test fails: a failed call, a gate, an unmet expectation, a missing fact."""
    if done.result is None:
        yield f"the call failed: {done.failure}"
        return
    yield from (f"gate {v.gate}: {v.reason}: expected it passed" for v in done.result.verdicts if not v.passed)
    parsed, text = done.result.parsed, "\n".join(strings(done.result.parsed))
    if test.answer_schema is not None:
        validator: Any = Draft202012Validator(dict(test.answer_schema))  # half-typed library
        yield from (f"answer_schema: {fault.json_path}: {fault.message}" for fault in validator.iter_errors(parsed))
    for expectation in test.expect:
        yield from unmet_expectations(expectation, parsed)
    yield from (f"fact {fact!r} is not in the answer: expected it there" for fact in test.facts if fact not in text)


def unmet_expectations(expectation: Expectation, parsed: object) -> Iterator[str]:
    """Why an expectation is not met; nothing where it is."""
    found, where = _value_at(parsed, expectation.field), expectation.field or "answer"
    if found is _MISSING:
        yield f"{where}: missing: expected {_expectation_text(expectation)}"
    elif not _holds(expectation, found):
        yield f"{where}: {_short_value(found)}: expected {_expectation_text(expectation)}"


def _holds(expectation: Expectation, found: object) -> bool:
    word, wanted = expectation.assertion, getattr(expectation, expectation.assertion)
    if word == "equals":
        return found == wanted
    if word == "one_of":
        return found in wanted
    if word == "contains":
        return _contains(wanted, found)
    if word == "lacks":
        return not _contains(wanted, found)
    if word == "matches":
        return isinstance(found, str) and re.search(wanted, found) is not None
    if word == "cites":
        return isinstance(found, str) and set(wanted) <= set(cited_labels(found))
    amount = _number(found)
    return amount is not None and (amount >= wanted if word == "at_least" else amount <= wanted)


def _contains(wanted: object, found: object) -> bool:
    if isinstance(found, str):
        return str(wanted) in found
    if isinstance(found, Mapping):
        return wanted in cast("Mapping[object, object]", found)
    return isinstance(found, list) and wanted in cast("list[object]", found)


def _number(found: object) -> float | None:
    if isinstance(found, bool):
        return None
    if isinstance(found, (int, float)):
        return float(found)
    return float(len(cast("Sequence[object]", found))) if isinstance(found, (list, dict, str)) else None


def _value_at(parsed: object, field: str) -> object:
    """The value at a place such as `tasks[0].tool`, or `_MISSING`."""
    value = parsed
    for name, index in _STEP.findall(field):
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
    return text if len(text) <= 200 else f"{text[:197]}..."


def junit_xml(outcomes: Sequence[RecipeTestOutcome]) -> str:
    """Render JUnit XML: a `testsuite` for each recipe, a `testcase` for each test, its faults as one `failure`."""
    root = Element("testsuites", tests=str(len(outcomes)), failures=str(sum(not o.passed for o in outcomes)))
    for recipe, of_recipe in groupby(outcomes, key=lambda outcome: outcome.recipe):
        found = list(of_recipe)
        suite = SubElement(root, "testsuite", name=recipe, tests=str(len(found)), failures=str(sum(not o.passed for o in found)))
        for outcome in found:
            case = SubElement(suite, "testcase", classname=f"{recipe}@{outcome.version}", name=_plain(outcome.test))
            case.set("time", f"{outcome.seconds:.3f}")
            if outcome.faults:
                SubElement(case, "failure", message=_plain(outcome.faults[0])).text = _plain("\n".join(outcome.faults))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    """The text without control characters, which a model's answer may have and XML cannot."""
    return "".join(c for c in text if c in "\t\n\r" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff"))
