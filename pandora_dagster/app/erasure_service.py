"""The erasure of one user and its proof: the order of the steps over the registered erasers.

The intent is written first and removed last. An erasure that was cut off, or whose proof found something, leaves it: no turn of the user
begins while it exists, and the next erasure repeats every step. It keeps the facts to search for until a proof has found nothing.
"""

import io
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

from pandora_dagster.app.composition import utc_now
from pandora_dagster.compression.verification.facts import Fact, FactKind
from pandora_dagster.compression.verification.ledger import Ledger, build_ledger
from pandora_dagster.contracts.ids import UserId, user_id
from pandora_dagster.contracts.ports.user_storage import Eraser
from pandora_dagster.contracts.retention import ErasureIntent, ErasureProof, ErasureReport, UserDataCounts
from pandora_dagster.documents.redaction.user_traces import SHORTEST, UserTraces, occurring_facts
from pandora_dagster.errors import PandoraError
from pandora_dagster.language.timestamps import format_timestamp
from pandora_dagster.settings import Settings
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.stores.disk.erasure_intents import ErasureIntents
from pandora_dagster.stores.disk.layout import CALLS, MANIFEST, Layout
from pandora_dagster.stores.erasure.content_search import searchable_contents
from pandora_dagster.stores.erasure.file_erasure import DocumentEraser, await_levels, files_below, own_folders, remove, retire_turns
from pandora_dagster.stores.erasure.record_erasure import RecordEraser
from pandora_dagster.stores.erasure.row_erasure import IndexEraser

_DOCUMENT_SUFFIXES = frozenset({".md", ".txt", ".html", ".json", ".jsonl"})
_PIPELINE_FILES = frozenset({MANIFEST, CALLS, "limiter.json"})
"""Files that are not searched for facts: whatever they state about the user is in the documents too."""
_WAIT_S = 60.0
"""Seconds to wait for each turn, index and record that another process holds."""
_SHOWN = 200
_KINDS = frozenset((FactKind.MONEY, FactKind.QUANTITY, FactKind.URL, FactKind.IDENTIFIER, FactKind.NAME, FactKind.NUMBER))
_LONGEST = 80
_DIGITS = 8
"""A bare number of fewer digits occurs by chance, in times and sizes."""
MOST_FACTS = 5_000
"""Facts that are searched for; those that come first in their documents are preferred."""
OnStep = Callable[[str], None]


def _ignore_step(step: str) -> None:
    """No-op callback."""


@dataclass(frozen=True, slots=True)
class ErasureService:
    """Erasures over one store and its Dagster records. `wait_s`: seconds to wait for another process."""

    settings: Settings
    runs: Eraser
    on_step: OnStep = _ignore_step
    wait_s: float = _WAIT_S
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", Layout(self.settings.root))

    def find(self, user: UserId) -> UserDataCounts:
        """What there is of a user; nothing is changed. Raises StoreError, DocumentError."""
        user_id(user)
        *others, documents = self._erasers  # the documents are counted first and erased last
        counts = {kind: number for eraser in (documents, *others) for kind, number in eraser.count(user).items()}
        return UserDataCounts(user, {**counts, "begun_before": int(self._intents.has_intent(user))}, tuple(self._notices(user)))

    def erase(self, user: UserId) -> ErasureReport:
        """Erase, then search. Raises StoreError where something is locked or refused: a second call continues."""
        intents = self._intents
        with intents.one_at_a_time():
            found = self.find(user)
            known = intents.facts(user)
            intent = ErasureIntent(user_id=user, begun_at=format_timestamp(utc_now().replace(microsecond=0)), facts=known)
            intents.write_intent(intent)
            self.on_step("turns")
            retire_turns(self.layout, user, wait_s=self.wait_s)
            self.on_step("narratives")
            await_levels(self.layout, user, wait_s=self.wait_s)
            self.on_step("facts")
            facts, traces = self._traces(user, known)
            intents.write_intent(intent.model_copy(update={"facts": tuple(dict.fromkeys((*known, *traces.facts)))}))
            notices = self._erase(user, traces)
            self.on_step("proof")
            proof = self._proof(traces, facts)
            remove(own_folders(self.layout, user)[0])  # the empty file in its place
            if proof.clean:
                intents.remove_intent(user)
        return ErasureReport(found, proof, notices)

    def _erase(self, user: UserId, traces: UserTraces) -> tuple[str, ...]:
        notices: list[str] = []
        for eraser in self._erasers:
            self.on_step(eraser.step)
            notices += eraser.erase(user, traces)
        return tuple(notices)

    def _traces(self, user: UserId, known: tuple[str, ...]) -> tuple[int, UserTraces]:
        """The number of facts in the user's documents and in the intent, and the traces: those facts that are neither in another user's
        documents nor in this program."""
        found = find_distinctive_facts(_texts((*own_folders(self.layout, user), self._intents.trash_folder(user))))
        facts = tuple(dict.fromkeys((*known, *found)))[: 2 * MOST_FACTS]
        elsewhere = occurring_facts((*facts, user), self._of_others(user))
        own = tuple(fact for fact in facts if fact not in elsewhere)[:MOST_FACTS]
        return len(facts), UserTraces(user, own, plain=len(user) >= _PLAIN and user not in elsewhere)

    def _of_others(self, user: UserId) -> Iterator[bytes]:
        """What may state a fact of the user without being theirs: other users' documents, names and queries, this program."""
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
        """Every object that an eraser knows, searched: all files of the store and of Dagster's storage."""
        files = size = 0
        hits: list[str] = []
        for searched in (searched for eraser in self._erasers for searched in eraser.search(traces)):
            files, size = files + 1, size + searched.size
            hits += [searched.hit] if searched.hit else []
        return ErasureProof(files, size, len(traces.facts), facts, tuple(hits[:_SHOWN]))

    def _notices(self, user: UserId) -> Iterator[str]:
        if self.settings.notes and self.settings.user == user and not self.settings.notes.is_relative_to(self.layout.user(user)):
            yield f"{self.settings.notes}: notes outside of the store (PANDORA_NOTES): they are not erased"
        for folder in own_folders(self.layout, user):
            for path in files_below(folder):
                if path.is_symlink():
                    yield f"{path}: a link: it is erased, its target is not"

    @property
    def _erasers(self) -> tuple[Eraser, ...]:
        """In the order in which they erase: the documents last, since the other steps may need them again after an interruption."""
        return (
            IndexEraser(self.settings.root, self.wait_s),
            self._records,
            self.runs,
            DocumentEraser(self.layout, self._intents, self.wait_s),
        )

    @property
    def _records(self) -> RecordEraser:
        return RecordEraser(self.settings.root, self.settings.user, (self.settings.dagster_home,), self.wait_s)

    @property
    def _intents(self) -> ErasureIntents:
        return ErasureIntents(self.settings.root, wait_s=min(self.wait_s, 10.0))


_PLAIN = 5
"""An id shorter than this occurs as a word in other texts; it counts only where it names the user."""


def _texts(folders: Iterable[Path]) -> Iterator[str]:
    """The user's documents, also those in cold objects; what cannot be read is skipped."""
    for path in files_below(*folders):
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


def find_distinctive_facts(texts: Iterable[str]) -> tuple[str, ...]:
    """Names, numbers with units, identifiers and addresses of the texts, each once, if too long to occur by chance."""
    found: dict[str, int] = {}
    for text in texts:
        for place, fact in enumerate(_searchable(build_ledger(text))):
            if _is_distinctive(fact):
                found[fact] = min(found.get(fact, place), place)
    return tuple(sorted(found, key=lambda fact: (found[fact], fact)))


def _searchable(ledger: Ledger) -> Iterator[str]:
    """The values of a text; names behind one another are one, since each alone may be somebody else's."""
    facts = sorted((f for f in ledger.facts if f.kind in _KINDS), key=lambda f: f.start)
    for n, fact in enumerate(facts):
        before = facts[n - 1] if n else fact
        start = before.start if _is_one_name(ledger, before, fact) else fact.start
        if n + 1 == len(facts) or not _is_one_name(ledger, fact, facts[n + 1]):
            yield ledger.text[start : fact.end]


def _is_one_name(ledger: Ledger, one: Fact, other: Fact) -> bool:
    return one.kind is other.kind is FactKind.NAME and ledger.text[one.end : other.start] == " "


def _is_distinctive(fact: str) -> bool:
    """Whether a search for the bytes of the fact is reliable: on one line, without quotes, not a number that occurs by chance."""
    if any(character in fact for character in '\n\r"\\') or not SHORTEST <= len(fact.encode(errors="surrogatepass")) <= _LONGEST:
        return False
    digits = sum(character.isdigit() for character in fact)
    return digits >= _DIGITS or any(character.isalpha() or character in "$€£¥%" for character in fact)
