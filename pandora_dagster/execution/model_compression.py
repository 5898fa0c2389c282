"""Compression by a model in calls of 500 tokens (000 section 23, DECISIONS 9): pieces side by side, each verified, then the whole.

Knows recipes of compression and how to ask again; opens no intervention. A piece that the model can not shorten soundly keeps
verbatim spans of itself.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pandora_dagster.contracts.calls import CallRequest, CallResult, CallSite, InputDocument
from pandora_dagster.contracts.ports import CountsTokens
from pandora_dagster.contracts.recipes import LoadedRecipe
from pandora_dagster.contracts.words import ContentType, InterventionType, ModelLayer, OutputFormat
from pandora_dagster.execution.chunks import Chunk, Way, split
from pandora_dagster.execution.faults import CallFaultError, Fault
from pandora_dagster.execution.ladder import Contract, Judged, like, wanted

MOST_CALLS = 48
"""Pieces of one text at most; a longer text is condensed by structure, without a model."""
SIDE_BY_SIDE = 4
ASKED = 2
"""How often a piece is asked for: once, and once more with exactly what was missing."""
_HINT_ROOM = 90
_LONGEST_QUERY = 60
_FRAME = 60
"""Tokens of the frames around document, query and variables."""
_LEAST_ROOM = 80
_DOWN = frozenset({InterventionType.RUNTIME_UNREACHABLE, InterventionType.TIMEOUT, InterventionType.CONFIG_ERROR})
"""Faults that the next piece would meet too: the compression stops, and its caller HALTs."""


class Attempts(Protocol):
    """The executor, as it is asked here: a failed call comes back as a fault."""

    async def attempt(self, request: CallRequest) -> CallResult | Fault: ...


@dataclass(frozen=True, slots=True)
class _Work:
    """One text under way."""

    contract: Contract
    loaded: LoadedRecipe
    hints: tuple[str, ...]
    site: CallSite
    query: str
    places: asyncio.Semaphore
    deferred: list[str] = field(default_factory=list[str])
    """Why the session's limits put a call off: the pieces after it are not asked for."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """A whole with its verdicts, and how many of its pieces the model shortened; the other ones keep verbatim spans of themselves."""

    judged: Judged
    by_model: int
    by_structure: int
    deferred: str = ""
    """Why pieces that a model would have shortened were not asked for."""


class ModelCompression:
    """Shortens by calls of a compression recipe."""

    def __init__(self, calls: Attempts, counter: CountsTokens, layer: ModelLayer = ModelLayer.NERVES) -> None:
        self._calls, self._counter, self.layer = calls, counter, layer

    async def shortened(self, contract: Contract, loaded: LoadedRecipe, hints: Sequence[str], site: CallSite) -> Shortened | None:
        """The whole, judged; None where the text is none for a model. Raises CallFaultError where the model is down."""
        query = contract.query if self._counter.count(contract.query) <= _LONGEST_QUERY else ""
        work = _Work(contract, loaded, tuple(hints), site, query, asyncio.Semaphore(SIDE_BY_SIDE))
        chunks = self._chunks(work)
        if sum(c.way == "model" for c in chunks) > MOST_CALLS or not any(c.way == "model" for c in chunks):
            return None
        pieces = await self._pieces(work, chunks)
        judged = contract.mended(contract.judge("".join(text for text, _ in pieces)))
        ways = [way for _, way in pieces]
        deferred = work.deferred[0] if work.deferred else ""
        return Shortened(judged, ways.count("model"), ways.count("structure"), deferred)

    def _chunks(self, work: _Work) -> tuple[Chunk, ...]:
        """Pieces for one call each. A page is JSON: it goes as one, or not at all."""
        budget = work.loaded.recipe.token_budget
        room = budget.input - _FRAME - _HINT_ROOM - self._counter.count(work.query)
        share = work.contract.target / max(1, self._counter.count(work.contract.text))
        size = max(_LEAST_ROOM, min(room, int(budget.output * 0.9 / share)))
        tokens = self._counter.count(work.contract.text)
        if work.loaded.recipe.output_format is OutputFormat.JSON:
            return (Chunk(work.contract.text, tokens, "model" if tokens <= size else "structure"),)
        if tokens > 2 * MOST_CALLS * size:
            return ()
        return split(work.contract.text, size=size, count=self._counter.count)

    async def _pieces(self, work: _Work, chunks: Sequence[Chunk]) -> list[tuple[str, Way]]:
        """The pieces' texts in order, each with the way it was made; stops all where one finds the model down (CallFaultError)."""
        fixed = sum(c.tokens for c in chunks if c.way == "verbatim")
        loose = sum(c.tokens for c in chunks if c.way != "verbatim")
        share = max(0.0, work.contract.target - fixed) / max(1, loose)
        tasks = [asyncio.ensure_future(self._piece(work, chunk, int(chunk.tokens * share))) for chunk in chunks]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _piece(self, work: _Work, chunk: Chunk, target: int) -> tuple[str, Way]:
        if chunk.way == "verbatim" or chunk.tokens <= target:
            return chunk.text, "verbatim"
        own = replace(work.contract, text=chunk.text, target=max(1, target), content_type=_inner(work.contract), original="", name="")
        judged = None
        if chunk.way == "model":
            async with work.places:
                judged = None if work.deferred else await self._asked(work, own)
        if judged:
            return like(judged.text, chunk.text), "model"
        text = own.spans().text
        return (chunk.text, "verbatim") if text is None else (like(text, chunk.text), "structure")

    async def _asked(self, work: _Work, own: Contract) -> Judged | None:
        """The first sound answer; else the better one with its missing facts put back; None where that is not sound either."""
        best: Judged | None = None
        hints = work.hints
        for _ in range(ASKED):
            answer = await self._answer(work, own, hints)
            if work.deferred:
                break
            if answer is None:
                continue
            judged = own.judge(answer)
            if judged.ok and not judged.lost:
                return judged
            if best is None or len(judged.reasons) <= len(best.reasons):
                best = judged
            hints = wanted(judged, work.hints, room=_HINT_ROOM, counter=self._counter)
        mended = own.mended(best) if best else None
        return mended if mended and mended.ok else None

    async def _answer(self, work: _Work, own: Contract, hints: Sequence[str]) -> str | None:
        recipe = work.loaded.recipe
        request = CallRequest(
            recipe=work.loaded.path,
            query=work.query,
            site=work.site,
            documents=(InputDocument(recipe.input_docs[0], own.text),),
            layer=self.layer,
            variables={"target_tokens": str(own.target), "preserve": "; ".join(hints) or "nothing more"},
        )
        outcome = await self._calls.attempt(request)
        if isinstance(outcome, Fault):
            if outcome.deferred:
                work.deferred.append(outcome.message)
            elif outcome.type in _DOWN:
                raise CallFaultError(outcome)
            return None
        return json.dumps(outcome.parsed, ensure_ascii=False) if recipe.output_format is OutputFormat.JSON else outcome.text


def _inner(contract: Contract) -> ContentType:
    """A piece of context.md is no context.md: its section 0 stands elsewhere."""
    return ContentType.GENERIC if contract.content_type is ContentType.CONTEXT_DOC else contract.content_type
