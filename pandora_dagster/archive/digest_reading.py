"""A digest as a person reads it: its items with the sessions that support each, and the facts that the user stated with their turns.

The stored digest and the text that is hashed (`UserDigest.text`) do not depend on it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pandora_dagster.archive.text_comparison import Mark
from pandora_dagster.compression.levels.level_check import item_refusal
from pandora_dagster.compression.levels.level_prompts import LIST_LIMITS, PROGRESS
from pandora_dagster.compression.verification.text_facts import TextFacts, find_facts
from pandora_dagster.contracts.ids import TurnKey, UserId
from pandora_dagster.contracts.lineage import document_id, session_document
from pandora_dagster.contracts.user.summary_levels import SessionNarrative, UserDigest

HEADINGS = {
    PROGRESS: "So far",
    "key_decisions": "Decided",
    "tools_used": "Tools",
    "errors_encountered": "Errors",
    "open_questions": "Open",
}
"""Field of a digest -> its heading."""
_FACTS_HEADING = "Stated by the user"
_MAX_ITEM_SESSIONS = 3
"""Sessions that are verified and named for an item: those that have most of its words."""
_CONTEXT_FILE = "context.md"


@dataclass(frozen=True, slots=True)
class DigestItem:
    """An item of a digest, and the sessions whose narratives support it; none where only several together do."""

    field: str
    text: str
    sessions: tuple[str, ...] = ()


@dataclass(slots=True)
class DigestReading:
    """A text, and links from its passages to the documents of the sources."""

    text: str = ""
    marks: list[Mark] = field(default_factory=list[Mark])

    def add(self, text: str, document: str = "") -> None:
        """Append a passage, as a link where it names a document."""
        if document:
            self.marks.append(Mark(len(self.text), len(self.text) + len(text), href=document))
        self.text += text


def digest_items(digest: UserDigest, narratives: Iterable[SessionNarrative]) -> Iterator[DigestItem]:
    """The items of a digest in the order of HEADINGS."""
    sources = {narrative.session_id: find_facts(narrative.text) for narrative in narratives}
    for name in HEADINGS:
        value = getattr(digest.fields, name)
        for text in value if name in LIST_LIMITS else value.splitlines():
            yield DigestItem(name, text, _supporting_sessions(text, name, sources))


def _supporting_sessions(text: str, field: str, sources: Mapping[str, TextFacts]) -> tuple[str, ...]:
    nearest = sorted(sources, key=lambda session: -sources[session].index.share(text))[:_MAX_ITEM_SESSIONS]
    return tuple(session for session in nearest if not item_refusal(text, sources[session], field=field))


def read_digest(digest: UserDigest, narratives: Iterable[SessionNarrative]) -> DigestReading:
    """The digest as a text with links to its sessions and turns."""
    reading, user, heading = DigestReading(), digest.user_id, ""
    for item in digest_items(digest, narratives):
        if item.field != heading:
            reading.add(f"{_gap(reading)}{HEADINGS[item.field]}\n")
            heading = item.field
        reading.add(f"- {item.text}")
        for number, session in enumerate(item.sessions):
            reading.add(", " if number else "  [session ")
            reading.add(session, session_document(user, session))
        reading.add("]\n" if item.sessions else "  [several sessions together]\n")
    if digest.facts.facts:
        reading.add(f"{_gap(reading)}{_FACTS_HEADING}\n")
    for fact in digest.facts.facts:
        key = TurnKey(UserId(user), fact.turn)
        ended = f", until {(fact.superseded_at or '')[:10]}" if not fact.is_current else ""
        reading.add(f"- {fact.fact}  [{fact.stated_at[:10]}{ended}, ")
        reading.add(key.turn_id, document_id(key, _CONTEXT_FILE))
        reading.add("]\n")
    return reading


def _gap(reading: DigestReading) -> str:
    return "\n" if reading.text else ""
