"""The command `compress`: any text within a token target, with a verdict for every fact."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandora_dagster.cli.app_context import settings_of
from pandora_dagster.cli.output import EXIT_HALTED, EXIT_WRONG, exit_with, print_json, print_line, print_note
from pandora_dagster.errors import InputError

if TYPE_CHECKING:
    from pandora_dagster.settings import Settings

_TYPES = "context.md, research.md, page_doc, tool_result, prior_turn or generic; detected without."

_SHOWN, _SHOWN_SIGNS = 5, 100
"""Facts that the plain report names, and characters of each."""


def register(app: typer.Typer) -> None:
    app.command("compress")(compress)


def compress(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="A UTF-8 text file; - for stdin.")] = "",
    target_tokens: Annotated[int | None, typer.Option("--target-tokens", help="Tokens (cl100k) that the text may have.")] = None,
    content_type: Annotated[str, typer.Option("--type", help=_TYPES)] = "",
    query: Annotated[str, typer.Option("--query", help="What the text will be read for.")] = "",
    original: Annotated[
        str, typer.Option("--original", help="What was compressed first, where FILE is a compression already: its facts are judged.")
    ] = "",
    jsonl: Annotated[
        str, typer.Option("--jsonl", help="JSON lines with id, text, target_tokens, and perhaps type, query and original.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Compress a text; nothing that must be kept is lost, or the command says why it HALTs. Exit code 1 for a HALT, 2 for bad input.

    Each line of --jsonl gives one line, in order: id, text (null for a HALT), tokens, facts, missing, changed, halted (null, or why). A
    line that can not be read gives one too, with its number as line; the exit code is 1 then.

    With --original the contract is with that text, over any number of generations: facts are counted and named missing by it, and what
    must be kept of it is put back where the compression to be compressed again has lost it. A sentence that contradicts it is left out.

    Example: pandora compress notes.md --target-tokens 500 --query "What did the flight cost?"
    """
    if bool(file) == bool(jsonl):
        exit_with(EXIT_WRONG, "compress: expected either FILE or --jsonl")
    if jsonl:
        if target_tokens is not None or content_type or query or original:
            exit_with(EXIT_WRONG, "compress: --jsonl: its lines say target_tokens, type, query and original; expected no options for them")
        _lines(jsonl, settings_of(context))
    elif file == original == "-":
        exit_with(EXIT_WRONG, "compress: --original: stdin is FILE already; expected a file")
    elif target_tokens is None:
        exit_with(
            EXIT_WRONG, "compress: --target-tokens: missing; expected a number of tokens", "pandora compress FILE --target-tokens 500"
        )
    else:
        _file(file, original, target_tokens, content_type, query, settings_of(context), as_json=as_json)


def _file(file: str, original: str, target_tokens: int, content_type: str, query: str, settings: "Settings", *, as_json: bool) -> None:
    from pandora_dagster.app.compression_service import CompressionRequest, broken_json_line, count_tokens, open_compressor

    name = "" if file == "-" else file
    wanted = CompressionRequest(file, _text(file), target_tokens, content_type, query, _text(original) if original else "", name)
    with open_compressor(settings) as compressed:
        answer = compressed(wanted)
    if as_json:
        print_json(answer)
    elif answer["text"] is not None:
        print_line(answer["text"])
    if broken := broken_json_line(wanted.text):
        print_note(f"pandora: {file}: broken JSON from line {broken} on: taken as text")
    print_note(_summary(answer, count_tokens(wanted.text, settings)))
    for name in ("changed", "missing") if answer["text"] is not None else ():
        if shown := [_short(fact) for fact in answer[name][:_SHOWN]]:
            more = len(answer[name]) - len(shown)
            print_note(f"pandora: {name}: {'; '.join(shown)}{f'; and {more} more' if more else ''}")
    if answer["halted"]:
        raise typer.Exit(EXIT_HALTED)


def _short(fact: str) -> str:
    """The beginning of a fact, on one line."""
    line = " ".join(fact.split())
    return line if len(line) <= _SHOWN_SIGNS else f"{line[:_SHOWN_SIGNS]}\u2026"


def _lines(jsonl: str, settings: "Settings") -> None:
    """Every line is answered, also one that can not be tried; a HALT or a broken line makes the exit code 1."""
    from pandora_dagster.app.compression_service import answer_lines, open_compressor

    halted = False
    with open_compressor(settings) as compressed:
        for answer in answer_lines(_bytes(jsonl), compressed, where=jsonl):
            halted = halted or bool(answer["halted"])
            if "line" in answer:
                print_note(f"pandora: {answer['halted']}")
            print_line(json.dumps(answer, ensure_ascii=False))
    if halted:
        raise typer.Exit(EXIT_HALTED)


def _text(file: str) -> str:
    data = _bytes(file)
    if b"\0" in data[:8192]:
        raise InputError(f"{file}: a binary file: expected UTF-8 text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: byte {error.start} is not UTF-8: expected UTF-8 text") from error


def _bytes(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}: expected a file") from error


def _summary(answer: dict[str, Any], original: int) -> str:
    if answer["halted"]:
        return f"pandora: HALT: {answer['halted']} ({original:,} tokens)"
    counts = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in answer["facts"].items() if n and name != "total")
    return f"{original:,} -> {answer['tokens']:,} tokens; {answer['facts']['total']} facts: {counts or 'none'}"
