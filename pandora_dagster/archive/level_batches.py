"""Rules of the summary levels, over values alone: which batches are due, which stored parts are valid, which links are missing.

`session_narratives` and `user_digests` apply them to a store.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.archive.turn_archival import CONTEXT_FILE
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
    """Tokens of the turn's context.md before archival (level L0), the base of the compression ratios in specification 003."""
    is_archived: bool
    """Only archived turns are added to a narrative; a restored turn stays in its part."""

    @classmethod
    def of(cls, manifest: Manifest) -> "LevelEntry":
        """The entry of a turn, from its manifest alone."""
        key, text = manifest.key, turn_entry(manifest)
        is_archived = manifest.state is TurnState.ARCHIVED
        documents = manifest.archive.documents if manifest.archive else ()
        tokens = next((d.tokens_before for d in documents if d.name == CONTEXT_FILE), manifest.tokens)
        return cls(key.number, manifest.created_at, entry_head(manifest), text, tokens, is_archived)

    @property
    def link(self) -> TurnLink:
        return TurnLink(turn=self.turn, at=self.at, sha=entry_sha(self.text))


def valid_parts(narrative: SessionNarrative | None, entries: Mapping[int, LevelEntry]) -> tuple[NarrativePart, ...]:
    """The parts whose turns all exist with unchanged entries. `entries`: turn number -> entry."""
    parts = narrative.parts if narrative else ()
    return tuple(p for p in parts if all((e := entries.get(link.turn)) is not None and e.link == link for link in p.links))


def sort_parts(parts: Iterable[NarrativePart]) -> tuple[NarrativePart, ...]:
    """Sort parts by their first turn."""
    return tuple(sorted(parts, key=lambda p: (p.links[0].at, p.links[0].turn)))


def batches_due(
    entries: Iterable[LevelEntry], turns: Sequence[int], config: SummarizationConfig, *, is_quiet: bool
) -> tuple[tuple[tuple[LevelEntry, ...], ...], int]:
    """The batches of `entries` to add to a narrative now, oldest first, and the number of archived entries that wait.

    A quiet session adds all its entries. An active one leaves out its newest turns, waits until enough of its entries are
    archived, and adds whole batches only. `turns`: numbers of the session's turns, newest last.
    """
    archived = sort_entries(e for e in entries if e.is_archived)
    if is_quiet:
        return config.l2_batches(archived), 0
    if not config.is_l2_due(len(archived)):
        return (), len(archived)
    recent = set(turns) - set(config.without_recent(turns))
    whole_batches = (b for b in config.l2_batches([e for e in archived if e.turn not in recent]) if len(b) == max(1, config.l2_batch_size))
    batches = tuple(whole_batches)
    return batches, len(archived) - sum(map(len, batches))


def sort_entries(entries: Iterable[LevelEntry]) -> list[LevelEntry]:
    """Sort entries by the time of their turns."""
    return sorted(entries, key=lambda e: (e.at, e.turn))


def merged_part_hashes(digest: UserDigest, narratives: Iterable[SessionNarrative]) -> frozenset[str] | None:
    """Hashes of the parts in a digest; None where one is no longer a part of its narrative, so that the digest is out of date."""
    current = {n.session_id: {part.sha for part in n.parts} for n in narratives}
    if any(not set(link.parts) <= current.get(link.session_id, set()) for link in digest.narratives):
        return None
    return frozenset(sha for link in digest.narratives for sha in link.parts)


def turn_link_faults(narrative: SessionNarrative | None, entries: Iterable[LevelEntry]) -> tuple[str, ...]:
    """Faults of the check `sources_linked` at level L2: archived turns without a link, links to missing turns, links with another hash."""
    entry_of = {entry.turn: entry for entry in entries}
    links = {link.turn: link for link in narrative.links} if narrative else {}
    unlinked = [f"turn {t}: archived and in no narrative" for t, e in entry_of.items() if e.is_archived and t not in links]
    missing = [f"turn {t}: linked, but missing" for t in links if t not in entry_of]
    changed = [
        f"turn {t}: linked with another hash than its entry has" for t, e in entry_of.items() if t in links and links[t].sha != e.link.sha
    ]
    return (*unlinked, *missing, *changed)


def narrative_link_faults(digest: UserDigest | None, narratives: Iterable[SessionNarrative]) -> tuple[str, ...]:
    """Faults of the check `sources_linked` at level L3: narratives without a link, links to missing narratives, links with other hashes."""
    narrative_of = {n.session_id: n for n in narratives}
    links = {link.session_id: link for link in digest.narratives} if digest else {}
    unlinked = [f"session {s}: its narrative is in no digest" for s in narrative_of if s not in links]
    missing = [f"session {s}: linked, but missing" for s in links if s not in narrative_of]
    changed = [
        f"session {s}: linked with another hash than its narrative has"
        for s, n in narrative_of.items()
        if s in links and (links[s].sha != n.sha or set(links[s].parts) != {p.sha for p in n.parts})
    ]
    return (*unlinked, *missing, *changed)


def narrative_edges(narrative: SessionNarrative, *, entry_tokens: Mapping[int, int]) -> tuple[LineageEdge, ...]:
    """A lineage edge from each turn's entry to the narrative. `entry_tokens`: turn number -> tokens of its entry; 0 where it is absent."""
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
    """A lineage edge from each narrative to the digest."""
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


def _level_edge(origin: TextOrigin, **fields: Any) -> LineageEdge:  # str, int, a relation
    """A lineage edge with the call that made its child."""
    return LineageEdge.model_validate({**fields, **origin.model_dump(exclude={"prompt_version"}), "prompt_hash": origin.prompt_version})


def level_id(subject: LevelSubject) -> str:
    """The document id of a session's narrative, or of a user's digest."""
    return session_document(subject.user, subject.session) if subject.session else digest_document(subject.user)
