"""The texts of one user in a store, and the texts of all others, from which an erasure derives the facts that only the user has."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.errors import DocumentError, PandoraError
from pandora_dagster.stores.disk.layout import CALLS, MANIFEST, Layout
from pandora_dagster.stores.erasure.content_search import searchable_contents
from pandora_dagster.stores.erasure.file_erasure import await_levels, await_tools, files_below, own_folders, remove, retire_turns
from pandora_dagster.stores.turns.cold_files import read_tar, tar_files

_DOCUMENT_SUFFIXES = frozenset({".md", ".txt", ".html", ".json", ".jsonl"})
_PIPELINE_FILES = frozenset({MANIFEST, CALLS, "limiter.json"})
"""Files that are not searched for facts: what they state about the user is in the documents too."""
_INDEX_WAIT_S = 60.0
"""Seconds to wait for an index of another user that another process holds."""


@dataclass(frozen=True, slots=True)
class UserDataFiles:
    """The UserDocuments port: the data of users below one store root. Raises StoreError."""

    layout: Layout
    trash: Callable[[UserId], Path]
    """Where an interrupted erasure may have moved the user's folder."""
    notes: tuple[UserId, Path] | None
    """The user whose notes are outside the store, and their folder."""
    names: tuple[Path, ...]
    """Paths whose names count as text of others, such as the store root."""
    program: tuple[Path, ...]
    """The files of this program, whose content is not the user's."""
    queries_of_others: Callable[[UserId], Iterable[str]]
    """The queries of other users in batches."""
    wait_s: float
    """Seconds to wait for each turn and level that another process holds."""

    def texts(self, user: UserId) -> Iterator[str]:
        """The user's documents, also those in cold objects; what cannot be read is skipped."""
        vault = self.layout.vault(user)
        vaults = (vault, self.trash(user) / vault.name)
        for path in files_below(*own_folders(self.layout, user), self.trash(user)):
            if path.is_symlink() or path.name in _PIPELINE_FILES:
                continue
            if path.name.endswith(".tar.zst"):
                yield from _originals(path)
            elif path.suffix in _DOCUMENT_SUFFIXES and not any(map(path.is_relative_to, vaults)):
                try:
                    yield path.read_text(encoding="utf-8", errors="replace")
                except OSError:
                    continue

    def of_others(self, user: UserId) -> Iterator[bytes]:
        """Texts of others that may state a fact of the user: other users' documents and queries, names of paths, this program."""
        yield " ".join(map(str, self.names)).encode()
        for line in self.queries_of_others(user):
            yield line.encode(errors="surrogatepass")
        users_folders = own_folders(self.layout, user)
        for folder in (self.layout.users, self.layout.cold):
            for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
                if entry not in users_folders:
                    yield from _unpacked_bytes(files_below(entry))
        if self.notes and self.notes[0] != user:
            yield from _unpacked_bytes(files_below(self.notes[1]))
        yield from _unpacked_bytes(files_below(*self.program))

    def notices(self, user: UserId) -> Iterator[str]:
        """One sentence for each thing of the user that an erasure leaves."""
        if self.notes and self.notes[0] == user and not self.notes[1].is_relative_to(self.layout.user(user)):
            yield f"{self.notes[1]}: notes outside the store (PANDORA_NOTES): they are not erased"
        for path in files_below(*own_folders(self.layout, user)):
            if path.is_symlink():
                yield f"{path}: a link: it is erased, its target is not"

    def retire_turns(self, user: UserId) -> None:
        retire_turns(self.layout, user, wait_s=self.wait_s)
        await_tools(self.layout, user, wait_s=self.wait_s)

    def await_levels(self, user: UserId) -> None:
        await_levels(self.layout, user, wait_s=self.wait_s)

    def remove_folder(self, user: UserId) -> None:
        remove(self.layout.user(user))


def _originals(path: Path) -> Iterator[str]:
    """The documents in a cold object; what cannot be read is skipped."""
    try:
        files = tar_files(read_tar(path), path)
    except DocumentError:
        return
    for name, data in files.items():
        if Path(name).suffix in _DOCUMENT_SUFFIXES and Path(name).name not in _PIPELINE_FILES:
            yield data.decode(errors="replace")


def _unpacked_bytes(paths: Iterable[Path]) -> Iterator[bytes]:
    """The searchable content of files; what cannot be read is skipped."""
    for path in paths:
        if path.suffix == ".pyc":
            continue
        try:
            yield from (data for _, data in searchable_contents(path, wait_s=_INDEX_WAIT_S))
        except PandoraError:
            continue
