"""The value of a field from all sources that give one: the visible page decides, the others confirm or contradict it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pandora_dagster.contracts.web.page_doc import FieldEvidence, PageFields, ZoneSource
from pandora_dagster.documents.webpages.elements.html_tree import Element, selector_of
from pandora_dagster.documents.webpages.structured_data import Statement

_SEEN_WEIGHT = 2
_UNSEEN = 0.3
"""Confidence of what one source states and no visible place shows; a second source that agrees adds a tenth."""


@dataclass(slots=True)
class FieldValues:
    """The fields that were found so far."""

    values: dict[str, str] = field(default_factory=dict[str, str])
    evidence: dict[str, FieldEvidence] = field(default_factory=dict[str, FieldEvidence])
    specs: dict[str, str] = field(default_factory=dict[str, str])
    notices: list[str] = field(default_factory=list[str])

    def decide(
        self,
        name: str,
        seen: str,
        stated: Sequence[Statement],
        same: Callable[[str, str], bool],
        element: Element = None,
        *,
        normal: Callable[[str], str] = str,
    ) -> None:
        """Set a field to what the page shows (`seen`), or with low confidence to the first statement that nothing shows."""
        given = [(statement, value) for statement in stated if (value := normal(statement.value))]
        value = seen or (given[0][1] if given else "")
        if not value:
            return
        agreeing = [statement.source for statement, said in given if same(said, value)]
        other = list(dict.fromkeys(said for _, said in given if not same(said, value)))
        named: list[ZoneSource] = [ZoneSource.DOM, *agreeing] if seen else agreeing
        sources = tuple(dict.fromkeys(named))
        if seen:
            against = len({statement.source for statement, said in given if not same(said, value)})
            agree = _SEEN_WEIGHT + len(set(agreeing))
            confidence = (agree + 0.5) / (agree + against + 1)
            if other and not agreeing:
                self.notices.append(f"{name}: the page shows {value!r:.100}, its structured data says {other[0]!r:.100}")
        else:
            confidence = _UNSEEN + 0.1 * (len(set(agreeing)) - 1)
        self.values[name] = value
        self.evidence[name] = FieldEvidence(
            sources=sources, confidence=round(confidence, 2), selector=selector_of(element) if element is not None else ""
        )

    def fields(self) -> PageFields:
        """All fields."""
        return PageFields(**self.values, specs=self.specs)  # pyright: ignore[reportArgumentType] - names of text fields only


def same_text(one: str, other: str) -> bool:
    """Whether two values are equal."""
    return one == other


def same_day(one: str, other: str) -> bool:
    """Whether two ISO dates are of the same day."""
    return one[:10] == other[:10]
