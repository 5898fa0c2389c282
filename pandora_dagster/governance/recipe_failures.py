"""Failures by recipe and cause: halts, failed calls, gates, retries, answers sent back, corrections (000 section 5.5).

The groups and their examples are for the editor of the prompt.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.recipe_governance import Correction
from pandora_dagster.contracts.recipe_schema import CallCase, Expectation, RecipeTest
from pandora_dagster.errors import InputError
from pandora_dagster.governance.call_metrics import TurnOutcome
from pandora_dagster.phases.flow.phase_spec import PhaseRole
from pandora_dagster.phases.flow.phase_table import phase_in_role

_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure of one call."""

    recipe: str
    version: str
    cause: str
    """`halted: schema_violation`, `failed`, `gate: evidence_required`, `retried`, `sent back`, `corrected`, `nothing found`."""
    at: str
    call_id: str = ""
    turn: str = ""
    message: str = ""
    """The error, the reason, or the user's own words."""


@dataclass(slots=True)
class FailureGroup:
    """All failures of one recipe version with one cause; a few of them as examples, the newest."""

    recipe: str
    version: str
    cause: str
    count: int = 0
    examples: list[Failure] = field(default_factory=list[Failure])

    def add(self, failure: Failure) -> None:
        self.count += 1
        self.examples = sorted([*self.examples, failure], key=lambda one: one.at, reverse=True)[:_EXAMPLES]


def find_failures(
    records: Iterable[CallRecord],
    interventions: Sequence[Intervention],
    corrections: Sequence[Correction],
    outcome: Callable[[CallRecord], TurnOutcome | None],
) -> Iterator[Failure]:
    """Yield each failure once: a call that halted a turn is reported by its intervention only."""
    halted = {one.call_id for one in interventions if one.call_id}
    yield from (
        Failure(i.recipe, i.recipe_version, f"halted: {i.type}", i.created_at, i.call_id, _turn_name(i.user_id, i.turn_id), i.message)
        for i in interventions
        if i.recipe
    )
    yield from (
        Failure(c.recipe, c.recipe_version, "corrected", c.at, c.call_id, _turn_name(c.user_id, c.turn_id), c.said) for c in corrections
    )
    for record in records:
        if record.call_id not in halted:
            yield from _record_failures(record, outcome(record))


def group_failures(failures: Iterable[Failure]) -> tuple[FailureGroup, ...]:
    """Group failures by recipe, version and cause, the most frequent first."""
    groups: dict[tuple[str, str, str], FailureGroup] = {}
    for one in failures:
        key = (one.recipe, one.version, one.cause)
        groups.setdefault(key, FailureGroup(*key)).add(one)
    return tuple(sorted(groups.values(), key=lambda group: (-group.count, group.recipe, group.version, group.cause)))


def _record_failures(record: CallRecord, outcome: TurnOutcome | None) -> Iterator[Failure]:
    turn = _turn_name(record.user_id, record.turn_id)

    def failure(cause: str, message: str) -> Failure:
        return Failure(record.recipe, record.recipe_version, cause, record.timestamp, record.call_id, turn, message)

    failed = [gate for gate, passed in record.gates.items() if not passed]
    yield from (failure(f"gate: {gate}", record.error) for gate in failed)
    if not record.success and not failed:
        yield failure("failed", record.error)
    if record.success and record.retries:
        yield failure("retried", f"{record.retries} retries before it passed")
    if record.answered is False:
        yield failure("nothing found", "the answer says only that nothing was found, and was given sources")
    if outcome is not None and outcome.sent_back and record.phase == phase_in_role(PhaseRole.ANSWER):
        yield failure("sent back", "the validator asked for another answer")


def _turn_name(user: str, turn: str) -> str:
    return f"{user}:{turn}" if turn else ""


_LONGEST_MESSAGE = 300
"""Characters of a message that a line shows."""


def failure_brief(recipe: str, groups: Sequence[FailureGroup]) -> str:
    """Render a brief in Markdown: causes with their counts, and the newest examples of each."""
    if not groups:
        return f"# {recipe}\n\nNone of its calls failed.\n"
    return f"# {recipe}\n" + "".join(_section(group) for group in groups)


def _section(group: FailureGroup) -> str:
    lines = "".join(f"- {line}\n" for line in _examples(group))
    return f"\n## {group.cause}: {group.count} ({group.version or 'no version'})\n\n{lines}"


def _examples(group: FailureGroup) -> Iterator[str]:
    for one in group.examples:
        message = " ".join(one.message.split())
        where = ", ".join(part for part in (one.turn, one.call_id) if part)
        yield f"{one.at} {where}: {message if len(message) <= _LONGEST_MESSAGE else f'{message[: _LONGEST_MESSAGE - 3]}...'}"


def recipe_test_from_call(case: CallCase, *, name: str, facts: Sequence[str] = (), lacks: Sequence[str] = ()) -> RecipeTest:
    """Make a test from a stored call: the answer passes the gates, contains the facts, and lacks the texts of `lacks`."""
    expect = tuple(Expectation.model_validate({"lacks": text}) for text in lacks)
    try:
        plain = case.model_dump(exclude_defaults=True)
        schema: dict[str, object] | None = None if facts or lacks else {}
        return RecipeTest.model_validate({**plain, "name": name, "facts": tuple(facts), "expect": expect, "answer_schema": schema})
    except ValueError as error:
        raise InputError(f"test of {name}: {error}") from error
