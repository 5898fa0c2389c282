"""A text that must fit a budget, the request to compress it, the result, and the verdict of a gate or check."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pydantic import BeforeValidator

from pandora_dagster.contracts.enums import ContentType

Gate = Literal[
    "schema_validation",
    "confidence_threshold",
    "evidence_required",
    "timeout_ms",
    "no_fact_changed",
    "within_budget",
    "is_a_summary",
    "sources_linked",
    "caches_fresh",
    "relevant_source",
    "quotes_verbatim",
    "robots_respected",
    "sources_allowed",
]


def _migrate_gate_names(gates: Any) -> Any:
    """Rename `facts_preserved`, which version 0.1.0 wrote, to `no_fact_changed`; pydantic judges any other value."""
    if not isinstance(gates, Mapping) or "facts_preserved" not in gates:
        return cast(object, gates)
    stored = cast(Mapping[str, object], gates)
    return {"no_fact_changed" if name == "facts_preserved" else name: passed for name, passed in stored.items()}


GATE_NAME_MIGRATION = BeforeValidator(_migrate_gate_names)
"""Validator of fields of stored records that map gates and checks to whether they passed."""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The verdict of one quality gate on a call (specification 000, section 14), or of one check on a compression."""

    gate: Gate
    passed: bool
    reason: str = ""
    """Why it failed; a passed one may explain itself too."""
    value: float | None = None
    """The measured value, e.g. the confidence; None where the gate measures none."""
    rows: tuple[Mapping[str, str], ...] = ()
    """What the gate judged, one row each: the statements of an answer with what they cite."""


@dataclass(frozen=True, slots=True)
class CompressionInput:
    """A text that may be too large, as its owner reports it (specification 001, section 6)."""

    text: str
    name: str = ""
    """The document's name, from which its content type is derived; where it is a path, references to the original lead there."""
    content_type: ContentType | None = None
    """None: detected (specification 000, section 22)."""
    original: str = ""
    """The first original where `text` is already compressed; the facts of the original are verified."""
    query: str = ""
    """The query that the text must serve; "" for any."""
    preserve: tuple[str, ...] = ()
    """What the model must keep, in words."""

    @property
    def source(self) -> str:
        """The text against which the facts of the result are verified."""
        return self.original or self.text

    def within(self, target: int) -> "CompressionRequest":
        """The request to compress this text to at most `target` tokens."""
        return CompressionRequest(self.text, self.name, self.content_type, self.original, self.query, self.preserve, target=target)


@dataclass(frozen=True, slots=True)
class CompressionRequest(CompressionInput):
    """A text and the tokens that it may have."""

    target: int = field(kw_only=True)
    """At most so many cl100k tokens; under 1 is refused."""
    recipe: str = field(default="", kw_only=True)
    """The recipe whose call needs the text shorter; "" for a document that is stored."""

    @property
    def is_repeated(self) -> bool:
        """Whether `text` is a compression of an earlier original."""
        return self.original not in ("", self.text)


@dataclass(frozen=True, slots=True)
class CompressionReport:
    """One completed compression: figures, verdicts and both texts."""

    document: str
    content_type: ContentType
    recipe: str
    runtime: str
    """The runtime that compressed: a model's, or `extractive`."""
    target: int
    tokens_before: int
    tokens_after: int
    counts: Mapping[str, int]
    """`total`, and a number for each verdict on a fact."""
    facts: tuple[Mapping[str, str], ...]
    """Rows `outcome`, `rank`, `kind`, `fact`, `reason`; facts that were not kept first."""
    before: str
    after: str
    verdicts: tuple[GateVerdict, ...]
    """The three checks: `no_fact_changed`, `within_budget`, `is_a_summary`. The verdicts on facts are `outcome` in `facts`."""
    deferred: str = ""
    """Why a model did not compress every part that it would have compressed (decision 7, docs/decisions/07-levels-link-every-fact.md)."""
    recipe_version: str = ""
    prompt_hash: str = ""
    model: str = ""
    call_id: str = ""
    """Id of the call record of the whole compression."""

    @property
    def ratio(self) -> float:
        """Tokens after per token before."""
        return round(self.tokens_after / self.tokens_before, 4) if self.tokens_before else 1.0


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """What became of a text: it fitted and is unchanged (`report` None, `halted` empty), it was compressed (`report`), or it is too large.

    In the last case `halted` says why: no sound text fits the budget. The text is returned unchanged, so that no fact is lost.
    """

    text: str
    report: CompressionReport | None = None
    halted: str = ""
