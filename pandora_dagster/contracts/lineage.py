"""Lineage: which document was made from which, by whom, and what became of its facts. Shapes only.

A *document id* names one text for as long as the store lives:

| id | text |
|---|---|
| `ben:turn_000004/context.md` | a document in the folder of the turn, as it stands; with `@2`, of that revision: `ben:turn_000004@2/...` |
| `ben:turn_000004/context.md#5` | section 5 of it |
| `ben:turn_000004/cold/context.md` | its original, in the turn's cold object |
| `ben:turn_000004/summary` | the turn's entry of level L1: day, topics and summary, as `selection.entries` makes it of the manifest |
| `ben:session/conv-1` | the narrative of a session (level L2) |
| `ben:digest` | the digest of a person (level L3) |
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Relation(StrEnum):
    """How the child came from its parent."""

    COMPRESSED = "compressed"
    """Verified fact by fact; equal hashes where it stands whole."""
    SUMMARISED = "summarised"
    """A turn's summary from its context.md; a session's narrative from its turns."""
    DIGESTED = "digested"
    """A person's digest from narratives."""
    SECTION = "section"
    """A part of the same document."""
    CITED = "cited"
    """The child names the parent as its source."""


class Edge(BaseModel):
    """One row of the table: `child` was made from `parent`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    user_id: str
    """Whose documents these are: both, always."""
    parent: str
    child: str
    relation: Relation
    parent_sha: str
    child_sha: str
    """sha256 of the texts as the link was made; a text that has another hash now is not the one that was linked."""
    span: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] | None = None
    """Characters of the parent that the child comes from; None: all of it."""
    recipe: str = ""
    recipe_version: str = ""
    prompt_hash: str = ""
    runtime: str = ""
    model: str = ""
    parent_tokens: int = 0
    child_tokens: int = 0
    """cl100k."""
    verdicts: Mapping[str, int] = {}
    """`total` and a number for each outcome of a fact; empty where no fact was judged."""
    call_id: str = ""
    run_id: str = ""
    """The Dagster run, "" without one."""
    at: str
    """When the child was made, ISO 8601 UTC."""
