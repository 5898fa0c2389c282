"""The specification of one phase. `phase_table` holds one `PhaseSpec` for each phase; every other table is derived from it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from pydantic import BaseModel

from pandora_dagster.contracts.enums import SECTION_BUDGETS, TurnState
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.phases.core.phase_context import PhaseContext, PhaseOutput

PhaseFunction = Callable[[PhaseContext], Awaitable[PhaseOutput]]
Condition = Callable[[Turn], bool]
Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class PhaseRecipe:
    """A recipe that a phase runs. `name`: `{category}/{name}`, or its stem where each mode has a recipe of its own."""

    name: str
    answer: type[BaseModel] | None = None
    """The model that the phase reads the parsed answer as; None where the answer is a text."""
    documents: tuple[str, ...] = ()
    """What the phase offers to the call beside `context.md` and the files of the phases before it."""


class PhaseRole(Enum):
    """A role that one phase of the flow has for packages outside it."""

    ANSWER = "answer"
    """It writes the answer that a user may correct and the validation may send back."""
    VALIDATION = "validation"
    """It judges the answer."""
    SUMMARY = "summary"
    """It makes the summary that a saved turn is found and archived by."""


@dataclass(frozen=True, slots=True)
class PhaseSpec:
    """One phase of the flow: everything that other packages read about it.

    Adding a phase takes one spec in `PHASES`, its function, and its recipe with the prompt.
    """

    name: str
    """Also the key of its Dagster asset."""
    number: str
    """The phase of specification 000, section 9 that it belongs to, e.g. `2`; "" for none."""
    function: PhaseFunction
    description: str
    needs: tuple[str, ...] = ()
    """Phases that must have finished."""
    recipes: tuple[PhaseRecipe, ...] = ()
    """The main recipe first: its gates become asset checks. The others may run beside it."""
    section: int | None = None
    """The section of context.md that it writes."""
    files: tuple[str, ...] = ()
    """Documents that it always writes: a saved turn has those of every phase on its path."""
    condition: Condition | None = None
    """Of a branch: whether the turn takes it, read from the parsed answer of an earlier phase."""
    final_state: TurnState | None = None
    """The state of the turn once the phase finished; a phase that has one gives the turn's answer, or its question back."""
    is_follow_up: bool = False
    """True for a phase that follows a saved turn by itself: no other phase needs it, and its HALT stops no other."""
    role: PhaseRole | None = None
    gates: tuple[str, ...] = ()
    """Gates that the phase judges itself, beside those of its recipes."""
    revision: str = "1"
    """The version of the phase's code: raise it when the code changes what it writes (decision 29,
    docs/decisions/29-versions-in-dagster.md)."""

    @property
    def is_branch(self) -> bool:
        return self.condition is not None

    @property
    def has_answer(self) -> bool:
        """Whether the turn's answer, or its question back, is stored once this phase finished."""
        return self.final_state is not None

    @property
    def budget(self) -> int | None:
        """Tokens of the section that it writes; None where it writes none."""
        return None if self.section is None else SECTION_BUDGETS[self.section]

    def is_on_path(self, turn: Turn) -> bool:
        """Whether the turn runs this phase."""
        return self.condition is None or self.condition(turn)


def answer_condition(document: str, model: type[Answer], test: Callable[[Answer], bool]) -> Condition:
    """The condition of a branch: `test` on the parsed answer that an earlier phase stored as `document`.

    It holds while the document is missing: then the phase is refused because what it needs has not finished.
    """

    def holds(turn: Turn) -> bool:
        return document not in turn.files or test(model.model_validate_json(turn.files[document]))

    return holds
