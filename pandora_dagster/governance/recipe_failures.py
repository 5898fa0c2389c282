"""Groups the failures of recipes by cause, with examples, for the editor of the prompt (specification 000, section 5.5).

Causes are halts, failed calls, failed gates, retries, answers that found nothing in their sources, answers that the validator sent back,
and corrections by users.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import CallRecord
from pandora_dagster.contracts.recipe_governance import Correction
from pandora_dagster.contracts.recipe_schema import CallCase, Expectation, RecipeTest
from pandora_dagster.errors import InputError
from pandora_dagster.governance.call_metrics import TurnOutcome
from pandora_dagster.phases.flow.phase_spec import PhaseRole
from pandora_dagster.phases.flow.phase_table import phase_in_role

_MAX_EXAMPLES = 5
"""Examples of a group."""


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
        self.examples = sorted([*self.examples, failure], key=lambda example: example.at, reverse=True)[:_MAX_EXAMPLES]


def find_failures(
    records: Iterable[CallRecord],
    interventions: Sequence[Intervention],
    corrections: Sequence[Correction],
    outcome: Callable[[CallRecord], TurnOutcome | None],
) -> Iterator[Failure]:
    """Yield each failure once: a call that halted a turn is reported by its intervention only. A question to the user is no failure."""
    halted = {intervention.call_id for intervention in interventions if intervention.call_id}
    yield from (
        Failure(i.recipe, i.recipe_version, f"halted: {i.type}", i.created_at, i.call_id, _format_turn(i.user_id, i.turn_id), i.message)
        for i in interventions
        if i.recipe and i.type is not InterventionType.NEEDS_APPROVAL
    )
    yield from (
        Failure(c.recipe, c.recipe_version, "corrected", c.at, c.call_id, _format_turn(c.user_id, c.turn_id), c.said) for c in corrections
    )
    for record in records:
        if record.call_id not in halted:
            yield from _record_failures(record, outcome(record))


def group_failures(failures: Iterable[Failure]) -> tuple[FailureGroup, ...]:
    """Group failures by recipe, version and cause, the most frequent first."""
    groups: dict[tuple[str, str, str], FailureGroup] = {}
    for failure in failures:
        key = (failure.recipe, failure.version, failure.cause)
        groups.setdefault(key, FailureGroup(*key)).add(failure)
    return tuple(sorted(groups.values(), key=lambda group: (-group.count, group.recipe, group.version, group.cause)))


def _record_failures(record: CallRecord, outcome: TurnOutcome | None) -> Iterator[Failure]:
    turn = _format_turn(record.user_id, record.turn_id)

    def failure(cause: str, message: str) -> Failure:
        return Failure(record.recipe, record.recipe_version, cause, record.timestamp, record.call_id, turn, message)

    failed_gates = [gate for gate, passed in record.gates.items() if not passed]
    yield from (failure(f"gate: {gate}", record.error) for gate in failed_gates)
    if not record.success and not failed_gates:
        yield failure("failed", record.error)
    if record.success and record.retries:
        yield failure("retried", f"{record.retries} retries before it passed")
    if record.answered is False:
        yield failure("nothing found", "the answer says only that nothing was found, and was given sources")
    if outcome is not None and outcome.sent_back and record.phase == phase_in_role(PhaseRole.ANSWER):
        yield failure("sent back", "the validator asked for another answer")


def _format_turn(user: str, turn: str) -> str:
    return f"{user}:{turn}" if turn else ""


_MAX_MESSAGE_CHARACTERS = 300
"""Characters of a message that a line shows."""


def render_failure_brief(recipe: str, groups: Sequence[FailureGroup]) -> str:
    """Render a brief in Markdown: causes with their counts, and the newest examples of each."""
    if not groups:
        return f"# {recipe}\n\nNone of its calls failed.\n"
    return f"# {recipe}\n" + "".join(_render_group(group) for group in groups)


def _render_group(group: FailureGroup) -> str:
    lines = "".join(f"- {line}\n" for line in _example_lines(group))
    return f"\n## {group.cause}: {group.count} ({group.version or 'no version'})\n\n{lines}"


def _example_lines(group: FailureGroup) -> Iterator[str]:
    for example in group.examples:
        message = " ".join(example.message.split())
        where = ", ".join(part for part in (example.turn, example.call_id) if part)
        if len(message) > _MAX_MESSAGE_CHARACTERS:
            message = f"{message[: _MAX_MESSAGE_CHARACTERS - 3]}..."
        yield f"{example.at} {where}: {message}"


def make_recipe_test(case: CallCase, *, name: str, facts: Sequence[str] = (), lacks: Sequence[str] = ()) -> RecipeTest:
    """Make a test from a stored call: the answer passes the gates, contains the facts, and lacks the texts of `lacks`."""
    expect = tuple(Expectation.model_validate({"lacks": text}) for text in lacks)
    try:
        case_fields = case.model_dump(exclude_defaults=True)
        schema: dict[str, object] | None = None if facts or lacks else {}
        return RecipeTest.model_validate({**case_fields, "name": name, "facts": tuple(facts), "expect": expect, "answer_schema": schema})
    except ValueError as error:
        raise InputError(f"test of {name}: {error}") from error
