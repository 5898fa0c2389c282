"""Compression by a model in calls of 500 tokens (000 section 23, DECISIONS 9): pieces side by side, each verified, then the whole.

Knows recipes of compression and how to ask again; opens no intervention. A piece that the model can not shorten soundly keeps
verbatim spans of itself.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType, InterventionType, ModelLayer, OutputFormat
from pandora_dagster.contracts.model_calls import CallRequest, CallResult, CallSite, InputDocument
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.execution.call_faults import CallFault, CallFaultError
from pandora_dagster.execution.fit.call_budget import TokenCountFunction
from pandora_dagster.execution.fit.compression_contract import CompressionContract, CompressionJudgement, keep_hints, with_original_margins

MAX_CALLS = 48
"""Pieces of one text at most; a longer text is condensed by structure, without a model."""
MAX_CONCURRENT_CALLS = 4
MAX_ATTEMPTS_PER_PIECE = 2
"""How often a piece is asked for: once, and once more with exactly what was missing."""
_HINT_ROOM = 90
_LONGEST_QUERY = 60
_FRAME = 60
"""Tokens of the frames around document, query and variables."""
_LEAST_ROOM = 80
_RUNTIME_DOWN = frozenset({InterventionType.RUNTIME_UNREACHABLE, InterventionType.TIMEOUT, InterventionType.CONFIG_ERROR})
"""Faults that the next piece would meet too: the compression stops, and its caller HALTs."""
ChunkMethod = Literal["verbatim", "model", "structure"]
_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?(?:^\1[ \t]*(?:\n|\Z)|\Z)", re.MULTILINE | re.DOTALL)
_META = re.compile(r"^`{3,}yaml\n_meta:")
_PARAGRAPH = re.compile(r".*?(?:\n[ \t]*\n+|\Z)", re.DOTALL)
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_SENTENCE = re.compile(r".+?(?:[.!?]\s+|\Z)", re.DOTALL)
_SMALLEST = 40
"""Tokens below which a piece stays unchanged: a call would not make it shorter."""


class AttemptExecutor(Protocol):
    """The executor, as it is asked here: a failed call comes back as a fault."""

    async def attempt(self, request: CallRequest) -> CallResult | CallFault: ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a text and its method of compression."""

    text: str
    tokens: int
    way: ChunkMethod


@dataclass(frozen=True, slots=True)
class _CompressionTask:
    """One text under way."""

    contract: CompressionContract
    loaded: LoadedRecipe
    site: CallSite
    query: str
    places: asyncio.Semaphore
    deferred: list[str] = field(default_factory=list[str])
    """Why the session's limits put a call off: the pieces after it are not asked for."""


@dataclass(frozen=True, slots=True)
class ModelCompressionResult:
    """A whole with its verdicts, and how many of its pieces the model shortened; the other ones keep verbatim spans of themselves."""

    judged: CompressionJudgement
    by_model: int
    by_structure: int
    deferred: str = ""
    """Why pieces that a model would have shortened were not asked for."""


class ModelCompression:
    """Shortens by calls of a compression recipe."""

    def __init__(self, calls: AttemptExecutor, counter: TokenMeasure, layer: ModelLayer = ModelLayer.NERVES) -> None:
        self._calls, self._counter, self.layer = calls, counter, layer

    async def compress(self, contract: CompressionContract, loaded: LoadedRecipe, site: CallSite) -> ModelCompressionResult | None:
        """The whole, judged; None where the text is none for a model. Raises CallFaultError where the model is down."""
        query = contract.request.query
        query = query if self._counter.count(query) <= _LONGEST_QUERY else ""
        work = _CompressionTask(contract, loaded, site, query, asyncio.Semaphore(MAX_CONCURRENT_CALLS))
        chunks = self._chunks(work)
        if sum(c.way == "model" for c in chunks) > MAX_CALLS or not any(c.way == "model" for c in chunks):
            return None
        pieces = await self._compress_chunks(work, chunks)
        judged = contract.repair(contract.judge("".join(text for text, _ in pieces)))
        ways = [way for _, way in pieces]
        deferred = work.deferred[0] if work.deferred else ""
        return ModelCompressionResult(judged, ways.count("model"), ways.count("structure"), deferred)

    def _chunks(self, work: _CompressionTask) -> tuple[Chunk, ...]:
        """Pieces for one call each. A page is JSON: it goes as one, or not at all."""
        budget = work.loaded.recipe.token_budget
        room = budget.input - _FRAME - _HINT_ROOM - self._counter.count(work.query)
        text = work.contract.request.text
        tokens = self._counter.count(text)
        share = work.contract.request.target / max(1, tokens)
        size = max(_LEAST_ROOM, min(room, int(budget.output * 0.9 / share)))
        if work.loaded.recipe.output_format is OutputFormat.JSON:
            return (Chunk(text, tokens, "model" if tokens <= size else "structure"),)
        if tokens > 2 * MAX_CALLS * size:
            return ()
        return split_text(text, size=size, count=self._counter.count)

    async def _compress_chunks(self, work: _CompressionTask, chunks: Sequence[Chunk]) -> list[tuple[str, ChunkMethod]]:
        """The pieces' texts in order, each with the way it was made; stops all where one finds the model down (CallFaultError)."""
        fixed = sum(c.tokens for c in chunks if c.way == "verbatim")
        loose = sum(c.tokens for c in chunks if c.way != "verbatim")
        share = max(0.0, work.contract.request.target - fixed) / max(1, loose)
        tasks = [asyncio.ensure_future(self._compress_chunk(work, chunk, int(chunk.tokens * share))) for chunk in chunks]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _compress_chunk(self, work: _CompressionTask, chunk: Chunk, target: int) -> tuple[str, ChunkMethod]:
        if chunk.way == "verbatim" or chunk.tokens <= target:
            return chunk.text, "verbatim"
        request = CompressionRequest(
            chunk.text, content_type=_piece_content_type(work.contract), query=work.contract.request.query, target=max(1, target)
        )
        own = CompressionContract(request, work.contract.counter)
        judged = None
        if chunk.way == "model":
            async with work.places:
                judged = None if work.deferred else await self._ask_model(work, own)
        if judged:
            return with_original_margins(judged.text, chunk.text), "model"
        text = own.compress_to_spans().text
        return (chunk.text, "verbatim") if text is None else (with_original_margins(text, chunk.text), "structure")

    async def _ask_model(self, work: _CompressionTask, own: CompressionContract) -> CompressionJudgement | None:
        """The first sound answer; else the better one with its missing facts put back; None where that is not sound either."""
        best: CompressionJudgement | None = None
        preserve = work.contract.request.preserve
        hints = preserve
        for _ in range(MAX_ATTEMPTS_PER_PIECE):
            answer = await self._single_answer(work, own, hints)
            if work.deferred:
                break
            if answer is None:
                continue
            judged = own.judge(answer)
            if judged.ok and not judged.lost:
                return judged
            if best is None or len(judged.reasons) <= len(best.reasons):
                best = judged
            hints = keep_hints(judged, preserve, room=_HINT_ROOM, counter=self._counter)
        mended = own.repair(best) if best else None
        return mended if mended and mended.ok else None

    async def _single_answer(self, work: _CompressionTask, own: CompressionContract, hints: Sequence[str]) -> str | None:
        recipe = work.loaded.recipe
        request = CallRequest(
            recipe=work.loaded.path,
            query=work.query,
            site=work.site,
            documents=(InputDocument(recipe.input_docs[0], own.request.text),),
            layer=self.layer,
            variables={"target_tokens": str(own.request.target), "preserve": "; ".join(hints) or "nothing more"},
        )
        outcome = await self._calls.attempt(request)
        if isinstance(outcome, CallFault):
            if outcome.deferred:
                work.deferred.append(outcome.message)
            elif outcome.type in _RUNTIME_DOWN:
                raise CallFaultError(outcome)
            return None
        return json.dumps(outcome.parsed, ensure_ascii=False) if recipe.output_format is OutputFormat.JSON else outcome.text


def _piece_content_type(contract: CompressionContract) -> ContentType:
    """A piece of context.md is no context.md: its section 0 stands elsewhere."""
    return ContentType.GENERIC if contract.content_type is ContentType.CONTEXT_DOC else contract.content_type


# A text in pieces that fit a compression call, split at structural borders only (DECISIONS 9). Joined again, it is the text. No section,
# fence, paragraph, line or sentence is cut: a larger piece without a border inside is condensed by structure, without a model.


def split_text(text: str, *, size: int, count: TokenCountFunction) -> tuple[Chunk, ...]:
    """`text` in chunks of at most `size` tokens where it has borders; section 0, headings and `_meta` blocks stay verbatim."""
    chunks: list[Chunk] = []
    for piece, is_fixed in _pieces(text):
        if is_fixed:
            chunks.append(Chunk(piece, count(piece), "verbatim"))
        else:
            chunks += _merge_neighbours(_split_at_borders(piece, size, count), size, count)
    return tuple(chunks)


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The stretches of the text, and whether each must stay verbatim."""
    document = ContextDocument.parse(text)
    yield from _fence_aware_pieces(document.preamble)
    for section in document.sections:
        if section.number == 0:
            yield section.text, True
        else:
            yield section.heading, True
            yield from _fence_aware_pieces(section.body)


def _fence_aware_pieces(text: str) -> Iterator[tuple[str, bool]]:
    at = 0
    for fence in _FENCE.finditer(text):
        if _META.match(fence.group()):
            if text[at : fence.start()]:
                yield text[at : fence.start()], False
            yield fence.group(), True
            at = fence.end()
    if text[at:]:
        yield text[at:], False


def _split_at_borders(text: str, size: int, count: TokenCountFunction) -> Iterator[str]:
    """Paragraphs with their fences whole; of those over `size` the lines, of lines over `size` the sentences."""
    for paragraph in _paragraphs(text):
        if count(paragraph) <= size or paragraph.lstrip().startswith(("```", "~~~")):
            yield paragraph
            continue
        for line in _LINE.findall(paragraph):
            yield from [line] if count(line) <= size or line.lstrip()[:1] in "{[" else _SENTENCE.findall(line)


def _paragraphs(text: str) -> Iterator[str]:
    at = 0
    for fence in _FENCE.finditer(text):
        yield from (p for p in _PARAGRAPH.findall(text[at : fence.start()]) if p)
        yield fence.group()
        at = fence.end()
    yield from (p for p in _PARAGRAPH.findall(text[at:]) if p)


def _merge_neighbours(parts: Iterator[str], size: int, count: TokenCountFunction) -> list[Chunk]:
    """Neighbours together as long as they fit."""
    chunks: list[Chunk] = []
    held, tokens = "", 0
    for part in parts:
        cost = count(part)
        if held and tokens + cost > size:
            chunks.append(_text_chunk(held, tokens, size))
            held, tokens = "", 0
        held, tokens = held + part, tokens + cost
    return [*chunks, _text_chunk(held, tokens, size)] if held else chunks


def _text_chunk(text: str, tokens: int, size: int) -> Chunk:
    way: ChunkMethod = "structure" if tokens > size else "verbatim" if tokens < _SMALLEST else "model"
    return Chunk(text, tokens, way)
