"""How lineage reads narratives and digests, and the rows that their records tell of. Knows shapes; knows no order of steps."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from pandora_dagster.contracts.ids import SessionId, TurnKey, UserId
from pandora_dagster.contracts.lineage import LineageEdge
from pandora_dagster.contracts.ports import TokenMeasure, TurnStore
from pandora_dagster.errors import DocumentError, PandoraError
from pandora_dagster.selection.entries import turn_entry
from pandora_dagster.selection.levels import digest_edges, narrative_edges
from pandora_dagster.stores.levels import LevelFiles
from pandora_dagster.stores.lineage_texts import ReadsSource


def level_readers(files: LevelFiles) -> Mapping[str, ReadsSource]:
    """How the documents `session/<id>` and `digest` are read: the text, then what a narrative was before its newest parts."""

    def narrative(user: UserId, path: str) -> Iterable[str]:
        found = files.narrative(user, SessionId(path.removeprefix("session/")))
        if found is None:
            raise DocumentError(f"{user}:{path}: there is no such narrative: expected one", missing=True)
        return (found.model_copy(update={"parts": found.parts[:end]}).text for end in range(len(found.parts), 0, -1))

    def digest(user: UserId, path: str) -> Iterable[str]:
        if (found := files.digest(user)) is None:
            raise DocumentError(f"{user}:{path}: there is no digest: expected one", missing=True)
        return (found.text,)

    return {"session": narrative, "digest": digest}


def level_rows(files: LevelFiles, turns: TurnStore, counter: TokenMeasure) -> Iterator[LineageEdge]:
    """The lineage of every narrative and digest that can be read, made of these records."""
    for user in turns.users():
        with suppress(DocumentError):
            for narrative in files.narratives(user):
                tokens = {link.turn: _entry_tokens(TurnKey(user, link.turn), turns, counter) for link in narrative.links}
                yield from narrative_edges(narrative, entry_tokens=tokens)
        with suppress(DocumentError):
            if found := files.digest(user):
                yield from digest_edges(found)


def _entry_tokens(key: TurnKey, turns: TurnStore, counter: TokenMeasure) -> int:
    try:
        return counter.count(turn_entry(turns.manifest(key)))
    except PandoraError:
        return 0
