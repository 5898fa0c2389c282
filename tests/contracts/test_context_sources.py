"""What every source of context must do, asked of those over stores and of the fake that the gatherer is tested with."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from pandora_dagster.contracts.ids import user_id
from pandora_dagster.contracts.phase_outputs import GatheredContext, RetrievalPlan
from pandora_dagster.contracts.ports.context_source import ContextSource, SourceQuery
from pandora_dagster.contracts.user.user_memory import MemoryEntry
from pandora_dagster.errors import DocumentError
from tests.fakes.context_sources import BookSource
from tests.phases.rig import Rig, open_light_rig
from tests.stores.user.test_source_files import research, visit

ANNA = user_id("anna")
NOW = datetime(2026, 1, 4, 16, tzinfo=UTC)
Fields = Mapping[str, Any]
PLANS: Mapping[str, tuple[Fields, Fields]] = {
    "memory": ({"relevant_memory_keys": ["seat"]}, {"relevant_memory_keys": ["desk"]}),
    "research": (
        {"research_cache_match": {"matched": True, "topic": "commerce.laptop"}},
        {"research_cache_match": {"matched": True, "topic": "x.y"}},
    ),
    "visit": ({"webpage_cache_needed": ["visit_abc123"]}, {"webpage_cache_needed": ["visit_none00"]}),
    "note": ({"relevant_notes": ["woods.md"]}, {"relevant_notes": ["none.md"]}),
    "book": ({"relevant_books": ["walden"]}, {"relevant_books": ["emile"]}),
}
"""Name of a source -> a plan that names one of its records, and one that names none that is there."""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One record of each source."""
    made = open_light_rig()
    dependencies = made.app.dependencies
    dependencies.memory.put(ANNA, MemoryEntry("seat", "aisle", 0.9, 1, "2026-01-04T14:30:00Z"))
    for record in (research(webpage_cache=["visit_abc123"]), visit()):
        dependencies.sources.put(ANNA, record)
    made.app.notes.texts[ANNA, "woods.md"] = "# Woods\n\nThe woods are near Concord."
    yield made
    made.app.close()


@pytest.fixture(params=sorted(PLANS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def source(rig: Rig, name: str) -> ContextSource[Any]:
    return next(one for one in (*rig.app.dependencies.context_sources, BookSource()) if one.traits.name == name)


@pytest.fixture
def query(rig: Rig) -> SourceQuery:
    text = "seat, laptop and woods"
    return SourceQuery(ANNA, text, text, (), None, NOW, rig.app.dependencies.counter, rig.app.dependencies.scores)


def planned(fields: Fields) -> RetrievalPlan:
    """A plan; a field of the fake's alone comes beside those of the contract."""
    known = {name: value for name, value in fields.items() if name in RetrievalPlan.model_fields}
    plan = RetrievalPlan.model_validate({"reasoning": "so", "relevant_turns": [], "turn_relevance": {}, "confidence": 0.9, **known})
    return plan.model_copy(update={name: value for name, value in fields.items() if name not in known})


def test_every_registered_source_is_asked(rig: Rig) -> None:
    assert {one.traits.name for one in rig.app.dependencies.context_sources} == PLANS.keys() - {"book"}


def test_its_record_is_offered_chosen_loaded_and_read(source: ContextSource[Any], name: str, query: SourceQuery) -> None:
    """Under one citation, whose label is the caller's."""
    plan = planned(PLANS[name][0])
    assert len(source.headers(query).document.items) == 1 == len(source.choices(plan))
    (record,), omitted = source.load(query, plan)
    cited, age = source.cite(record), source.age(record, NOW)
    assert omitted == () and cited.label == "" and cited.path and cited.description and (age is None or age >= 0)
    passage = asyncio.run(source.read(query, record, "1", 0))
    assert [item.name.split()[0] for item in passage.items] == [name] and passage.left_out == ()


def test_a_record_that_is_missing_is_refused(source: ContextSource[Any], name: str, query: SourceQuery) -> None:
    """A plan may name only what is there."""
    with pytest.raises(DocumentError) as refused:
        source.load(query, planned(PLANS[name][1]))
    assert refused.value.missing and source.traits.plan_field in str(refused.value)


def test_of_nothing_gathered_nothing_is_rendered_or_dropped(source: ContextSource[Any], name: str, query: SourceQuery) -> None:
    gathered = GatheredContext.model_validate({"session_preferences": {}, "prior_turns": [], "source_references": []}).model_copy(
        update={"book_quotes": []}
    )
    records, _ = source.load(query, planned(PLANS[name][0]))
    section = source.render(gathered, records, [], NOW)
    assert (section.text, section.used_labels, section.unlinked) == ("", frozenset(), ()) and source.drop_last(gathered) is None
    assert len(source.unused(gathered, records)) == 1 and source.path(ANNA, "elsewhere/page.md") is None
