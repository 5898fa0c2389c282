"""A source over books, registered beside the shipped ones."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import InputDocument, Item, Source
from pandora_dagster.contracts.phase_outputs import GatheredContext, RetrievalPlan
from pandora_dagster.contracts.ports.context_source import (
    ContextSource,
    OmittedItem,
    SourceHeaders,
    SourcePassage,
    SourceQuery,
    SourceSection,
    SourceTraits,
)
from pandora_dagster.errors import DocumentError

BOOKS = {"walden": "I went to the woods because I wished to live deliberately."}


@dataclass(frozen=True, slots=True)
class BookSource(ContextSource[str]):
    """Source over a library of books, which are always ten hours old."""

    traits: ClassVar[SourceTraits] = SourceTraits(
        "book", "relevant_books", "book_quotes", "book_texts", priority=5e8, heading="=== BOOKS ==="
    )

    def headers(self, query: SourceQuery) -> SourceHeaders:
        items = tuple(Item(json.dumps({"book": name}), 1.0, f"book {name}") for name in BOOKS)
        return SourceHeaders(InputDocument("book_headers", items=items), notices=("one book is lent",))

    def choices(self, plan: RetrievalPlan) -> tuple[tuple[str, str, str], ...]:
        return tuple((name, "", "") for name in _field(plan, "relevant_books"))

    def load(self, query: SourceQuery, plan: RetrievalPlan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if missing := [name for name in _field(plan, "relevant_books") if name not in BOOKS]:
            raise DocumentError(f"retrieval_plan.json: relevant_books: {missing[0]}: expected a book", missing=True)
        return tuple(_field(plan, "relevant_books")), ()

    def cite(self, record: str) -> Source:
        return Source("", f"books/{record}.txt", f"Book: {record}")

    def age(self, record: str, now: datetime) -> float | None:
        return 10.0

    async def read(self, query: SourceQuery, record: str, label: str, rank: int) -> SourcePassage:
        return SourcePassage((Item(f"[{label}] {BOOKS[record]}", self.traits.priority - rank, f"book {record}"),))

    def render(self, gathered: GatheredContext, records: Sequence[str], cited: Sequence[Source], now: datetime) -> SourceSection:
        labels = {s.path: s.label for s in cited}
        quotes = [q for q in _field(gathered, "book_quotes") if q["book"] in records]
        lines = [f"- {q['quote']} [{labels[self.cite(q['book']).path]}] ({self.age(q['book'], now)} h)" for q in quotes]
        used = frozenset(labels[self.cite(q["book"]).path] for q in quotes)
        return SourceSection("### Books\n\n" + "\n".join(lines) if lines else "", used_labels=used, confidences=(0.6,) * len(used))

    def unused(self, gathered: GatheredContext, records: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"book {r}" for r in records if r not in {q["book"] for q in _field(gathered, "book_quotes")})

    def drop_last(self, gathered: GatheredContext) -> tuple[GatheredContext, OmittedItem] | None:
        quotes = _field(gathered, "book_quotes")
        return (gathered.model_copy(update={"book_quotes": quotes[:-1]}), OmittedItem(f"book {quotes[-1]['book']}")) if quotes else None

    def path(self, user: UserId, cited_path: str) -> str | None:
        return f"/library/{cited_path}" if cited_path.startswith("books/") else None


def _field(answer: RetrievalPlan | GatheredContext, name: str) -> Any:
    """A field of the answer that only this source knows."""
    return getattr(answer, name)
