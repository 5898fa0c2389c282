"""What `pandora doctor` looks at: the store, the cookbook, the runtime. Asks; changes nothing."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pandora_dagster.contracts.ids import UserId
from pandora_dagster.contracts.ports import RecipeCatalog, ModelRuntime
from pandora_dagster.contracts.remembered import MemoryStore, NoteStore
from pandora_dagster.errors import PandoraError
from pandora_dagster.runtime.serving.folder import ServingFolder
from pandora_dagster.runtime.sglang.runtime import SglangRuntime
from pandora_dagster.settings import Settings
from pandora_dagster.stores.call_index import DuckCallIndex
from pandora_dagster.stores.duck import DuckDBFile
from pandora_dagster.stores.token_ratios import TokenRatioFile
from pandora_dagster.stores.vectors import TurnVectors
from pandora_dagster.wiring.examining_servers import check_servers
from pandora_dagster.wiring.finding import Finding

_NOTE_REMEDY = "mend the note (front matter in YAML, UTF-8, at most 1 MiB), or move it out of the folder: it is never offered as it is"


async def check_health(
    settings: Settings,
    runtime: ModelRuntime,
    cookbook: RecipeCatalog,
    calls: DuckCallIndex,
    indexes: Mapping[str, DuckDBFile],
    vectors: TurnVectors | None,
    people: Iterable[Finding],
    versions: Sequence[str],
) -> tuple[Finding, ...]:
    """Every finding, in the order in which a person would mend them. `indexes`: the file of each by what it is an index of;
    `people`: what was found of each person's own; `versions`: what is damaged of the kept versions of recipes."""
    found = [
        _store(settings),
        *_indexes(indexes),
        *_recipes(cookbook),
        *(Finding("recipe versions", False, v) for v in versions),
        *people,
    ]
    if isinstance(runtime, SglangRuntime):
        found += await check_servers(runtime, cookbook, TokenRatioFile(settings.root), calls, ServingFolder(settings.root))
    else:
        found.append(Finding("runtime", True, f"{runtime.name}: embedded, no model; every record says so"))
    return (*found, *([_embeddings(vectors)] if vectors else []), *_compressions(calls))


def _indexes(indexes: Mapping[str, DuckDBFile]) -> Iterator[Finding]:
    """Whether each index that is there can be opened; what it says is for `pandora index verify`."""
    there = [name for name, file in indexes.items() if file.path.exists()]
    faults = {name: fault for name in there if (fault := indexes[name].fault())}
    for name, fault in faults.items():
        yield Finding(f"index of {name}", False, str(fault), fault.hint)
    if sound := [name for name in there if name not in faults]:
        yield Finding("indexes", True, f"{', '.join(sound)}: can be read")


def check_users(users: Iterable[UserId], notes: NoteStore, memory: MemoryStore) -> Iterator[Finding]:
    """Of each person: a line for each note that no turn is offered, and how many are; whether their memory can be read."""
    for user in users:
        listing = notes.listing(user)
        for notice in listing.notices:
            yield Finding(f"notes of {user}", False, notice, _NOTE_REMEDY)
        if listing.headers:
            yield Finding(f"notes of {user}", True, f"{len(listing.headers)} can be read")
        yield from _memory(user, memory)


def _memory(user: UserId, memory: MemoryStore) -> Iterator[Finding]:
    try:
        entries = memory.entries(user)
    except PandoraError as error:
        yield Finding(f"memory of {user}", False, str(error), error.hint)
    else:
        if entries:
            yield Finding(f"memory of {user}", True, f"{len(entries)} can be read")


def _embeddings(vectors: TurnVectors) -> Finding:
    """Whether a vector can be made, by making one, and whether those that are kept are of the same model."""
    try:
        length = vectors.check()
        vectors.check_stored_model()
    except PandoraError as error:
        return Finding("embeddings", False, f"{error}; the search goes by words alone", error.hint)
    return Finding("embeddings", True, f"{vectors.name}: vectors of {length} values")


def _compressions(calls: DuckCallIndex) -> Iterator[Finding]:
    """What compression did so far (000 section 27); nothing before the first turn came to rest."""
    if not calls.file.path.exists():
        return
    try:
        done = calls.compressions()
    except PandoraError:  # told with the index of calls
        return
    took = f"{done.latency_ms / 1_000:.1f} s (longest {done.longest_latency_ms:.0f} ms)"
    saved = f"{done.tokens_saved:,} tokens saved (most at once {done.most_tokens_saved:,})"
    yield Finding(
        "compression", True, f"{done.invocations} done, {done.halted} halted; {saved}; {took}; {done.overflow_warnings} overflows"
    )


def _store(settings: Settings) -> Finding:
    there = settings.root if settings.root.exists() else next(p for p in settings.root.parents if p.exists())
    if os.access(there, os.W_OK):
        made = "" if settings.root.exists() else ": no store there yet; it begins with pandora demo, ask or import"
        return Finding("store", True, f"{settings.root}{made}")
    return Finding("store", False, f"{settings.root}: cannot be written", "set PANDORA_ROOT to a folder that you can write")


def _recipes(cookbook: RecipeCatalog) -> Iterator[Finding]:
    broken = 0
    for name in cookbook.names():
        try:
            cookbook.load(name)
        except PandoraError as error:
            broken += 1
            yield Finding(f"recipe {name}", False, str(error), "pandora recipes check names every fault")
    if not broken:
        yield Finding("recipes", True, f"{len(cookbook.names())} recipes load")
