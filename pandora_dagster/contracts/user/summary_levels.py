"""Summary levels above a turn (specification 003): the narrative of a session (L2), the digest of a user (L3), and the links to their
sources.

A level's text may leave out a fact, its links never leave out a turn: every fact is reachable from the digest (decision 7,
docs/decisions/07-levels-link-every-fact.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import Field

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.strict_model import StrictModel
from pandora_dagster.contracts.user.user_memory import FactLedger

Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
LIMIT_LABEL, TOOLS_LABEL, ERROR_LABEL = "Limit: ", "Tools used: ", "Error: "
"""What the lines of an entry (L1) begin with after its summary."""
Texts = tuple[Annotated[str, Field(min_length=1)], ...]


class TextOrigin(StrictModel):
    """The call that made a text of a level, and when."""

    recipe: str
    recipe_version: str
    prompt_version: str
    runtime: str
    model: str
    call_id: str
    at: str
    """ISO 8601 UTC."""
    run_id: str = ""
    """The Dagster run, "" without one."""


class TurnLink(StrictModel):
    """A link from a narrative to a turn."""

    turn: Annotated[int, Field(ge=1)]
    at: str
    """When the turn began."""
    sha: Sha
    """sha256 of the turn's entry (`documents.turn_entry`), from which the narrative was made."""


class NarrativePart(StrictModel):
    """The result of one call for one batch of entries; it is unchanged while its turns are."""

    links: Annotated[tuple[TurnLink, ...], Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)]
    tokens_before: Annotated[int, Field(ge=0)]
    """Tokens of the turns before archival (cl100k)."""
    tokens: Annotated[int, Field(ge=0)]
    refused: tuple[str, ...] = ()
    """Removed sentences that no entry supports, each with the reason."""
    left_out: Annotated[int, Field(ge=0)] = 0
    """Number of statements of the entries that are not in the text."""
    made: TextOrigin

    @property
    def sha(self) -> str:
        """sha256 of the text and its links."""
        return _sha("\n".join((self.text, *(f"{link.turn} {link.sha}" for link in self.links))))


class SessionNarrative(StrictModel):
    """`narrative.json` of a session: level L2, in the order of its turns."""

    format_version: Literal[1] = 1
    user_id: str
    session_id: str
    parts: Annotated[tuple[NarrativePart, ...], Field(min_length=1)]

    @property
    def text(self) -> str:
        return "\n\n".join(part.text for part in self.parts)

    @property
    def sha(self) -> str:
        """sha256 of the text."""
        return _sha(self.text)

    @property
    def links(self) -> tuple[TurnLink, ...]:
        return tuple(link for part in self.parts for link in part.links)

    @property
    def tokens_before(self) -> int:
        return sum(part.tokens_before for part in self.parts)

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


class DigestFields(StrictModel):
    """The fields of a digest, with specification 003's five keys and limits ("parse_digest_response")."""

    key_decisions: Annotated[Texts, Field(max_length=20)] = ()
    tools_used: Annotated[Texts, Field(max_length=30)] = ()
    errors_encountered: Annotated[Texts, Field(max_length=15)] = ()
    progress_toward_goal: str = ""
    open_questions: Annotated[Texts, Field(max_length=10)] = ()


class NarrativeLink(StrictModel):
    """A link from a digest to a narrative."""

    session_id: str
    sha: Sha
    """sha256 of the narrative's text when it was merged."""
    parts: Annotated[tuple[Sha, ...], Field(min_length=1)]
    """`NarrativePart.sha` of each part that is in the digest."""
    tokens: Annotated[int, Field(ge=0)]
    """Tokens of these parts."""
    made: TextOrigin
    """The call that merged the newest of them."""


class UserDigest(StrictModel):
    """`digest.json` of a user: level L3."""

    format_version: Literal[1] = 1
    user_id: str
    fields: DigestFields
    facts: FactLedger
    """Facts that the user stated, each with its date; a fact that a later one contradicts keeps both dates and is not current."""
    narratives: Annotated[tuple[NarrativeLink, ...], Field(min_length=1)]
    tokens: Annotated[int, Field(ge=0)]
    """Tokens of `fields` as shown."""

    @property
    def text(self) -> str:
        """The digest as JSON, without links, for its hash."""
        facts = [fact.model_dump(mode="json") for fact in self.facts.facts]
        return f"{self.fields.model_dump_json()}\n{facts}"

    @property
    def sha(self) -> str:
        return _sha(self.text)

    @property
    def tokens_before(self) -> int:
        return sum(link.tokens for link in self.narratives)


@dataclass(frozen=True, slots=True)
class LevelSubject:
    """The subject of a level: a session of a user, or the user where `session` is ""."""

    user: UserId
    session: str = ""

    def __str__(self) -> str:
        return f"{self.user}, session {self.session}" if self.session else str(self.user)


class LevelOutcome(StrEnum):
    """The outcome of a subject in one run."""

    MADE = "made"
    UNCHANGED = "unchanged"
    WAITING = "waiting"
    """There is new input, but less than specification 003's triggers require; `reason` says what it waits for."""
    REMOVED = "removed"
    """All its sources are gone."""
    KEPT = "kept"
    """It is unchanged: another process works on it, or an open intervention names it."""
    FAILED = "failed"
    """An intervention says why."""


@dataclass(frozen=True, slots=True)
class LevelRow:
    """The row of one subject. `links`: turns of a narrative, narratives of a digest; `added` of them are new."""

    subject: LevelSubject
    outcome: LevelOutcome
    links: int = 0
    added: int = 0
    waiting: int = 0
    tokens_before: int = 0
    tokens: int = 0
    refused: int = 0
    runtimes: tuple[str, ...] = ()
    reason: str = ""
    intervention: str = ""
    seconds: float = 0.0

    @property
    def ratio(self) -> float:
        """Tokens before per token after, as specification 003 counts it; 0.0 where there is no text."""
        return round(self.tokens_before / self.tokens, 2) if self.tokens else 0.0


@dataclass(frozen=True, slots=True)
class LevelReport:
    """The report of one run: number of subjects by outcome, the failed ones, and why it ended early if it did."""

    counts: Mapping[LevelOutcome, int] = field(default_factory=dict[LevelOutcome, int])
    failed: tuple[LevelRow, ...] = ()
    stopped: str = ""
    hint: str = ""


def _sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()
