"""The user's notes as a source: the "forever memory" of specification 004, section 13. A long note is compressed for the query."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.model_calls import Item, Source
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
from pandora_dagster.contracts.ports.user_storage import NoteStore
from pandora_dagster.contracts.user.sources import Note
from pandora_dagster.documents.markdown import escape_pack_lines
from pandora_dagster.documents.meta import meta_block
from pandora_dagster.documents.passages import passages
from pandora_dagster.errors import DocumentError
from pandora_dagster.phases.gather.source_text import (
    MAX_OFFERED_HEADERS,
    UNLINKED,
    Header,
    compress_text,
    fit_headers,
    one_line,
    plan_error,
    search_text,
)

NOTE_HEADER_TOKENS = 400
"""Tokens of the headers, at most. Specification 004, section 7.1, sets none for notes; the turn headers leave so many of the prompt."""
NOTE_TOKENS = 800
"""Tokens of one note as SYNTHESIS reads it."""
_LINK_SHARE = 0.3
"""The share of its score that a note lends to the notes it links to."""
_PASSAGE_CHARACTERS = 240
"""Characters of a note's passage in its header."""
_CONFIDENCE = 0.7
"""The confidence of a note, which states none; a note that is used counts with it in the quality of section 2."""


@dataclass(frozen=True, slots=True)
class NoteSource(ContextSource[Note]):
    """Source over the user's notes."""

    store: NoteStore
    traits: ClassVar[SourceTraits] = SourceTraits(
        name="note",
        plan_field="relevant_notes",
        answer_field="forever_knowledge",
        document="forever_memory",
        heading="===== FOREVER MEMORY (Persistent Knowledge) =====",
        priority=1e9,  # after memory, research and visits
    )

    def headers(self, query: SourceQuery) -> SourceHeaders:
        """The notes that match the query, each with its best passage, and those that one of them links to; all notes if they are few."""
        words = search_text(query)
        listing = self.store.listing(query.user, words)
        matches = {match.name: match for match in listing.matches}
        link_scores: dict[str, float] = {}
        for header in listing.headers:
            if match := matches.get(header.name):
                for name in map(_link_name, header.links):
                    link_scores[name] = max(link_scores.get(name, 0.0), _LINK_SHARE * match.score)
        offered: list[Header] = []
        for header in listing.headers:
            match = matches.get(header.name)
            score = max(match.score if match else 0.0, link_scores.get(_link_name(header.name), 0.0))
            if score > 0 or len(listing.headers) <= MAX_OFFERED_HEADERS:
                passage = _best_excerpt(query, words, match.passage) if match else ""
                values = {"note": header.name, "title": header.title, "tags": list(header.tags)}
                values |= {"passage": passage} if passage.lstrip("# ") not in ("", header.title) else {}
                offered.append(Header(f"note {header.name}", values, score))
        return fit_headers(query, "note_headers", offered, NOTE_HEADER_TOKENS, listing.notices)

    def choices(self, plan: RetrievalPlan) -> tuple[tuple[str, str, str], ...]:
        return tuple((name, "", "") for name in plan.relevant_notes)

    def load(self, query: SourceQuery, plan: RetrievalPlan) -> tuple[tuple[Note, ...], tuple[str, ...]]:
        try:
            return tuple(self.store.load(query.user, name) for name in dict.fromkeys(plan.relevant_notes)), ()
        except DocumentError as error:
            raise plan_error("relevant_notes", error) from error

    def cite(self, record: Note) -> Source:
        return Source("", record.logical_id, f"Note: {record.header.title[:80]}")

    async def read(self, query: SourceQuery, record: Note, label: str, rank: int) -> SourcePassage:
        """The whole note within its limit, else compressed for the query."""
        name, text = record.header.name, record.text
        if query.counter.count(text) > NOTE_TOKENS:
            text = await compress_text(query, text, record.logical_id, ContentType.GENERIC, NOTE_TOKENS)
        day = f" ({record.dated})" if record.dated else ""
        # Quoted under its heading: no line of a note can begin another source.
        quoted = f"===== NOTE {name}{day} [{label}] =====\n{escape_pack_lines(text)}"
        return SourcePassage((Item(quoted, self.traits.priority - rank, f"note {name}"),))

    def render(self, gathered: GatheredContext, records: Sequence[Note], cited: Sequence[Source], now: datetime) -> SourceSection:
        knowledge = gathered.forever_knowledge
        if not knowledge:
            return SourceSection()
        paths = {s.path: s.label for s in cited}
        labels = {n.header.name: paths[n.logical_id] for n in records}
        lines = [f"- {one_line(k.content)} {f'[{labels[k.note]}]' if k.note in labels else UNLINKED}" for k in knowledge]
        names = list(dict.fromkeys(k.note for k in knowledge))
        meta = {"type": "forever_memory", "note_count": len(names), "notes": names}
        return SourceSection(
            f"### Forever Memory Knowledge\n\n{meta_block(meta)}\n\n" + "\n".join(lines),
            used_labels=frozenset(labels[name] for name in names if name in labels),
            unlinked=tuple(f"note {one_line(k.note)[:80]} is not among the loaded sources" for k in knowledge if k.note not in labels),
            confidences=tuple(_CONFIDENCE for name in names if name in labels),
        )

    def unused(self, gathered: GatheredContext, records: Sequence[Note]) -> tuple[str, ...]:
        names = {k.note for k in gathered.forever_knowledge}
        return tuple(f"note {n.header.name}" for n in records if n.header.name not in names)

    def drop_last(self, gathered: GatheredContext) -> tuple[GatheredContext, OmittedItem] | None:
        knowledge = gathered.forever_knowledge
        if not knowledge:
            return None
        shorter = gathered.model_copy(update={"forever_knowledge": knowledge[:-1]})
        return shorter, OmittedItem(f"note {one_line(knowledge[-1].note)}")

    def path(self, user: UserId, cited_path: str) -> str | None:
        return (self.store.path(user, cited_path) or cited_path) if cited_path.startswith("notes/") else None


def _best_excerpt(query: SourceQuery, words: str, passage: str) -> str:
    """The part of a passage that shares most with the query, as one line."""
    parts = [passage[start:stop] for start, stop in passages(passage, max_characters=_PASSAGE_CHARACTERS)]
    scores = query.scores(words, parts)
    return " ".join(parts[max(range(len(parts)), key=lambda i: (scores[i], -i))].split()) if parts else ""


def _link_name(name: str) -> str:
    """A note's name as wiki links write it: without folders and ending."""
    return name.rpartition("/")[2].removesuffix(".md").lower()
