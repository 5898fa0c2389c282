"""One kind of background: what each call of SYNTHESIS gets although no plan names it, such as the session's window and the known facts."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pandora_dagster.contracts.model_calls import InputDocument, Source
from pandora_dagster.phases.gather.section2 import LoadedSource


def _no_facts(omitted: Collection[str]) -> dict[str, Any]:
    """Nothing to report."""
    return {}


@dataclass(frozen=True, slots=True)
class Background:
    """The background of one call."""

    documents: tuple[InputDocument, ...] = ()
    """One with the name of a source's document continues it; the others precede the documents of sources."""
    cited: tuple[Source, ...] = ()
    left_out: tuple[str, ...] = ()
    facts: Callable[[Collection[str]], dict[str, Any]] = _no_facts
    """What the phase reports of it; takes the names of the items that did not fit the call."""
    reported: frozenset[str] = frozenset()
    """Names of the items of which `facts` reports that they did not fit."""


class BackgroundSource(Protocol):
    """A source that chooses its records by itself, after those that the plan names are loaded."""

    def reserved_tokens(self) -> int:
        """Tokens of the pack that the source takes whatever else is loaded."""
        ...

    async def background(self, loaded: Sequence[LoadedSource], cited: Sequence[Source], room: int) -> Background:
        """The background beside the `loaded` records, which have at most `room` tokens together with it.

        `cited`: all sources so far; the labels of new ones follow theirs. Raises DocumentError for a damaged record."""
        ...


def next_label(cited: Sequence[Source]) -> int:
    """The first label after those of `cited`."""
    return max((int(source.label) for source in cited), default=0) + 1
