"""Research within a turn, as a port: what the tool `internet.research` asks for, and what it gets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.user.sources import Research, Visit
from pandora_dagster.contracts.web.research_depth import Depth
from pandora_dagster.contracts.web.research_run import ResearchRun


@dataclass(frozen=True, slots=True)
class TurnQuestion:
    """What a turn wants to know."""

    turn: TurnKey
    question: str
    depth: Depth = Depth.STANDARD
    visits: tuple[str, ...] = ()
    """Ids of visits whose pages are visited again in place of a search; none for a search."""
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    """Address -> the text of its page as the user gave it; "" where the user says to go on without."""


@dataclass(frozen=True, slots=True)
class TurnFindings:
    """What was found out: a run with its visits, or the stored research that is still fresh."""

    run: ResearchRun | None
    """None where stored research answers."""
    visits: tuple[Visit, ...] = ()
    """The stored records of the pages that were read or, of stored research, of the pages that it names."""
    research: Research | None = None
    """None where nothing was found."""
    earlier: tuple[Visit, ...] = ()
    """The newest older visit of each address of `visits` that has one."""
    outage: str = ""
    """Where stored research answers because pages could not be read: its age, and why they could not."""
    person_at: str = ""
    """The address of the page that wants a login or a captcha, where nothing else answers."""
    pages: int = 0
    """Pages that were requested for it."""
    page_bytes: int = 0


class TurnResearcher(Protocol):
    """Answers a question within a turn."""

    async def research(self, asked: TurnQuestion, report: Callable[[str], None]) -> TurnFindings:
        """`report` receives each step as a line, and may raise to end the run, which the next call of the same turn continues.

        Raises PandoraError; HaltError where a recipe call fails for good."""
        ...

    def release(self, turn: TurnKey) -> None:
        """Delete the checkpoints of a turn that has stored what it found."""
        ...
