"""Erasure of a user from the whole store, with a proof. Knows the order of the steps; `stores` and `defs` erase each place.

The intent is written first and removed last: an interrupted run, or one whose proof found something, leaves it. While it exists no turn
of the user begins, and the next run repeats every step. It stores the facts to search for until a proof finds none of them.
"""

import io
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

from pandora_dagster.app.composition import utc_now
from pandora_dagster.archive.distinctive_facts import MOST_FACTS, find_distinctive_facts
from pandora_dagster.contracts.erasure import ErasureIntent, ErasureProof, ErasureReport, UserDataCounts
from pandora_dagster.contracts.ids import UserId, user_id
from pandora_dagster.contracts.ports.user_storage import RunEraser
from pandora_dagster.documents.redaction.user_traces import UserTraces, occurring_facts
from pandora_dagster.documents.timestamps import format_timestamp
from pandora_dagster.errors import PandoraError, StoreError
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.layout import CALLS, MANIFEST, Layout
from pandora_dagster.stores.disk.turn_directory import turn_numbers
from pandora_dagster.stores.erasure.content_search import searchable_contents
from pandora_dagster.stores.erasure.file_erasure import await_levels, files_below, own_folders, remove, replace_with_file, retire_turns
from pandora_dagster.stores.erasure.record_erasure import StoreRecords
from pandora_dagster.stores.erasure.row_erasure import erase_rows, index_files, remove_leftovers

_DOCUMENT_SUFFIXES = frozenset({".md", ".txt", ".html", ".json", ".jsonl"})
_PIPELINE_FILES = frozenset({MANIFEST, CALLS, "limiter.json"})
"""Records of the pipeline: what they say about the user is in the documents too."""
_WAIT_S = 60.0
"""How long to wait for each turn, index and record that another process holds."""
_SHOWN = 200
OnStep = Callable[[str], None]


def _ignore_step(step: str) -> None:
    """The callback of a caller that only reads the outcome."""


@dataclass(frozen=True, slots=True)
class ErasureService:
    """Erasures over one store and its Dagster records. `wait_s`: how long to wait for what another process holds."""

    settings: Settings
    runs: RunEraser
    on_step: OnStep = _ignore_step
    wait_s: float = _WAIT_S
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout(self.settings.root))

    def find(self, user: UserId) -> UserDataCounts:
        """Count the data of a user; changes nothing. Raises StoreError, DocumentError."""
        documents, cold = own_folders(self.layout, user_id(user))
        records = self._records
        counts = {
            "turns": 0 if documents.is_symlink() else sum(1 for _ in turn_numbers(self.layout.turns(user))),
            "files": sum(1 for _ in _present(documents)),
            "cold_objects": sum(path.name.endswith(".tar.zst") for path in _present(cold)),
            "tombstones": sum(path.name.endswith(".tombstone.json") for path in _present(cold)),
            "interventions": len(records.interventions(user)),
            "lines_of_queries": records.lines_of(user),
            **self.runs.count(user),
            "begun_before": int(self._erasures.has_intent(user)),
        }
        return UserDataCounts(user, counts, tuple(self._notices(user)))

    def erase(self, user: UserId) -> ErasureReport:
        """Erase, then search for what remains. Raises StoreError where a file is held or refused: a second call continues."""
        erasures = self._erasures
        with erasures.one_at_a_time():
            found = self.find(user)
            known = erasures.facts(user)
            intent = ErasureIntent(user_id=user, begun_at=format_timestamp(utc_now().replace(microsecond=0)), facts=known)
            erasures.write_intent(intent)
            self.on_step("turns")
            retire_turns(self.layout, user, wait_s=self.wait_s)
            self.on_step("narratives")
            await_levels(self.layout, user, wait_s=self.wait_s)
            self.on_step("facts")
            facts, traces = self._traces(user, known)
            erasures.write_intent(intent.model_copy(update={"facts": tuple(dict.fromkeys((*known, *traces.facts)))}))
            notices = self._erase(user, traces)
            self.on_step("proof")
            proof = self._proof(traces, facts)
            remove(own_folders(self.layout, user)[0])  # the file in the place of the folder
            if proof.clean:
                erasures.remove_intent(user)
        return ErasureReport(found, proof, notices)

    def _erase(self, user: UserId, traces: UserTraces) -> tuple[str, ...]:
        """Erase every place in order; returns the notices for other users."""
        records = self._records
        self.on_step("indexes")
        damaged = [path for path in index_files(self.settings.root) if not erase_rows(path, user, wait_s=self.wait_s)]
        remove_leftovers(self.settings.root, wait_s=self.wait_s)
        self.on_step("records")
        records.erase_interventions(user, traces)
        records.erase_batches(user, traces)
        records.erase_logs(traces)
        self.on_step("runs")
        self.runs.erase(user, traces)
        self.on_step("documents")
        documents, cold = own_folders(self.layout, user)
        remove(cold)
        if self.layout.users.is_dir():
            replace_with_file(documents, self._erasures.set_aside_path(user))
        remove(self._erasures.set_aside_path(user))
        return tuple(f"{path}: it was damaged and is deleted: pandora index rebuild makes it again" for path in damaged)

    def _traces(self, user: UserId, known: tuple[str, ...]) -> tuple[int, UserTraces]:
        """The number of facts in the user's documents and in the intent, and the traces: the facts that occur in no other user's documents
        and not in this program."""
        found = find_distinctive_facts(_texts((*own_folders(self.layout, user), self._erasures.set_aside_path(user))))
        facts = tuple(dict.fromkeys((*known, *found)))[: 2 * MOST_FACTS]
        elsewhere = occurring_facts((*facts, user), self._of_others(user))
        own = tuple(fact for fact in facts if fact not in elsewhere)[:MOST_FACTS]
        return len(facts), UserTraces(user, own, plain=len(user) >= _PLAIN and user not in elsewhere)

    def _of_others(self, user: UserId) -> Iterator[bytes]:
        """Data of others in which a fact may occur: other users' documents and file names, other users' queries, this program."""
        yield f"{self.settings.root} {self.settings.dagster_home}".encode()
        for line in self._records.others_queries(user):
            yield line.encode(errors="surrogatepass")
        mine = own_folders(self.layout, user)
        for folder in (self.layout.users, self.layout.cold):
            for other in sorted(folder.iterdir()) if folder.is_dir() else ():
                if other not in mine:
                    yield from _unpacked_bytes(files_below(other))
        if self.settings.notes and self.settings.user != user:
            yield from _unpacked_bytes(files_below(self.settings.notes))
        shipped = shipped_folder()
        yield from _unpacked_bytes(files_below(shipped / "recipes", shipped / "prompts", Path(__file__).parents[1]))

    def _proof(self, traces: UserTraces, facts: int) -> ErasureProof:
        """Search every file of the store and of Dagster's storage."""
        files = size = 0
        hits: list[str] = []
        home = self.settings.dagster_home
        own = (self._erasures.folder / f"{traces.user}.json", own_folders(self.layout, UserId(traces.user))[0])
        inside = home.is_relative_to(self.settings.root)
        for path in files_below(*(folder for folder in (self.settings.root, *(() if inside else (home,))) if folder.exists())):
            if path in own and path.is_file() and (path == own[0] or not path.stat().st_size):
                continue  # the intent, and the file in the place of the folder
            files += 1
            try:
                for place, data in searchable_contents(path, wait_s=self.wait_s):
                    size += len(data) if place == "bytes" else 0
                    if traces.found_in(data) and len(hits) < _SHOWN:
                        hits.append(f"{path}: {place}" if place != "name" else f"{path.parent}: a name")
                        break
            except StoreError as error:
                hits.append(str(error))
        return ErasureProof(files, size, len(traces.facts), facts, tuple(hits))

    def _notices(self, user: UserId) -> Iterator[str]:
        if self.settings.notes and self.settings.user == user and not self.settings.notes.is_relative_to(self.layout.user(user)):
            yield f"{self.settings.notes}: notes outside of the store (PANDORA_NOTES): they are not erased"
        for folder in own_folders(self.layout, user):
            for path in _present(folder):
                if path.is_symlink():
                    yield f"{path}: a link: it is erased, its target is not"

    @property
    def _records(self) -> StoreRecords:
        return StoreRecords(self.settings.root, self.settings.user, (self.settings.dagster_home,))

    @property
    def _erasures(self) -> ErasureIntents:
        return ErasureIntents(self.settings.root, wait_s=min(self.wait_s, 10.0))


_PLAIN = 5
"""An id shorter than this may be a word of other texts, and counts only where it denotes the user."""


def _present(folder: Path) -> Iterator[Path]:
    return files_below(folder) if folder.exists() or folder.is_symlink() else iter(())


def _texts(folders: Iterable[Path]) -> Iterator[str]:
    """The user's documents, in cold objects too; unreadable ones are left out."""
    for path in (path for folder in folders for path in _present(folder)):
        if path.is_symlink() or path.name in _PIPELINE_FILES:
            continue
        if path.name.endswith(".tar.zst"):
            yield from _originals(path)
        elif path.suffix in _DOCUMENT_SUFFIXES and "vault" not in path.parts:
            try:
                yield path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue


def _originals(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            tar = tarfile.open(fileobj=io.BytesIO(reader.read()), mode="r:")  # noqa: SIM115 - closed with its bytes
        for about in tar:
            if about.isreg() and Path(about.name).suffix in _DOCUMENT_SUFFIXES and Path(about.name).name not in _PIPELINE_FILES:
                file = tar.extractfile(about)
                yield file.read().decode(errors="replace") if file else ""
    except (OSError, tarfile.TarError, zstandard.ZstdError):
        return


def _unpacked_bytes(paths: Iterable[Path]) -> Iterator[bytes]:
    for path in paths:
        if path.suffix == ".pyc":
            continue
        try:
            yield from (data for _, data in searchable_contents(path, wait_s=_WAIT_S))
        except PandoraError:
            continue
