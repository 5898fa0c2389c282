"""The failures of a recipe as a brief for whoever edits its prompt, and chosen calls as tests. Knows texts; changes no prompt."""

from collections.abc import Iterator, Sequence

from pandora_dagster.contracts.recipe_tests import CallCase, Expectation, RecipeTest
from pandora_dagster.errors import InputError
from pandora_dagster.governance.failures import FailureGroup

_LONGEST_MESSAGE = 300
"""Characters of what was said that a line shows."""


def failure_brief(recipe: str, groups: Sequence[FailureGroup]) -> str:
    """Markdown: causes with their number, the newest examples of each under it."""
    if not groups:
        return f"# {recipe}\n\nNothing went wrong with its calls.\n"
    return f"# {recipe}\n" + "".join(_section(group) for group in groups)


def _section(group: FailureGroup) -> str:
    lines = "".join(f"- {line}\n" for line in _examples(group))
    return f"\n## {group.cause}: {group.count} ({group.version or 'no version'})\n\n{lines}"


def _examples(group: FailureGroup) -> Iterator[str]:
    for one in group.examples:
        said = " ".join(one.said.split())
        where = ", ".join(part for part in (one.turn, one.call_id) if part)
        yield f"{one.at} {where}: {said if len(said) <= _LONGEST_MESSAGE else f'{said[: _LONGEST_MESSAGE - 3]}...'}"


def recipe_test_from_call(case: CallCase, *, name: str, facts: Sequence[str] = (), lacks: Sequence[str] = ()) -> RecipeTest:
    """A kept call as a test of its recipe: it passes the gates, says the facts, and says nothing of what it must lack."""
    expect = tuple(Expectation.model_validate({"lacks": text}) for text in lacks)
    try:
        plain = case.model_dump(exclude_defaults=True)
        schema: dict[str, object] | None = None if facts or lacks else {}
        return RecipeTest.model_validate({**plain, "name": name, "facts": tuple(facts), "expect": expect, "answer_schema": schema})
    except ValueError as error:
        raise InputError(f"test of {name}: {error}") from error
