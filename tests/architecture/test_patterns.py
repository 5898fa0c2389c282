"""Every regular expression of the package takes time linear in the text, whatever the text is.

The long form, with longer texts and other ends, is `tests/faults/test_pattern_growth.py`.
"""

import ast
import re

import pytest

from tests.architecture.patterns import Found, package_patterns, slow_text
from tests.architecture.sources import Source, package_sources

_SIZE, _CLOCK = 4_000, 0.002
_BUILT = {
    "contracts.recipe_schema._require_expression": "compiles the expression of a recipe's test and matches nothing",
    "documents.redaction.credentials._rule": "the rules are module constants",
    "documents.redaction.user_traces._any_case_pattern": "words, by a tree of prefixes",
    "documents.redaction.user_traces._lower_case_pattern": "words, by a tree of prefixes",
    "documents.redaction.user_traces._user_id_pattern": "an id and fixed words",
    "documents.redaction.user_traces.occurring_facts": "words, by a tree of prefixes",
    "documents.units.sentence_places._opener": "words of a language; white space follows a word only",
    "governance.recipe_test_run._is_met": "the expression of a recipe's test, written by the author of the recipe",
    "phases.gather.section2._is_whole_record": "kinds of records in one name",
    "runtime.extractive.evidence.passage_ranking._source_features": "words",
    "runtime.extractive.roles.synthesizer._source_ages": "a label in a row of a table",
    "stores.disk.record_files.__init__": "a path",
    "stores.lineage.turn_lineage._verbatim_span": "the words of a claim; white space follows a word only",
}
"""Functions that build a pattern from parts, and what keeps it linear."""


def test_every_pattern_takes_linear_time() -> None:
    patterns = package_patterns(package_sources())
    assert len(patterns) > 400
    slow = {found.where: text for found in patterns if (text := slow_text(found, _SIZE, at_most=_CLOCK, ends=("\0",)))}
    assert slow == {}


@pytest.mark.parametrize(
    "pattern", [r"^```.*?^```$", r"# +(.+?)[ \t#]*$", r"\s+\n", r"(?:\[\d\] )+$", r"a\s*b?\s*c", r"[,;]?\s+and", r"\d[\d,]* euros"]
)
def test_a_pattern_that_takes_longer_is_found(pattern: str) -> None:
    found = Found("here", re.compile(pattern, re.MULTILINE | re.DOTALL), frozenset())
    assert any(slow_text(found, _SIZE, at_most=_CLOCK, ends=("\0",)) for _ in range(3))  # times of a busy machine can hide it once


def built_patterns(source: Source) -> list[str]:
    """The functions that build a pattern from parts and repeat one without a bound."""
    functions = list(source.nodes(ast.FunctionDef, ast.AsyncFunctionDef))
    calls = {call: function for function in functions for call in ast.walk(function) if isinstance(call, ast.Call)}
    return [
        f"{source.name}.{function.name}"
        for call, function in calls.items()
        if ast.unparse(call.func).startswith("re.") and ast.unparse(call.func) != "re.escape" and call.args and _is_built(call.args[0])
    ]


def _is_built(pattern: ast.expr) -> bool:
    if isinstance(pattern, ast.Constant):
        return False
    if isinstance(pattern, ast.JoinedStr):
        return any(isinstance(part, ast.Constant) and re.search(r"[*+]|,\}", str(part.value)) for part in pattern.values)
    return True


def test_a_pattern_that_a_function_builds_is_listed() -> None:
    assert {name for source in package_sources() for name in built_patterns(source)} == set(_BUILT)
    assert built_patterns(Source("a", "def f(x):\n    return re.search(rf'{x}\\s+', '')\n")) == ["a.f"]
