"""Batches of turns for the summary levels, validity of stored parts, and the check that links are complete. Reads no store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.archive.turn_archival import CONTEXT
from pandora_dagster.compression.levels.summarization_config import SummarizationConfig
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.lineage import SUMMARY, LineageEdge, Relation, digest_document, document_id, session_document
from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.contracts.user.summary_levels import LevelSubject, NarrativePart, SessionNarrative, TextOrigin, TurnLink, UserDigest
from pandora_dagster.documents.turn_entry import entry_head, entry_sha, turn_entry


@dataclass(frozen=True, slots=True)
class LevelEntry:
    """A turn at level L1."""

    turn: int
    at: str
    """When the turn began."""
    head: str
    """First line of `text`: its day and keywords."""
    text: str
    tokens: int
    """Of the turn's context.md before archival: level L0, against which 003 counts the ratios of the levels."""
    is_archived: bool
    """Only archived turns are added; a restored turn stays where it is linked."""

    @classmethod
    def of(cls, manifest: Manifest) -> "LevelEntry":
        """The entry of a turn, from its manifest alone."""
        key, text = manifest.key, turn_entry(manifest)
        is_archived = manifest.state is TurnState.ARCHIVED
        archived = manifest.archive.documents if manifest.archive else ()
        tokens = next((d.tokens_before for d in archived if d.name == CONTEXT), manifest.tokens)
        return cls(key.number, manifest.created_at, entry_head(manifest), text, tokens, is_archived)

    @property
    def link(self) -> TurnLink:
        return TurnLink(turn=self.turn, at=self.at, sha=entry_sha(self.text))


def valid_parts(narrative: SessionNarrative | None, entries: Mapping[int, LevelEntry]) -> tuple[NarrativePart, ...]:
    """The parts whose turns all exist with unchanged entries; the turns of other parts can be batched again."""
    parts = narrative.parts if narrative else ()
    return tuple(p for p in parts if all((e := entries.get(link.turn)) is not None and e.link == link for link in p.links))


def sort_parts(parts: Iterable[NarrativePart]) -> tuple[NarrativePart, ...]:
    """Parts by their first turn."""
    return tuple(sorted(parts, key=lambda p: (p.links[0].at, p.links[0].turn)))


def batches_due(
    entries: Iterable[LevelEntry], newest: Sequence[int], config: SummarizationConfig, *, at_rest: bool
) -> tuple[tuple[tuple[LevelEntry, ...], ...], int]:
    """The batches of `entries` to add to a narrative now, oldest first, and the number of archived entries that wait.

    An active session leaves out its newest turns, starts at the trigger of level 2, and adds whole batches only. A quiet session adds all
    entries. `newest`: its turns, newest last.
    """
    older = frozenset(config.without_recent(newest))
    waiting = sort_entries(e for e in entries if e.is_archived)
    if at_rest:
        return config.l2_batches(waiting), 0
    free = [entry for entry in waiting if entry.turn in older or entry.turn not in newest] if config.is_l2_due(len(waiting)) else []
    batches = tuple(batch for batch in config.l2_batches(free) if len(batch) == max(1, config.l2_batch_size))
    return batches, len(waiting) - sum(map(len, batches))


def sort_entries(entries: Iterable[LevelEntry]) -> list[LevelEntry]:
    """Entries by the time of their turns."""
    return sorted(entries, key=lambda e: (e.at, e.turn))


def merged_parts(digest: UserDigest, narratives: Iterable[SessionNarrative]) -> frozenset[str] | None:
    """Hashes of the parts in a digest; None where one is no longer a part of its narrative: the digest is out of date."""
    now = {n.session_id: {part.sha for part in n.parts} for n in narratives}
    if any(not set(link.parts) <= now.get(link.session_id, set()) for link in digest.narratives):
        return None
    return frozenset(sha for link in digest.narratives for sha in link.parts)


def unlinked_turns(narrative: SessionNarrative | None, entries: Iterable[LevelEntry]) -> tuple[str, ...]:
    """Faults of `sources_linked` at level L2: archived turns without a link, links to missing turns, links with another hash."""
    known = {entry.turn: entry for entry in entries}
    links = {link.turn: link for link in narrative.links} if narrative else {}
    lost = [f"turn {t}: archived and in no narrative" for t, e in known.items() if e.is_archived and t not in links]
    gone = [f"turn {t}: linked, but missing" for t in links if t not in known]
    other = [
        f"turn {t}: linked with another hash than its entry has" for t, e in known.items() if t in links and links[t].sha != e.link.sha
    ]
    return (*lost, *gone, *other)


def unlinked_narratives(digest: UserDigest | None, narratives: Iterable[SessionNarrative]) -> tuple[str, ...]:
    """Faults of `sources_linked` at level L3: narratives, or parts, that the digest does not link, and links with another hash."""
    known = {n.session_id: n for n in narratives}
    links = {link.session_id: link for link in digest.narratives} if digest else {}
    lost = [f"session {s}: its narrative is in no digest" for s in known if s not in links]
    gone = [f"session {s}: linked, but missing" for s in links if s not in known]
    other = [
        f"session {s}: linked with another hash than its narrative has"
        for s, n in known.items()
        if s in links and (links[s].sha != n.sha or set(links[s].parts) != {p.sha for p in n.parts})
    ]
    return (*lost, *gone, *other)


def narrative_edges(narrative: SessionNarrative, *, entry_tokens: Mapping[int, int]) -> tuple[LineageEdge, ...]:
    """A link from each turn's summary to the narrative; `entry_tokens`: tokens of each entry, 0 where unknown. `turn_lineage`
    makes those from turns to their summaries."""
    child, user = session_document(narrative.user_id, narrative.session_id), UserId(narrative.user_id)
    return tuple(
        _level_edge(
            part.made,
            user_id=user,
            parent=document_id(TurnKey(user, link.turn), SUMMARY),
            child=child,
            relation=Relation.SUMMARIZED,
            parent_sha=link.sha,
            child_sha=narrative.sha,
            parent_tokens=entry_tokens.get(link.turn, 0),
            child_tokens=narrative.tokens,
        )
        for part in narrative.parts
        for link in part.links
    )


def digest_edges(digest: UserDigest) -> tuple[LineageEdge, ...]:
    """A link from each narrative to the digest."""
    return tuple(
        _level_edge(
            link.made,
            user_id=digest.user_id,
            parent=session_document(digest.user_id, link.session_id),
            child=digest_document(digest.user_id),
            relation=Relation.DIGESTED,
            parent_sha=link.sha,
            child_sha=digest.sha,
            parent_tokens=link.tokens,
            child_tokens=digest.tokens,
        )
        for link in digest.narratives
    )


def _level_edge(made: TextOrigin, **ends: Any) -> LineageEdge:  # fields of an edge: str, int, a relation
    """A link with the call that made its child."""
    origin = made.model_dump(exclude={"prompt_version"})
    return LineageEdge.model_validate({**ends, **origin, "prompt_hash": made.prompt_version})


def level_id(subject: LevelSubject) -> str:
    """The document id of a session's narrative, or of a user's digest."""
    return session_document(subject.user, subject.session) if subject.session else digest_document(subject.user)
