"""Compression by a model that writes (`compression.mode: rewrite`), in calls of 500 tokens (DECISIONS 9), each piece verified.

Code checks values, names, dates, links, errors and force words; whether the meaning was turned is asked of a model, for statements that
are not verbatim. A piece that the model does not shorten soundly keeps whole units of itself.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pandora_dagster.compression.compressor import compress
from pandora_dagster.compression.verification.facts import Statement
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import CallRequest, CallSite, InputDocument
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.execution.fit.call_budget import TokenCountFunction
from pandora_dagster.execution.fit.compression_calls import FRAME_TOKENS, MAX_CALLS, CompressionCalls, PieceTexts, gather_or_cancel
from pandora_dagster.execution.fit.compression_contract import CompressionContract, with_original_margins
from pandora_dagster.execution.fit.text_stretches import text_stretches

_LEAST_ROOM = 80
_SMALLEST = 40
"""Tokens below which a piece stays unchanged: a call would not make it shorter."""
ChunkMethod = Literal["verbatim", "model", "structure"]
_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?(?:^\1[ \t]*(?:\n|\Z)|\Z)", re.MULTILINE | re.DOTALL)
_PARAGRAPH = re.compile(r".*?(?:\n[ \t]*\n+|\Z)", re.DOTALL)
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_SENTENCE = re.compile(r".+?(?:[.!?]\s+|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a text and its method of compression: the one it is for, or once it is shortened, the one that was used."""

    text: str
    tokens: int
    """Before it is shortened."""
    way: ChunkMethod
    unchecked: tuple[str, ...] = ()
    """Rewritten statements whose meaning was not judged."""


class ModelRewriting:
    """The rewriting of one text by calls of a compression recipe; `call` is what all its calls share, `meaning` the recipe that judges
    what they wrote."""

    def __init__(self, calls: CompressionCalls, call: CallRequest, loaded: LoadedRecipe, counter: TokenMeasure, meaning: str) -> None:
        self._calls, self._call, self._loaded, self._counter = calls, call, loaded, counter
        self._meaning = MeaningCheck(calls, meaning, call.site)

    async def compress(self, contract: CompressionContract) -> PieceTexts | None:
        """The whole; None where the model shortened nothing. Raises CallFaultError where the model is down."""
        chunks = self._chunks(contract)
        if not 0 < sum(c.way == "model" for c in chunks) <= MAX_CALLS:
            return None
        fixed = sum(c.tokens for c in chunks if c.way == "verbatim")
        loose = sum(c.tokens for c in chunks if c.way != "verbatim")
        share = max(0.0, contract.request.target - fixed) / max(1, loose)
        pieces = await gather_or_cancel(self._shortened(contract, chunk, int(chunk.tokens * share)) for chunk in chunks)
        ways = [piece.way for piece in pieces]
        if "model" not in ways:
            return None
        text = "".join(piece.text for piece in pieces)
        return PieceTexts(text, ways.count("model"), ways.count("structure"), tuple(s for piece in pieces for s in piece.unchecked))

    def _chunks(self, contract: CompressionContract) -> Sequence[Chunk]:
        """Pieces for one call each; none of a text that would take too many calls."""
        budget, text = self._loaded.recipe.token_budget, contract.request.text
        hints = self._counter.count("; ".join(contract.request.preserve))
        room = budget.input - FRAME_TOKENS - hints - self._counter.count(self._call.query)
        tokens = self._counter.count(text)
        share = contract.request.target / max(1, tokens)
        size = max(_LEAST_ROOM, min(room, int(budget.output * 0.9 / share)))
        return split_text(text, size=size, count=self._counter.count) if tokens <= 2 * MAX_CALLS * size else ()

    async def _shortened(self, whole: CompressionContract, chunk: Chunk, target: int) -> Chunk:
        if chunk.way == "verbatim" or chunk.tokens <= target:
            return replace(chunk, way="verbatim")
        # a piece of context.md is no context.md: its section 0 is elsewhere
        kind = ContentType.GENERIC if whole.content_type is ContentType.CONTEXT_DOC else whole.content_type
        request = CompressionRequest(chunk.text, content_type=kind, query=whole.request.query, target=max(1, target))
        own = CompressionContract(request, self._counter)
        if chunk.way == "model" and (written := await self._sound_answer(chunk, own, whole.request.preserve)):
            return written
        text = compress(own.request, self._counter).text
        if text is None:
            return replace(chunk, way="verbatim")
        return replace(chunk, text=with_original_margins(text, chunk.text), way="structure")

    async def _sound_answer(self, chunk: Chunk, own: CompressionContract, preserve: Sequence[str]) -> Chunk | None:
        """The chunk as an answer that neither changes nor invents anything, and of which no statement was found to be turned."""
        recipe = self._loaded.recipe
        document = InputDocument(recipe.input_docs[0], own.request.text)
        variables = {"target_tokens": str(own.request.target), "preserve": "; ".join(preserve) or "nothing more"}
        result = await self._calls.ask(replace(self._call, documents=(document,), variables=variables))
        if result is None:
            return None
        judged = own.judge(result.text)
        if not judged.ok:
            return None
        statements = judged.verification.for_review
        verdicts = await self._meaning.verdicts(statements)
        if "changed" in verdicts:
            return None
        unchecked = tuple(one.text for one, verdict in zip(statements, verdicts, strict=True) if verdict == "unclear")
        return replace(chunk, text=with_original_margins(result.text, chunk.text), unchecked=unchecked)


# A text in pieces that fit a compression call, split at structural borders only (DECISIONS 9). Joined again, it is the text. No section,
# fence, paragraph, line or sentence is cut: a larger piece without a border inside keeps whole units, without a model.


def split_text(text: str, *, size: int, count: TokenCountFunction) -> tuple[Chunk, ...]:
    """`text` in chunks of at most `size` tokens where it has borders; what must stay verbatim is a chunk of its own."""
    chunks: list[Chunk] = []
    for stretch in text_stretches(text):
        if stretch.is_fixed:
            chunks.append(Chunk(stretch.text, count(stretch.text), "verbatim"))
        else:
            chunks += _merge_neighbours(_split_at_borders(stretch.text, size, count), size, count)
    return tuple(chunks)


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
    joined, tokens = "", 0
    for part in parts:
        cost = count(part)
        if joined and tokens + cost > size:
            chunks.append(_text_chunk(joined, tokens, size))
            joined, tokens = "", 0
        joined, tokens = joined + part, tokens + cost
    return [*chunks, _text_chunk(joined, tokens, size)] if joined else chunks


def _text_chunk(text: str, tokens: int, size: int) -> Chunk:
    way: ChunkMethod = "structure" if tokens > size else "verbatim" if tokens < _SMALLEST else "model"
    return Chunk(text, tokens, way)


# Whether rewritten statements mean what their source says: asked of a model by a recipe that the caller names (DECISIONS 36). Only
# statements that are not verbatim are asked for, a bounded number of them. What no model judged stays listed as unchecked.

MAX_STATEMENTS = 8
"""Statements of one call; one rewritten piece is one call, and its further statements stay unchecked."""
MAX_CALLS_PER_TEXT = 12


class MeaningCheck:
    """Asks for verdicts, at most `MAX_CALLS_PER_TEXT` times."""

    def __init__(self, calls: CompressionCalls, recipe: str, site: CallSite) -> None:
        self._calls, self._recipe, self._site, self._left = calls, recipe, site, MAX_CALLS_PER_TEXT

    async def verdicts(self, statements: Sequence[Statement]) -> tuple[str, ...]:
        """`same`, `changed` or `unclear` for each statement, in order; `unclear` also where no model judged it. Raises CallFaultError where
        the model is down."""
        asked = statements[:MAX_STATEMENTS] if self._left else ()
        answers: Mapping[int, str] = {}
        if asked:
            self._left -= 1
            documents = (InputDocument("pairs", _statement_pairs(asked)),)
            result = await self._calls.ask(CallRequest(recipe=self._recipe, query="", site=self._site, documents=documents))
            answers = {entry["number"]: entry["verdict"] for entry in result.parsed["verdicts"]} if result else {}
        return tuple(answers.get(number, "unclear") for number in range(1, len(statements) + 1))


def _statement_pairs(statements: Sequence[Statement]) -> str:
    """The document `pairs`: each statement under its source, numbered; further lines are indented, so that no text looks like a pair."""
    return "\n".join(
        f"[{number}] source: {_indented(' '.join(unit.text for unit in one.sources))}\n    statement: {_indented(one.text)}"
        for number, one in enumerate(statements, start=1)
    )


def _indented(text: str) -> str:
    return "\n      ".join(text.strip().splitlines())
