"""The command `compress`: a text within a token target, with a verdict for every fact."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pandora_dagster.cli.app_context import AsJson, settings_of
from pandora_dagster.cli.documents.text_input import read_bytes, read_text
from pandora_dagster.cli.output import EXIT_FAILED, EXIT_USAGE, exit_with, print_json, print_json_line, print_line, print_note, shorten_line
from pandora_dagster.language.word_forms import counted

if TYPE_CHECKING:
    from pandora_dagster.settings import Settings

_TYPES = "context.md, research.md, page_doc, tool_result, prior_turn or generic; default: detected."

_MAX_FACTS, _MAX_CHARACTERS = 5, 100
"""Facts that the report names, and characters of each."""


def compress(
    context: typer.Context,
    file: Annotated[str, typer.Argument(help="A UTF-8 text file; - for stdin.")] = "",
    target_tokens: Annotated[
        int | None, typer.Option("--target-tokens", help="Maximum tokens of the result, as the tokenizer cl100k counts them.")
    ] = None,
    content_type: Annotated[str, typer.Option("--type", help=_TYPES)] = "",
    query: Annotated[str, typer.Option("--query", help="The question that the text is used for.")] = "",
    original: Annotated[
        str, typer.Option("--original", help="The original text, if FILE is already compressed: its facts are verified.")
    ] = "",
    jsonl: Annotated[str, typer.Option("--jsonl", help="JSON lines with id, text, target_tokens and optional type, query, original.")] = "",
    as_json: AsJson = False,
) -> None:
    """Compress a text and verify its facts.

    The result is made of whole units of the text (sentences, items, rows, messages); marks count what is left out between them. The command
    HALTs with a reason where not one unit fits. The exit code is 1 for a HALT, 2 for invalid input.

    --jsonl prints one line for each line, in order: id, text (null for a HALT), tokens, facts, kept, missing, changed, left_out, halted
    (null, or the reason). For an invalid line, the printed one has its number as line and the fault
    as halted; the exit code is then 1.

    --original verifies the result against the original of FILE, however often that was compressed: facts of the original are counted,
    and those that the result lacks are reported as missing.

    Example: pandora compress notes.md --target-tokens 500 --query "the flight"
    """
    if bool(file) == bool(jsonl):
        exit_with(EXIT_USAGE, "compress: expected either FILE or --jsonl")
    if jsonl:
        if target_tokens is not None or content_type or query or original:
            exit_with(EXIT_USAGE, "compress: --jsonl: its lines have target_tokens, type, query and original: expected no options for them")
        _compress_lines(jsonl, settings_of(context))
    elif file == original == "-":
        exit_with(EXIT_USAGE, "compress: --original: stdin is FILE already: expected a file")
    elif target_tokens is None:
        exit_with(
            EXIT_USAGE, "compress: --target-tokens: missing: expected a number of tokens", "pandora compress FILE --target-tokens 500"
        )
    else:
        _compress_file(file, original, target_tokens, content_type, query, settings_of(context), as_json=as_json)


def _compress_file(
    file: str, original: str, target_tokens: int, content_type: str, query: str, settings: "Settings", *, as_json: bool
) -> None:
    from pandora_dagster.app.compression_service import CompressionTask, broken_json_line, count_tokens, open_compressor

    file_name = "" if file == "-" else file
    task = CompressionTask(file, read_text(file), target_tokens, content_type, query, read_text(original) if original else "", file_name)
    with open_compressor(settings) as compress_text:
        answer = compress_text(task)
    if as_json:
        print_json(answer)
    elif answer["text"] is not None:
        print_line(answer["text"])
    if broken := broken_json_line(task.text):
        print_note(f"pandora: {file}: broken JSON from line {broken} on: read as text")
    print_note(_summary(answer, count_tokens(task.text)))
    for name in ("changed", "missing") if answer["text"] is not None else ():
        if shown := [shorten_line(fact, _MAX_CHARACTERS) for fact in answer[name][:_MAX_FACTS]]:
            more = len(answer[name]) - len(shown)
            print_note(f"pandora: {name}: {'; '.join(shown)}{f'; and {more} more' if more else ''}")
    if answer["halted"]:
        raise typer.Exit(EXIT_FAILED)


def _compress_lines(jsonl: str, settings: "Settings") -> None:
    """Answer every line, also an invalid one; a HALT or an invalid line makes the exit code 1."""
    from pandora_dagster.app.compression_service import answer_lines, open_compressor

    halted = False
    with open_compressor(settings) as compress_text:
        for answer in answer_lines(read_bytes(jsonl), compress_text, where=jsonl):
            halted = halted or bool(answer["halted"])
            if "line" in answer:
                print_note(f"pandora: {answer['halted']}")
            print_json_line(answer)
    if halted:
        raise typer.Exit(EXIT_FAILED)


def _summary(answer: dict[str, Any], original_tokens: int) -> str:
    if answer["halted"]:
        return f"pandora: HALT: {answer['halted']} ({original_tokens:,} tokens)"
    counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in answer["facts"].items() if number and name != "total")
    return f"{original_tokens:,} -> {answer['tokens']:,} tokens; {counted(answer['facts']['total'], 'fact')}: {counts or 'none'}"
