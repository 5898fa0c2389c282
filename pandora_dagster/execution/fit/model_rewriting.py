"""Compression by a model that rewrites (`compression.mode: rewrite`).

1 divide the text at structural borders into chunks of one call each (decision 9: docs/decisions/09-compression-calls-and-their-window.md)
2 let the model rewrite each chunk to its share of the target
3 compare each answer with its chunk: code checks values, names, dates, links, errors and force words (such as must, not, only)
4 ask a model whether statements that are not verbatim mean the same as their source
5 where an answer fails, keep whole units of its chunk instead; join the chunks
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pandora_dagster.compression.verification.facts import Statement
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import CallRequest, CallSite, InputDocument
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.documents.delimited_blocks import fenced_spans
from pandora_dagster.execution.fit.call_budget import TokenCountFunction
from pandora_dagster.execution.fit.compression_calls import FRAME_TOKENS, MAX_CALLS, CompressionCalls, PieceTexts, gather_or_cancel
from pandora_dagster.execution.fit.compression_contract import CompressionContract, with_original_margins
from pandora_dagster.execution.fit.text_stretches import stretches_within

_MIN_CHUNK_TOKENS = 80
_OUTPUT_SHARE = 0.9
"""Share of the output budget that a shortened chunk may take."""
_MIN_MODEL_TOKENS = 40
"""A smaller chunk stays unchanged: a call would not shorten it."""
ChunkMethod = Literal["verbatim", "model", "structure"]
_PARAGRAPH = re.compile(r".*?(?:\n[ \t]*\n+|\Z)", re.DOTALL)
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_SENTENCE = re.compile(r".+?(?:[.!?]\s+|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk of a text, and the method of compression that is planned for it, or that was used once it is shortened."""

    text: str
    tokens: int
    """Tokens before it is shortened."""
    method: ChunkMethod
    unchecked: tuple[str, ...] = ()
    """Rewritten statements whose meaning was not judged."""


class ModelRewriting:
    """Rewrites one text by calls of a compression recipe.

    `call`: the request that all its rewriting calls share; `meaning`: the recipe that judges what they wrote.
    """

    def __init__(self, calls: CompressionCalls, call: CallRequest, loaded: LoadedRecipe, counter: TokenMeasure, meaning: str) -> None:
        self._calls, self._call, self._loaded, self._counter = calls, call, loaded, counter
        self._meaning = MeaningCheck(calls, meaning, call.site)

    async def compress(self, contract: CompressionContract) -> PieceTexts | None:
        """The shortened text; None where the model shortened nothing. Raises CallFaultError where the model is down."""
        chunks = self._chunks(contract)
        if not 0 < sum(c.method == "model" for c in chunks) <= MAX_CALLS:
            return None
        verbatim_tokens = sum(c.tokens for c in chunks if c.method == "verbatim")
        other_tokens = sum(c.tokens for c in chunks if c.method != "verbatim")
        share = max(0.0, contract.request.target - verbatim_tokens) / max(1, other_tokens)
        shortened = await gather_or_cancel(self._shorten(contract, chunk, int(chunk.tokens * share)) for chunk in chunks)
        methods = [chunk.method for chunk in shortened]
        if "model" not in methods:
            return None
        text = "".join(chunk.text for chunk in shortened)
        unchecked = tuple(statement for chunk in shortened for statement in chunk.unchecked)
        return PieceTexts(text, methods.count("model"), methods.count("structure"), unchecked)

    def _chunks(self, contract: CompressionContract) -> Sequence[Chunk]:
        """Chunks for one call each; none where the text is so large that it would take too many calls."""
        budget, text = self._loaded.recipe.token_budget, contract.request.text
        preserve_tokens = self._counter.count("; ".join(contract.request.preserve))
        input_tokens = budget.input - FRAME_TOKENS - preserve_tokens - self._counter.count(self._call.query)
        tokens = self._counter.count(text)
        share = contract.request.target / max(1, tokens)
        size = max(_MIN_CHUNK_TOKENS, min(input_tokens, int(budget.output * _OUTPUT_SHARE / share)))
        if tokens > 2 * MAX_CALLS * size:  # then half of the text alone takes more than MAX_CALLS calls
            return ()
        return split_text(text, size=size, count=self._counter.count, target=contract.request.target)

    async def _shorten(self, contract: CompressionContract, chunk: Chunk, target: int) -> Chunk:
        """The chunk within `target`: rewritten by the model, else in whole units, else unchanged."""
        if chunk.method == "verbatim" or chunk.tokens <= target:
            return replace(chunk, method="verbatim")
        # a chunk of context.md lacks section 0, so it is treated as any other text
        content_type = ContentType.GENERIC if contract.content_type is ContentType.CONTEXT_DOC else contract.content_type
        request = CompressionRequest(chunk.text, content_type=content_type, query=contract.request.query, target=max(1, target))
        chunk_contract = CompressionContract(request, self._counter)
        if chunk.method == "model" and (rewritten := await self._rewrite(chunk, chunk_contract, contract.request.preserve)):
            return rewritten
        from pandora_dagster.compression.compressor import compress

        text = compress(chunk_contract.request, self._counter).text
        if text is None:
            return replace(chunk, method="verbatim")
        return replace(chunk, text=with_original_margins(text, chunk.text), method="structure")

    async def _rewrite(self, chunk: Chunk, contract: CompressionContract, preserve: Sequence[str]) -> Chunk | None:
        """The chunk as the model rewrote it; None where the answer changes or invents a fact, or changes the meaning of a statement."""
        recipe = self._loaded.recipe
        document = InputDocument(recipe.input_docs[0], contract.request.text)
        variables = {"target_tokens": str(contract.request.target), "preserve": "; ".join(preserve) or "-"}
        result = await self._calls.ask(replace(self._call, documents=(document,), variables=variables))
        if result is None:
            return None
        judgement = contract.judge(result.text)
        if not judgement.ok:
            return None
        statements = judgement.verification.for_review
        verdicts = await self._meaning.verdicts(statements)
        if "changed" in verdicts:
            return None
        unchecked = tuple(statement.text for statement, verdict in zip(statements, verdicts, strict=True) if verdict == "unclear")
        return replace(chunk, text=with_original_margins(result.text, chunk.text), unchecked=unchecked)


# Division of a text at structural borders: no section, fence, paragraph, line or sentence is cut. A larger chunk without a border inside
# keeps whole units, without a model. Joined again, the chunks are the text.


def split_text(text: str, *, size: int, count: TokenCountFunction, target: int = 0) -> tuple[Chunk, ...]:
    """`text` in chunks of at most `size` tokens where it has borders; each stretch that stays verbatim is a chunk of
    its own (`target` decides whether the newest section is one)."""
    chunks: list[Chunk] = []
    for stretch in stretches_within(text, target, count):
        if stretch.is_fixed:
            chunks.append(Chunk(stretch.text, count(stretch.text), "verbatim"))
        else:
            chunks += _merge_neighbours(_split_at_borders(stretch.text, size, count), size, count)
    return tuple(chunks)


def _split_at_borders(text: str, size: int, count: TokenCountFunction) -> Iterator[str]:
    """Paragraphs and whole fences; paragraphs over `size` as lines, lines over `size` as sentences unless they are JSON."""
    for paragraph in _paragraphs(text):
        if count(paragraph) <= size or paragraph.lstrip().startswith(("```", "~~~")):
            yield paragraph
            continue
        for line in _LINE.findall(paragraph):
            yield from [line] if count(line) <= size or line.lstrip().startswith(("{", "[")) else _SENTENCE.findall(line)


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a text, each with the blank lines after it; a fence is one paragraph."""
    position = 0
    for start, end in fenced_spans(text, unclosed=True):
        yield from (p for p in _PARAGRAPH.findall(text[position:start]) if p)
        position = end + text.startswith("\n", end)
        yield text[start:position]
    yield from (p for p in _PARAGRAPH.findall(text[position:]) if p)


def _merge_neighbours(parts: Iterator[str], size: int, count: TokenCountFunction) -> list[Chunk]:
    """Chunks of neighbouring parts, joined as long as they fit into `size` tokens."""
    chunks: list[Chunk] = []
    joined, tokens = "", 0
    for part in parts:
        part_tokens = count(part)
        if joined and tokens + part_tokens > size:
            chunks.append(_text_chunk(joined, tokens, size))
            joined, tokens = "", 0
        joined, tokens = joined + part, tokens + part_tokens
    return [*chunks, _text_chunk(joined, tokens, size)] if joined else chunks


def _text_chunk(text: str, tokens: int, size: int) -> Chunk:
    method: ChunkMethod = "structure" if tokens > size else "verbatim" if tokens < _MIN_MODEL_TOKENS else "model"
    return Chunk(text, tokens, method)


# Whether rewritten statements mean the same as their source, by a model (docs/decisions/36-form-by-code-meaning-by-a-model.md).
# A bounded number of statements that are not verbatim is judged; the others are listed as unchecked.

MAX_STATEMENTS = 8
"""Statements in one call; each rewritten chunk has one call, and its further statements stay unchecked."""
MAX_MEANING_CALLS = 12
"""Calls of one text that judge meaning; `MAX_CALLS` bounds those that rewrite."""


class MeaningCheck:
    """Asks a model for verdicts on rewritten statements, at most `MAX_MEANING_CALLS` times."""

    def __init__(self, calls: CompressionCalls, recipe: str, site: CallSite) -> None:
        self._calls, self._recipe, self._site, self._remaining_calls = calls, recipe, site, MAX_MEANING_CALLS

    async def verdicts(self, statements: Sequence[Statement]) -> tuple[str, ...]:
        """`same`, `changed` or `unclear` for each statement, in order; `unclear` also where no model judged it.

        Raises CallFaultError where the model is down.
        """
        judged = statements[:MAX_STATEMENTS] if self._remaining_calls else ()
        answers: Mapping[int, str] = {}
        if judged:
            self._remaining_calls -= 1
            pairs = [(" ".join(unit.text for unit in statement.sources), statement.text) for statement in judged]
            documents = (InputDocument("pairs", statement_pairs(pairs)),)
            result = await self._calls.ask(CallRequest(recipe=self._recipe, query="", site=self._site, documents=documents))
            answers = {entry["number"]: entry["verdict"] for entry in result.parsed["verdicts"]} if result else {}
        return tuple(answers.get(number, "unclear") for number in range(1, len(statements) + 1))


def statement_pairs(pairs: Sequence[tuple[str, str]]) -> str:
    """The document `pairs`: each statement under its source, numbered; further lines are indented, so that no text looks like a pair."""
    return "\n".join(
        f"[{number}] source: {_indent(source)}\n    statement: {_indent(statement)}"
        for number, (source, statement) in enumerate(pairs, start=1)
    )


def _indent(text: str) -> str:
    return "\n      ".join(text.strip().splitlines())
