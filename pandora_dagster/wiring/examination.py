"""What `pandora doctor` looks at: the store, the cookbook, the runtime. Asks; changes nothing."""

import os
from collections.abc import Iterator

from pandora_dagster.contracts.ports import Cookbook, ModelRuntime
from pandora_dagster.errors import PandoraError
from pandora_dagster.runtime.serving.folder import ServingFolder
from pandora_dagster.runtime.sglang.runtime import SglangRuntime
from pandora_dagster.settings import Settings
from pandora_dagster.stores.call_index import DuckCallIndex
from pandora_dagster.stores.token_ratios import TokenRatioFile
from pandora_dagster.stores.vectors import TurnVectors
from pandora_dagster.wiring.examining_servers import servers_examined
from pandora_dagster.wiring.finding import Finding


async def examined(
    settings: Settings, runtime: ModelRuntime, cookbook: Cookbook, calls: DuckCallIndex, vectors: TurnVectors | None
) -> tuple[Finding, ...]:
    """Every finding, in the order in which a person would mend them."""
    found = [_store(settings), *_recipes(cookbook)]
    if isinstance(runtime, SglangRuntime):
        found += await servers_examined(runtime, cookbook, TokenRatioFile(settings.root), calls, ServingFolder(settings.root))
    else:
        found.append(Finding("runtime", True, f"{runtime.name}: embedded, no model; every record says so"))
    return (*found, *([_embeddings(vectors)] if vectors else []), *_compressions(calls))


def _embeddings(vectors: TurnVectors) -> Finding:
    """Whether a vector can be made, by making one."""
    try:
        length = vectors.check()
    except PandoraError as error:
        return Finding("embeddings", False, f"{error}; the search goes by words alone", error.hint)
    return Finding("embeddings", True, f"{vectors.name}: vectors of {length} values")


def _compressions(calls: DuckCallIndex) -> Iterator[Finding]:
    """What compression did so far (000 section 27); nothing before the first turn came to rest."""
    if not calls.file.path.exists():
        return
    try:
        done = calls.compressions()
    except PandoraError as error:
        yield Finding("compression", False, str(error), error.hint or "pandora index rebuild makes the index again")
        return
    took = f"{done.latency_ms / 1_000:.1f} s (longest {done.longest_latency_ms:.0f} ms)"
    saved = f"{done.tokens_saved:,} tokens saved (most at once {done.most_tokens_saved:,})"
    yield Finding(
        "compression", True, f"{done.invocations} done, {done.halted} halted; {saved}; {took}; {done.overflow_warnings} overflows"
    )


def _store(settings: Settings) -> Finding:
    there = settings.root if settings.root.exists() else next(p for p in settings.root.parents if p.exists())
    if os.access(there, os.W_OK):
        return Finding("store", True, str(settings.root))
    return Finding("store", False, f"{settings.root}: cannot be written", "set PANDORA_ROOT to a folder that you can write")


def _recipes(cookbook: Cookbook) -> Iterator[Finding]:
    broken = 0
    for name in cookbook.names():
        try:
            cookbook.load(name)
        except PandoraError as error:
            broken += 1
            yield Finding(f"recipe {name}", False, str(error), "pandora recipes check names every fault")
    if not broken:
        yield Finding("recipes", True, f"{len(cookbook.names())} recipes load")
