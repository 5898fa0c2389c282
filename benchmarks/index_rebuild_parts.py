"""A rebuild of the index from its documents, each part timed: read, parse, tokenise, insert; then the whole, as the command does it."""

import json
from itertools import pairwise
from pathlib import Path
from time import perf_counter

from pandora_dagster.app import open_app
from pandora_dagster.documents.turn_row import build_turn_row
from pandora_dagster.language.terms import TermReader
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.search_documents import search_documents
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_index_rebuild import Preambles
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA

SESSION_TURNS = 20


def rebuild_parts(root: Path, turns: int) -> None:
    """Fill a store with `turns` recorded turns, then time the parts."""
    from benchmarks.index_scale import Writer

    writer = Writer(2)
    lines = [_conversation(writer, n) for n in range(turns // SESSION_TURNS)]
    app = open_app(load_settings({"PANDORA_ROOT": str(root)}))
    started = perf_counter()
    app.transfer.import_conversations(lines, where="made")
    print(f"\nimport of {turns:,} turns: {perf_counter() - started:.1f} s\n| rebuild of {turns:,} documents | seconds |\n|---|---|")
    times = [perf_counter()]
    loaded = [app.turns.load(key) for key in list(app.turns.keys())]
    times.append(perf_counter())
    preambles = Preambles(app.sessions)
    rows = [build_turn_row(t.manifest, t.context, t.files, preamble=preambles.of_turn(t.manifest)) for t in loaded]
    times.append(perf_counter())
    reader = TermReader()
    posting_count = sum(len(p.term_counts) > 0 for row in rows for p in search_documents(row, reader))
    times.append(perf_counter())
    DuckTurnIndex(DuckDBFile(root / "again.duckdb", TURN_SCHEMA)).put(rows)
    times.append(perf_counter())
    app.indexes.rebuild()
    times.append(perf_counter())
    read, parse, tokenise, put, whole = (b - a for a, b in pairwise(times))
    named = {"read": read, "parse": parse, "tokenise": tokenise, "insert": put - tokenise, "whole, in batches": whole}
    for name, seconds in named.items():
        print(f"| {name} | {seconds:.2f} |")
    print(f"{posting_count:,} indexed documents; the rebuild took {whole / read:.1f} times as long as reading the same documents")
    app.close()


def _conversation(writer: "Writer", number: int) -> bytes:  # type: ignore[name-defined]  # noqa: F821
    roles = ("user", "assistant") * SESSION_TURNS
    messages = [{"role": role, "content": " ".join(writer.random_words(30))} for role in roles]
    value = {"id": f"made-{number}", "user_id": "ann", "created_at": "2024-05-15T15:00:00Z", "messages": messages}
    return json.dumps(value).encode()
