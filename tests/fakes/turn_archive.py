"""The TurnArchive port in memory, over the turns of a `MemoryTurnStore`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.archive_records import ArchiveRecord
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey
from pandora_dagster.contracts.ports.archive_storage import ColdStorage
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.errors import DocumentError
from pandora_dagster.stores.disk.files import sha
from pandora_dagster.stores.disk.layout import CONTEXT, MANIFEST
from pandora_dagster.stores.turns.cold_files import original_turn, revision_prefix
from pandora_dagster.stores.turns.commits import check_query, context_fields
from pandora_dagster.stores.turns.manifests import render_manifest, updated_manifest
from pandora_dagster.stores.turns.turn_folder import named_files
from tests.fakes.turn_store import MemoryTurnStore


@dataclass
class MemoryTurnArchive:
    """`TurnArchive` over a turn store in memory: a turn switches at once, so nothing is ever cut off."""

    turns: MemoryTurnStore
    cold: ColdStorage

    def size(self, key: TurnKey) -> int:
        return sum(len(data) for turn in self.turns.revisions.get(key, ()) for data in _files(turn).values())

    def originals(self, key: TurnKey) -> tuple[Turn, Mapping[str, bytes]]:
        newest = self.turns.load(key)
        found: dict[str, bytes] = {}
        for turn in self.turns.revisions[key]:
            _check(turn)
            found |= _files(turn)
        return newest, found

    def archived_turn(self, turn: Turn, texts: Mapping[str, str], record: ArchiveRecord) -> Turn:
        where, files = f"turn {turn.key} as archived", {name: text for name, text in texts.items() if name != CONTEXT}
        phases = [
            phase.model_copy(update={"files": {name: sha(files[name]) for name in phase.files if name in files}})
            for phase in turn.manifest.phases
        ]
        fields = {"state": TurnState.ARCHIVED, "archive": record, "phases": tuple(phases)}
        described = context_fields(texts[CONTEXT], where=where, counter=self.turns.counter)
        manifest = updated_manifest(turn.manifest, {**fields, **described})
        check_query(turn.manifest, manifest, where)
        return Turn(turn.key, manifest, texts[CONTEXT], files)

    def commit(self, turns: Sequence[tuple[Turn, Turn]]) -> None:
        for _, after in turns:
            self.turns.load(after.key)
            self.turns.revisions[after.key][-1] = after

    def remove_unnamed(self, manifests: Iterable[Manifest]) -> None:
        for manifest in manifests:
            self.turns.revisions[manifest.key] = [self.turns.load(manifest.key, revision=manifest.revision)]

    def reconcile(self, key: TurnKey) -> None:
        turn = self.turns.load(key)
        _check(turn)
        self.remove_unnamed([turn.manifest])

    def restore(self, key: TurnKey) -> Turn:
        manifest = self.turns.manifest(key)
        if manifest.archive is None:
            raise DocumentError(f"turn {key}: it is {manifest.state}: expected an archived one")
        files = self.cold.read(manifest.archive)
        if revision_prefix(manifest.revision) + MANIFEST not in files:
            raise DocumentError(f"turn {key}: the manifest of its newest revision is missing: expected it", missing=True)
        numbers = [number for number in range(manifest.revision + 1) if revision_prefix(number) + MANIFEST in files]
        self.turns.revisions[key] = [original_turn(key, number, files) for number in numbers]
        return self.turns.load(key)

    def clear_leftovers(self, key: TurnKey) -> None:
        _check(self.turns.load(key))


def _files(turn: Turn) -> dict[str, bytes]:
    """What of a revision goes to cold storage, by its name there."""
    texts = {MANIFEST: render_manifest(turn.manifest), CONTEXT: turn.context, **turn.files}
    return {revision_prefix(turn.manifest.revision) + name: text.encode() for name, text in texts.items()}


def _check(turn: Turn) -> None:
    """Verify that the documents are those of the manifest; raises DocumentError."""
    if sha(turn.context) != turn.manifest.context_sha or {n: sha(text) for n, text in turn.files.items()} != named_files(turn.manifest):
        raise DocumentError(f"turn {turn.key}: a document contradicts the manifest: expected it as it was committed")
