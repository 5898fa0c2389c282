"""The port of one kind of source that the Context Gatherer offers, loads, renders and cites (specification 004, sections 3 to 5)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Protocol, TypeVar

from pandora_dagster.contracts.compression_results import CompressionInput
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import InputDocument, Item, Source
from pandora_dagster.contracts.phase_outputs import ContentReference, GatheredContext, RetrievalPlan
from pandora_dagster.contracts.ports.measurement import TextScorer, TokenMeasure

RecordT = TypeVar("RecordT")
"""The record that a source loads."""


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """The query of one turn, with what a source needs to rank, measure and compress its records."""

    user: UserId
    text: str
    """The user's words."""
    resolved: str
    """The query with its references resolved."""
    entities: tuple[str, ...]
    reference: ContentReference | None
    now: datetime
    counter: TokenMeasure
    scores: TextScorer
    compress: Callable[[CompressionInput, int], Awaitable[str]] | None = None
    """A text within a number of tokens where a sound compression fits it, else unchanged; None where compression is off."""


@dataclass(frozen=True, slots=True)
class SourceTraits:
    """The constant properties of a source: its name, its fields and documents, its priority."""

    name: str
    """Begins the name of each of its items: `research commerce.laptop`."""
    plan_field: str
    """The field of RETRIEVAL's answer that names its records."""
    answer_field: str
    """The field of SYNTHESIS' answer that holds what was gathered from it."""
    document: str
    """The document of SYNTHESIS that carries its records."""
    priority: float
    """Priority of its items in the pack; section 2 drops items of the lowest priority first."""
    heading: str = ""
    """Precedes the records in their document."""
    is_supplementary: bool = True
    """True where its records share the token limit of supplementary sources."""
    in_plan_order: bool = False
    """True where its document keeps the order of the plan; else the items of the highest priority come first."""
    unused_fact: str = "sources_not_used"
    """The fact of the phase report that lists records of which SYNTHESIS used nothing."""


@dataclass(frozen=True, slots=True)
class SourceHeaders:
    """The headers that RETRIEVAL may choose from."""

    document: InputDocument
    left_out: tuple[str, ...] = ()
    """Names of headers that did not fit their budget."""
    notices: tuple[str, ...] = ()
    """One sentence for each record that cannot be offered."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the phase report says of the search for them."""


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """One record as SYNTHESIS reads it."""

    items: tuple[Item, ...]
    left_out: tuple[str, ...] = ()
    """Parts of the record that did not fit its limit."""


@dataclass(frozen=True, slots=True)
class OmittedItem:
    """What did not fit section 2: one item of a source, or a whole record where `item` is empty. `source` names the record: `turn 3`."""

    source: str
    relevance: str = ""
    item: str = ""


@dataclass(frozen=True, slots=True)
class SourceSection:
    """A source's subsection of section 2 and what the quality gates of specification 004, section 10 need to know of it."""

    text: str = ""
    position: int = 0
    """Subsections are in ascending order of it; ties keep the order of registration."""
    used_labels: frozenset[str] = frozenset()
    """Labels of the sources that the subsection cites."""
    unlinked: tuple[str, ...] = ()
    """One sentence for each gathered item that leads to no loaded record."""
    stale: tuple[str, ...] = ()
    """One sentence for each record that expired."""
    recommendations: tuple[str, ...] = ()
    confidences: tuple[float, ...] = ()
    """One for each record that is used; their mean is the quality of section 2."""


class ContextSource(Protocol[RecordT]):
    """One kind of source. RETRIEVAL sees its headers, SYNTHESIS its loaded records, section 2 what was gathered from them.

    The methods with a body are those that a source may leave as they are.
    """

    traits: ClassVar[SourceTraits]

    def headers(self, query: SourceQuery) -> SourceHeaders:
        """The headers of the user's records, the most relevant within the source's own budget."""
        ...

    def choices(self, plan: RetrievalPlan) -> tuple[tuple[str, str, str], ...]:
        """Name, relevance and reason of each record that the plan chooses."""
        ...

    def load(self, query: SourceQuery, plan: RetrievalPlan) -> tuple[tuple[RecordT, ...], tuple[str, ...]]:
        """The records that the plan names, and the names of those that a policy leaves out.

        Raises DocumentError for a record that is missing or damaged (specification 004, section 9)."""
        ...

    def cite(self, record: RecordT) -> Source:
        """What a citation of the record leads to, with an empty label."""
        ...

    def age(self, record: RecordT, now: datetime) -> float | None:
        """Hours since the record was made; None where it does not age."""
        return None

    async def read(self, query: SourceQuery, record: RecordT, label: str, rank: int) -> SourcePassage:
        """The record within its token limit, under its citation label; `rank`: its position in the plan, from 0."""
        ...

    def render(self, gathered: GatheredContext, records: Sequence[RecordT], cited: Sequence[Source], now: datetime) -> SourceSection:
        """The subsection of what SYNTHESIS gathered from `records`; figures come from the records. `cited`: all sources of the call."""
        ...

    def unused(self, gathered: GatheredContext, records: Sequence[RecordT]) -> tuple[str, ...]:
        """Names of the records of which SYNTHESIS used nothing, as far as the phase report lists them."""
        return ()

    def drop_last(self, gathered: GatheredContext) -> tuple[GatheredContext, OmittedItem] | None:
        """The gathered context without the source's last item, and that item; None where nothing can be dropped."""
        return None

    def path(self, user: UserId, cited_path: str) -> str | None:
        """The file behind a cited path; None for a path below the user's folder, or of another source."""
        return None
