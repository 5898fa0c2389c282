"""Forms of words behind hints: no hint, no finding."""

import re
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from typing import Any

import pytest

from pandora_dagster.compression.condense import dialogue
from pandora_dagster.compression.facts import fact_statements, retractions
from pandora_dagster.compression.judge import altered_sentences
from pandora_dagster.compression.words.hinted_patterns import HintedPattern, hinted

_PARSER: Any = import_module("re._parser")
_SIGNS: Any = import_module("re._constants")
_ANYTHING = "\0"
_FORMS = {
    name: form
    for module in (retractions, dialogue, altered_sentences, fact_statements)
    for name, form in vars(module).items()
    if isinstance(form, HintedPattern)
}


def _written(tree: Any) -> set[str]:
    """What a parsed form may find, in small letters: every choice written out, with one sign for all that is not literal."""
    return {"".join(parts) for parts in product(*(_one(kind, value) for kind, value in tree))}


def _one(kind: Any, value: Any) -> set[str]:
    if kind is _SIGNS.LITERAL:
        return {chr(value).lower()}
    if kind is _SIGNS.IN:
        plain = all(k is _SIGNS.LITERAL for k, _ in value)
        return {chr(v).lower() for _, v in value} if plain else {_ANYTHING}
    if kind is _SIGNS.BRANCH:
        return set[str]().union(*(_written(branch) for branch in value[1]))
    if kind is _SIGNS.SUBPATTERN:
        return _written(value[-1])
    if kind is _SIGNS.ASSERT:
        return {_ANYTHING + part + _ANYTHING for part in _written(value[1])}
    if kind in (_SIGNS.AT, _SIGNS.ASSERT_NOT):
        return {""}
    if kind in (_SIGNS.MAX_REPEAT, _SIGNS.MIN_REPEAT, _SIGNS.POSSESSIVE_REPEAT):
        least, most, inner = value
        once = _written(inner) if least or most == 1 else {_ANYTHING}
        return {part + (_ANYTHING if most > 1 else "") for part in once} | (set() if least else {""})
    return {_ANYTHING}


def _unhinted(form: HintedPattern) -> Iterator[str]:
    for text in _written(_PARSER.parse(form.form.pattern, form.form.flags)):
        if not any(hint in text for hint in form.hints):
            yield text.replace(_ANYTHING, "\u2026")


@pytest.mark.parametrize("name", sorted(_FORMS))
def test_everything_a_form_finds_has_one_of_its_hints(name: str) -> None:
    assert sorted(_unhinted(_FORMS[name])) == []


def test_a_choice_without_a_hint_is_seen() -> None:
    form = hinted(re.compile(r"\b(?:agreed|(?:has|was) (?:been )?settled|go[nd]e)(?= by|\.)"), "agree|been|done")
    assert {text.strip("\u2026").removesuffix("\u2026 by").rstrip("\u2026.") for text in _unhinted(form)} == {
        "has settled",
        "was settled",
        "gone",
        "gode",
    }


def test_a_form_is_found_in_any_letters() -> None:
    form = hinted(re.compile(r"\bagreed\b", re.IGNORECASE), "agree")
    assert form.search("They AGREED on it.")
    assert not form.search("They disagree on it.")
    assert form.without("They agreed on it.") == "They   on it."
