"""Compression of single texts for the command line and for Python programs; `compression` and `execution` do the work.

from pandora_dagster.app.compression_service import compress_text
compress_text(open("long.md").read(), target_tokens=500)["text"]
"""

import codecs
import json
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from pandora_dagster.app.composition import open_app, open_counter
from pandora_dagster.compression.compressor import compress
from pandora_dagster.compression.verification.facts import Outcome
from pandora_dagster.compression.verification.report import describe_change, missing_statements
from pandora_dagster.compression.verification.text_facts import TextFacts, find_facts
from pandora_dagster.compression.verification.verifier import Verification, verify
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.contracts.enums import ContentType
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.documents.plain_json import PlainDataError, parse_json_object
from pandora_dagster.errors import HaltError, InputError, PandoraError
from pandora_dagster.execution.call_faults import CallFaultError
from pandora_dagster.execution.fit.summarization_engine import SummarizationEngine
from pandora_dagster.settings import Settings, load_settings, process_environment

__all__ = ["CompressionTask", "answer_lines", "broken_json_line", "compress_text", "content_type_named", "count_tokens", "open_compressor"]

_OUTCOME_ORDER = (
    Outcome.KEPT,
    Outcome.EQUAL,
    Outcome.RECOVERABLE,
    Outcome.DROPPED_BY_RULE,
    Outcome.MISSING,
    Outcome.MUTATED,
    Outcome.INVENTED,
)
"""The order of the verdicts in an answer, which clients may rely on."""
_FIELDS = {"id": (str, int), "text": str, "target_tokens": int, "type": str, "query": str, "original": str}
_OPTIONAL = frozenset({"type", "query", "original"})
_JSON_START = re.compile(r"\s*(?=\{\s*[\"}]|\[\s*[{\[\"])")
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
_BINARY_TEST_BYTES = 8_192
"""Bytes that are searched for a zero byte, the mark of a binary file."""
_MAX_LINE_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class CompressionTask:
    """One text to compress."""

    id: str | int
    text: str
    target_tokens: int
    type: str = ""
    query: str = ""
    original: str = ""
    """The first original where `text` is a compression already: facts are verified against it."""
    name: str = ""
    """The document's name: determines its type, and is the target of references to the whole text."""

    def request(self) -> CompressionRequest:
        """The request to compress it; raises InputError for an unknown type."""
        kind = content_type_named(self.type)
        return CompressionRequest(self.text, self.name, kind, self.original, self.query, target=self.target_tokens)


Compressor = Callable[[CompressionTask], dict[str, Any]]
"""A task -> its answer; raises InputError or HaltError."""


def compress_text(
    text: str,
    target_tokens: int,
    *,
    type: str = "",
    query: str = "",
    original: str = "",
    id: str | int = "",
    settings: Settings | None = None,
) -> dict[str, Any]:
    """`text` in at most `target_tokens` cl100k tokens, with a verdict for every fact (specification 001).

    `type` is a content type of specification 000, section 22, detected where it is empty. Where `text` is a compression already, `original`
    is what was compressed first: verdicts are about its facts, over any number of generations, and critical ones that `text` lost are put
    back. The answer has `id`, `text` (None where no sound text fits), `tokens`, `facts` (`total` and a number for each verdict), `kept`
    (the kept facts), `missing` (the statements that hold a lost fact), `changed` (the mutated or invented ones), `left_out` (the units of
    the text that are not in the result) and `halted` (None, or the reason).

    Raises InputError for a target under 1 or an unknown type, HaltError where a configured model cannot be reached.
    """
    with open_compressor(settings or load_settings(process_environment())) as compress_task:
        return compress_task(CompressionTask(id, text, target_tokens, type, query, original))


@contextmanager
def open_compressor(settings: Settings) -> Generator[Compressor]:
    """A function that answers tasks one at a time; the embedded runtime writes nothing, with a model calls are recorded."""
    if settings.runtime == "extractive":
        yield partial(_compress_by_structure, counter=open_counter())
        return
    app = open_app(settings)
    try:
        yield lambda task: app.run(_compress_by_engine(task, app.compression.engine, settings))
    finally:
        app.close()


def answer_lines(lines: bytes, compress_task: Compressor, *, where: str) -> Generator[dict[str, Any]]:
    """One answer for each line, in order. An invalid line has one too: its number as `line`, no text, no facts, and the error as
    `halted`. Raises InputError, before the first answer, where `lines` looks binary."""
    if b"\0" in lines[:_BINARY_TEST_BYTES]:
        raise InputError(f"{where}: a binary file: expected UTF-8 text with one JSON object a line")
    rows = lines.removeprefix(codecs.BOM_UTF8).split(b"\n")
    first_lines: dict[str | int, int] = {}
    for number, line in enumerate(rows[:-1] if not rows[-1] else rows, 1):
        yield _answer(line, number, f"{where}:{number}", compress_task, first_lines)


def _answer(line: bytes, number: int, where: str, compress_task: Compressor, first_lines: dict[str | int, int]) -> dict[str, Any]:
    """The answer of one line. `first_lines`: id -> the first line that has it."""
    fields: Mapping[str, Any] = {}
    try:
        fields = _parse_object(line, where)
        task = _parse_task(fields, where)
        if (first_line := first_lines.setdefault(task.id, number)) != number:
            raise InputError(f"{where}: id {task.id!r}: the same as in line {first_line}: expected another")
    except InputError as error:
        return _refusal(_id(fields), number, str(error))
    try:
        return compress_task(task)
    except PandoraError as error:
        return _refusal(task.id, number, f"{where}: {error}")


def _parse_object(line: bytes, where: str) -> Mapping[str, Any]:
    if len(line) > _MAX_LINE_BYTES:
        raise InputError(f"{where}: {len(line):,} bytes: expected at most {_MAX_LINE_BYTES:,}")
    if not line.strip():
        raise InputError(f"{where}: an empty line: expected one JSON object")
    try:
        return parse_json_object(line)
    except PlainDataError as error:
        expected = "one JSON object with id, text, target_tokens, and perhaps type, query and original"
        raise InputError(f"{where}: {error}: expected {expected}") from error


def _parse_task(line_fields: Mapping[str, Any], where: str) -> CompressionTask:
    """`{"id", "text", "target_tokens", "type"?, "query"?, "original"?}` as a task; raises InputError that names the fault."""
    if unknown := [name for name in line_fields if name not in _FIELDS]:
        raise InputError(f"{where}: {', '.join(map(repr, unknown[:5]))}: unknown: expected {', '.join(_FIELDS)}")
    fields: dict[str, Any] = {n: v for n, v in line_fields.items() if v is not None or n not in _OPTIONAL}
    for name, kind in _FIELDS.items():
        if name not in fields and name in _OPTIONAL:
            continue
        if not isinstance(fields.get(name), kind) or isinstance(fields.get(name), bool):
            raise InputError(f"{where}: {name}: missing or of the wrong type: expected {_type_name(kind)}")
    _check_text("".join(str(fields.get(name, "")) for name in _FIELDS), where)
    return CompressionTask(**{name: fields[name] for name in _FIELDS if name in fields})


def _id(fields: Mapping[str, Any]) -> str | int | None:
    """The id of a line; None where it is missing or not valid Unicode."""
    value = fields.get("id")
    if not isinstance(value, str | int) or isinstance(value, bool):
        return None
    return None if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value) else value


def _check_text(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: half a surrogate pair (\\u{ord(error.object[error.start]):04x}): expected Unicode text") from error


def _refusal(id: str | int | None, number: int, reason: str) -> dict[str, Any]:
    answer = _answer_object(id, None, 0, None, Verification(()), reason)
    return {"id": answer.pop("id"), "line": number, **answer}


def count_tokens(text: str) -> int:
    """Tokens of a text, as targets count them."""
    return open_counter().count(text)


def broken_json_line(text: str) -> int | None:
    """The line, from 1, where a text that begins as JSON becomes invalid; None for JSON, JSON lines and other texts."""
    position = 0
    while start := _JSON_START.match(text, position):
        try:
            _, position = _DECODER.raw_decode(text, start.end())
        except json.JSONDecodeError as error:
            return text.count("\n", 0, error.pos) + 1
        except (ValueError, RecursionError):
            return None
    return None


def content_type_named(name: str) -> ContentType | None:
    """The content type called `name`, None for ""; raises InputError."""
    if not name:
        return None
    try:
        return ContentType(name)
    except ValueError:
        raise InputError(f"type {name!r}: expected one of {', '.join(ContentType)}") from None


def _compress_by_structure(task: CompressionTask, counter: TokenMeasure) -> dict[str, Any]:
    compressed = compress(task.request(), counter)
    return _answer_object(
        task.id, compressed.text, compressed.tokens, compressed.original_facts, compressed.verification, compressed.halt_reason
    )


async def _compress_by_engine(task: CompressionTask, engine: SummarizationEngine, settings: Settings) -> dict[str, Any]:
    if task.target_tokens < 1:
        raise InputError(f"compress: target_tokens: {task.target_tokens}: expected at least 1 token")
    request = task.request()
    site = CallSite("compress", settings.user)
    try:
        compressed = await engine.compress(request, site=site)
    except CallFaultError as error:
        raise HaltError(f"compress: {error.fault.message}", intervention_id="", hint=error.fault.hint) from error
    text_facts = find_facts(request.source)
    verification = compressed.verification or verify(text_facts, compressed.text or "")
    return _answer_object(task.id, compressed.text, compressed.tokens, text_facts, verification, compressed.halted or None)


def _answer_object(
    id: str | int | None, text: str | None, tokens: int, text_facts: TextFacts | None, verification: Verification, halted: str | None
) -> dict[str, Any]:
    facts = {"total": verification.counts["total"]} | {outcome.value: verification.counts[outcome.value] for outcome in _OUTCOME_ORDER}
    changed = [*verification.changed, *verification.invented] if text is not None else []
    return {
        "id": id,
        "text": text,
        "tokens": tokens,
        "facts": facts,
        "kept": [v.text for v in verification.kept] if text is not None else [],
        "missing": missing_statements(text_facts, verification.lost) if text_facts else [],
        "changed": [describe_change(v) for v in changed],
        "left_out": [unit.text for unit in verification.left_out],
        "halted": halted,
    }


def _type_name(kind: type | tuple[type, ...]) -> str:
    names = {str: "a string", int: "a whole number"}
    return " or ".join(names[k] for k in (kind if isinstance(kind, tuple) else (kind,)))
