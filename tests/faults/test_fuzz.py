"""Generated hostile input for every reader of outside text and for the commands: an error of the project with its words, or a result.

30,000 cases of a fixed seed for the readers, 200 for the commands. A case is a sound text of the reader with pieces of it moved, repeated
or replaced by pieces that broke readers before. Any other exception and any case over five seconds fails.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import pytest
import zstandard
from typer.testing import CliRunner

from pandora_dagster.app import open_app
from pandora_dagster.cli.program import command_line
from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.contracts.user.sources import Research, Visit
from pandora_dagster.documents.citations import cited_labels, source_references
from pandora_dagster.documents.conversation_messages import parse_conversation
from pandora_dagster.documents.meta import read_meta, subsection_metas
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.documents.plain_json import parse_json
from pandora_dagster.documents.plain_yaml import read_yaml
from pandora_dagster.documents.recorded_context import render_recorded_context
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.errors import PandoraError
from pandora_dagster.execution.call.answer_parser import read_answer
from pandora_dagster.execution.fit.text_stretches import text_stretches
from pandora_dagster.language.timestamps import parse_timestamp
from pandora_dagster.recipes.recipe_reader import read_recipe
from pandora_dagster.runtime.sglang.runtime_file import load_endpoints
from pandora_dagster.settings import load_settings
from pandora_dagster.shipped import shipped_folder
from pandora_dagster.stores.turns.cold_files import build_tar, read_tar, tar_files
from pandora_dagster.stores.turns.manifests import parse_manifest
from pandora_dagster.stores.user.memory_files import page_entries
from pandora_dagster.stores.user.note_files import read_note
from pandora_dagster.stores.user.source_files import read_record
from pandora_dagster.transfer.batch_file import read_batch_lines

_SEED, _CASES, _COMMAND_CASES, _SECONDS = 17, 30_000, 200, 5.0
_PIECES = (
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "- ",
    "? ",
    "&a ",
    "*a",
    "!!int ''",
    "!!float x",
    "!!timestamp x",
    "!!bool maybe",
    "!!python/name:os.system ",
    "!",
    "```",
    "```yaml\n_meta:\n",
    "~~~",
    "---\n",
    "...\n",
    "%YAML 9.9\n",
    "#",
    "|",
    "|\n",
    ">\n",
    '"',
    "'",
    "\\",
    "\\ud800",
    "\\U00110000",
    "\\x00",
    "NaN",
    "Infinity",
    "1e999",
    "-0",
    "9" * 120,
    "0x" + "f" * 40,
    ".inf",
    "1_0",
    "null",
    "true",
    "~",
    "<<: *a\n",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-02-30",
    "12:60",
    "\x00",
    "\x1b[2J",
    "\x85",
    "\u2028",
    "\u202e",
    "\ufeff",
    "\ud83d",
    "\n",
    "\r",
    "\r\n",
    "\t",
    " " * 30,
    "\n" * 10,
    "é",
    "é",
    "会",
    "🙂",
    "[1]",
    "[99999]",
    "](",
    "## 0. User Query\n",
    "## 7. X\n",
    "### a\n",
    "| a | b |\n",
    "../",
    "/etc/passwd",
    "turn_000001",
    "users/",
    "From: a\n",
    "$(id)",
    "{{query}}",
    "<document>",
    "[" * 70,
    '{"a":' * 70,
    "- " * 70,
)
_MANIFEST = json.dumps(
    {
        "user_id": "ann",
        "turn_id": "turn_000001",
        "session_id": "s",
        "state": "saved",
        "created_at": "2026-01-04T14:30:00Z",
        "format_version": 3,
        "runtime": "extractive",
        "recorded": False,
        "revision": 0,
        "phases": [],
        "summary": {"summary": "x", "topics": ["a"]},
    }
)
_RECORD = json.dumps(
    {
        "topic": "a.b",
        "cache_key": "k",
        "created_at": "2026-01-04T14:30:00Z",
        "expires_at": "2026-02-04T14:30:00Z",
        "quality_score": 0.5,
        "summary": "s",
        "claims": [{"claim": "x", "confidence": 1, "source": "y"}],
    }
)
_CONVERSATION = json.dumps(
    {
        "id": "c",
        "user_id": "ann",
        "created_at": "2026-01-04T14:30:00Z",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
            {"role": "tool", "tool_call_id": "1", "content": "ok"},
        ],
    }
)
_CONTEXT = (
    "## 0. User Query\n\nWhich desk?\n\n## 2. Gathered Context\n\n### Sources\n\n```yaml\n_meta:\n  type: a\n  n: [1, 2]\n```\n\n"
    "The desk cost 429 euros [1].\n\n## 5. Synthesis\n\nOak [1].\n"
)
_NOTE = "---\ntitle: Tea\ntags: [a, b]\ndate: 2026-01-04\n---\n# Tea\n\nThe pot is `blue`, see [[Cups]] #tea.\n\n```py\nx = 1\n```\n"
_PAGE = '# Facts\n\n```yaml\nbudget:\n  value: "1000"\n  confidence: 0.9\n  source_turn: 3\n  last_updated: "2026-01-04T14:30:00Z"\n```\n'
_LINE = '{"query": "Which desk?", "user": "ann", "session": "s", "mode": "chat", "id": "1"}'


def _read_conversation(text: str) -> object:
    conversation = parse_conversation(_bytes(text), where="f:1")
    return render_recorded_context(conversation.messages)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _files(folder: Path) -> dict[str, tuple[str, Callable[[str], object]]]:
    """Readers of files: each case is written to a file first."""
    shipped = shipped_folder()
    recipe, runtime, packed = folder / "recipe.yaml", folder / "runtime.yaml", folder / "cold.tar.zst"

    def read_written_recipe(text: str) -> object:
        recipe.write_bytes(_bytes(text))
        return read_recipe(recipe, shipped / "prompts", path="pipeline/a", display_path="a.yaml")

    def read_runtime(text: str) -> object:
        runtime.write_bytes(_bytes(text))
        return load_endpoints(runtime)

    def read_pack(text: str) -> object:
        tar = text.encode("latin-1", errors="replace")
        packed.write_bytes(zstandard.ZstdCompressor(1).compress(tar))
        return tar_files(read_tar(packed), packed)

    tar = build_tar({"context.md": b"# x\n", f"{'p' * 120}/a.md": b"y"}).decode("latin-1")
    return {
        "recipe": ((shipped / "recipes/pipeline/phase1_reflection.yaml").read_text(), read_written_recipe),
        "runtime": ((shipped / "data/runtime.yaml").read_text()[:4_000], read_runtime),
        "cold object": (tar, read_pack),
    }


READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "YAML": ("a: 1\nb: [x, {c: d}]\n", read_yaml),
    "JSON": (_RECORD, parse_json),
    "note": (_NOTE, lambda text: read_note(text, name="n.md", where="n.md")),
    "memory page": (_PAGE, lambda text: page_entries(text, kind="fact", where="f.md")),
    "_meta": (_CONTEXT, read_meta),
    "subsections": (_CONTEXT, subsection_metas),
    "manifest": (_MANIFEST, lambda text: parse_manifest(text, where="turn.json")),
    "research": (_RECORD, lambda text: read_record(text, Research, where="r.json")),
    "visit": (_RECORD, lambda text: read_record(text, Visit, where="v.json")),
    "conversation": (_CONVERSATION, _read_conversation),
    "batch": (_LINE, lambda text: list(read_batch_lines(_bytes(text)))),
    "context": (_CONTEXT, ContextDocument.parse),
    "citations": (_CONTEXT, lambda text: (cited_labels(text), source_references(text))),
    "stretches": (_CONTEXT, text_stretches),
    "query": (_NOTE, own_words),
    "units": (_CONTEXT, lambda text: read_units(text.encode(errors="replace").decode())),  # a document is decoded from UTF-8
    "credentials": ("My password is hunter2 and Bearer abc.def", redact),
    "time": ("2026-01-04T14:30:00Z", parse_timestamp),
    "answer in JSON": ('Here:\n```json\n{"a": [1]}\n```\n', lambda text: read_answer(text, OutputFormat.JSON)),
    "answer in YAML": ("```yaml\na: [1]\n```\n", lambda text: read_answer(text, OutputFormat.YAML)),
    "answer in Markdown": (_CONTEXT, lambda text: read_answer(text, OutputFormat.MARKDOWN)),
    "settings": ("Europe/Madrid", lambda text: load_settings({"PANDORA_TIMEZONE": text, "PANDORA_LANGUAGE": text})),
}
PLAIN_ERRORS = frozenset({"JSON", "time"})
"""Readers whose error is a ValueError that their callers turn into one of the project."""


def _mutations(sound: str, rng: random.Random) -> Iterator[str]:
    """Endless hostile forms of a sound text."""
    while True:
        text = sound
        for _ in range(rng.randint(1, 6)):
            begin, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
            end = min(end, begin + 60)
            kind = rng.randint(0, 4)
            if kind == 0:
                text = text[:begin] + rng.choice(_PIECES) + text[begin:]
            elif kind == 1:
                text = text[:begin] + rng.choice(_PIECES) + text[end:]
            elif kind == 2:
                text = text[:begin] + text[begin:end] * rng.choice((2, 3, 50)) + text[end:]
            elif kind == 3:
                text = text[:begin]
            else:
                text = text[:begin] + rng.choice(_PIECES) * rng.choice((2, 20, 200)) + text[begin:]
        yield text[:50_000]


def test_every_reader_gives_a_result_or_an_error_of_the_project(tmp_path: Path) -> None:
    rng, faults = random.Random(_SEED), []
    readers = READERS | _files(tmp_path)
    for name, (sound, read) in readers.items():
        allowed = (PandoraError, ValueError) if name in PLAIN_ERRORS else PandoraError
        for text, _ in zip(_mutations(sound, rng), range(_CASES // len(readers) + 1), strict=False):
            started = process_time()
            try:
                read(text)
            except allowed:
                pass
            except Exception as error:
                faults.append(f"{name}: {type(error).__name__}: {str(error)[:80]}: {text[:300]!r}")
            if (seconds := process_time() - started) > _SECONDS:
                faults.append(f"{name}: {seconds:.1f} s: {text[:300]!r}")
    assert not faults, "\n".join(faults)


_COMMANDS = (
    ("show",),
    ("turns", "--user"),
    ("search",),
    ("lineage",),
    ("interventions", "show"),
    ("recipes", "show"),
    ("memory", "list", "--user"),
    ("memory", "set"),
    ("archive", "--older-than"),
    ("archive", "--date"),
    ("export", "--user"),
    ("search", "desk", "--user"),
    ("show", "1", "--section"),
    ("verify",),
    ("compress",),
    ("import",),
    ("batch",),
    ("digest",),
    ("forget",),
    ("calls",),
    ("resume",),
    ("hold",),
    ("restore",),
)


def test_every_command_ends_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PANDORA_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "store"
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    app.transfer.import_example()
    app.close()
    monkeypatch.chdir(tmp_path)
    rng, faults = random.Random(_SEED), []
    words = _mutations("example:turn_000002", rng)
    for _ in range(_COMMAND_CASES):
        command, word = rng.choice(_COMMANDS), next(words).replace("\0", "")[:2_000]
        arguments = [*command, *([word, next(words).replace("\0", "")[:200]] if command == ("memory", "set") else [word])]
        started = process_time()
        result = CliRunner().invoke(command_line, ["--root", str(root), *arguments], prog_name="pandora", input="")
        if result.exception is not None and not isinstance(result.exception, (SystemExit, PandoraError, OSError)):  # `run` prints them
            faults.append(f"{arguments!r}: {result.exception!r}"[:400])
        if (seconds := process_time() - started) > 2 * _SECONDS:
            faults.append(f"{arguments!r}: {seconds:.1f} s"[:400])
    assert not faults, "\n".join(faults)
