"""The paths under the store root, built from checked ids and fixed names only; nothing is opened here."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId, user_id
from pandora_dagster.errors import DocumentError, InputError

CONTEXT = "context.md"
MANIFEST = "turn.json"
CALLS = "calls.jsonl"
STARTED_CALLS = "calls/started"
"""Folder in that of a user, with a file for each call that began and has no end."""
HOLD = "hold.json"
LOCK = ".lock"
COLD = "cold"
"""Folder below the root for the originals of archived turns."""
REVISIONS = "revisions"
KEPT = ".kept"
"""Folder for the documents that a commit replaces, named by sha256: an interrupted commit is undone from it."""
_RECIPE_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")
_RESERVED_NAMES = frozenset({CONTEXT, MANIFEST, CALLS, HOLD})
_DOCUMENT = re.compile(r"(?:webpage_cache/[a-z0-9][a-z0-9_-]{0,99}/)?[a-z0-9][a-z0-9_-]{0,99}\.(?:md|json|jsonl|txt|html)")


def document_name(name: str) -> str:
    """`name` as the name of a turn's document; raises DocumentError where it is none."""
    if not _DOCUMENT.fullmatch(name) or name in _RESERVED_NAMES:
        raise DocumentError(
            f"document name {name[:80]!r}: expected lower-case letters, digits, '_' or '-' and .md, .json, .jsonl, .txt or .html, "
            f"also below webpage_cache/<slug>/, and none of {', '.join(sorted(_RESERVED_NAMES))}"
        )
    return name


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of a store."""

    root: Path

    @property
    def users(self) -> Path:
        return self.root / "users"

    @property
    def interventions(self) -> Path:
        return self.root / "interventions"

    @property
    def cold(self) -> Path:
        return self.root / COLD

    def recipe(self, recipe: str) -> Path:
        """The folder with the kept versions of the recipe `{category}/{name}` and its `production.json`."""
        return self.recipes.joinpath(*recipe_key(recipe))

    @property
    def recipes(self) -> Path:
        return self.root / "recipes"

    def user(self, user: str) -> Path:
        return self.users / user_id(user)

    def turns(self, user: UserId) -> Path:
        return self.user(user) / "turns"

    def incoming(self, user: UserId) -> Path:
        """Where a turn folder is built before it is renamed into place; it is on the same disk."""
        return self.user(user) / ".incoming"

    def turn(self, key: TurnKey, revision: int = 0) -> Path:
        return _turn(self.root, key, revision)

    def tool_runs(self, user: UserId) -> Path:
        """Lock files of tools that run without the lock of their turn."""
        return self.user(user) / "tool_runs"

    def session(self, user: UserId, session: SessionId) -> Path:
        return self.user(user) / "sessions" / session

    def vault(self, user: UserId) -> Path:
        """Stored prompt packs and raw answers of model calls."""
        return self.user(user) / "vault"

    def research(self, user: UserId) -> Path:
        """Cached research, one file for each record; the research index has the names of the files."""
        return self.user(user) / "research_cache"

    def visits(self, user: UserId) -> Path:
        """Visited pages, one file for each record."""
        return self.user(user) / "webpage_cache"

    def notes(self, user: UserId) -> Path:
        """A user's folder of notes, unless the settings name another."""
        return self.user(user) / "notes"


@lru_cache(maxsize=4_096)
def _turn(root: Path, key: TurnKey, revision: int) -> Path:
    """The folder of a revision. Cached: an archival run asks for each turn's folder a dozen times, and building the path is slow."""
    folder = Layout(root).turns(key.user) / key.turn_id
    return folder / REVISIONS / str(revision) if revision else folder


def recipe_key(recipe: str) -> tuple[str, str]:
    """The category and the name of a recipe; raises InputError for any other text."""
    category, _, name = recipe.partition("/")
    if not (_RECIPE_WORD.fullmatch(category) and _RECIPE_WORD.fullmatch(name)):
        raise InputError(f"{recipe[:80]!r}: not a recipe name: expected {{category}}/{{name}} in small letters, digits and _")
    return category, name
