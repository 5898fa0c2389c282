"""Packs and documents as the pipeline makes them, written by hand."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pandora_dagster.contracts.enums import ModelLayer, OutputFormat
from pandora_dagster.contracts.model_calls import Part, PromptPack, Source
from pandora_dagster.documents.markdown import code_fence

MARKDOWN_ROLES = ("synthesizer", "compressor", "session_summarizer")


def tool(name: str, properties: Mapping[str, Any], *, writes: bool = False, description: str = "") -> str:
    """One line of the `tools` document."""
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return json.dumps({"name": name, "description": description or name, "parameters": schema, "writes": writes})


SEARCH = tool("doc.search", {"query": {"type": "string", "minLength": 1, "maxLength": 2000}}, description="Search earlier conversations.")
LOOK_UP = tool("memory.query", {"query": {"type": "string", "maxLength": 2000}}, description="Look up stored preferences.")
STORE = tool(
    "memory.create",
    {
        "key": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$"},
        "value": {"type": "string", "minLength": 1},
        "kind": {"enum": ["preference", "fact"]},
    },
    writes=True,
    description="Store one preference or fact that the person stated.",
)
TOOLS = "\n".join((SEARCH, LOOK_UP, STORE))


def make_pack(
    role: str,
    query: str,
    documents: Mapping[str, str] | None = None,
    *,
    sources: Sequence[Source] = (),
    limit: int = 2000,
    mode: str = "chat",
    output_format: OutputFormat | None = None,
) -> PromptPack:
    parts = [Part("role", "prompt", "Do your part.", 0)]
    parts += [Part("document", name, text, 0) for name, text in (documents or {}).items()]
    return PromptPack(
        call_id="call_1",
        recipe=f"pipeline/{role}",
        recipe_version="0123456789ab",
        role=role,
        layer=ModelLayer.MIND,
        mode=mode,
        output_format=output_format or (OutputFormat.MARKDOWN if role in MARKDOWN_ROLES else OutputFormat.JSON),
        output_schema=None,
        temperature=None,
        max_output_tokens=limit,
        parts=(*parts, Part("query", "query", query, 0)),
        sources=tuple(sources),
    )


def summary_line(turn: int, text: str, *topics: str, session: str = "s1") -> str:
    """One line of `turn_summaries`."""
    return json.dumps({"turn_id": turn, "timestamp": "2026-01-04", "summary": text, "topics": topics, "session": session, "state": "saved"})


def source(label: str, turn: int) -> Source:
    return Source(label, f"turns/turn_{turn:06d}/context.md", "An earlier turn", f"turn_{turn:06d}")


def section2(*rows: tuple[int, str, str, str]) -> str:
    """Section 2's turn table; a row is turn, label, summary, facts joined by `; `."""
    lines = "\n".join(f"| {turn} [{label}] | high | {summary} | {facts} |" for turn, label, summary, facts in rows)
    listed = "\n".join(f"- [{label}] `turns/turn_{turn:06d}/context.md` - An earlier turn" for turn, label, _, _ in rows)
    meta = "```yaml\n_meta:\n  type: turn_context\n  relevant_turns: [1]\n```"
    table = f"| Turn | Relevance | Summary | Key Facts |\n|---|---|---|---|\n{lines}"
    return f"### Relevant Prior Turns\n\n{meta}\n\n{table}\n\n### Source References\n\n{listed}"


def bundle(*results: tuple[str, Mapping[str, Any], str]) -> str:
    """toolresults.md as the coordination phase writes it; a result is tool, arguments, raw."""
    parts = [
        f"## {n}. {tool}\n\n{code_fence(json.dumps(dict(given)), 'json')}\n\n{code_fence(raw)}"
        for n, (tool, given, raw) in enumerate(results, 1)
    ]
    return "# Tool results\n\n" + "\n\n".join(parts) + "\n"


def context(query: str, **sections: str) -> str:
    """context.md with section 0 and `s2=`, `s4=`... bodies."""
    titles = {
        "s1": "1. Reflection Decision",
        "s2": "2. Gathered Context",
        "s3": "3. Task Plan",
        "s4": "4. Tool Execution",
        "s5": "5. Synthesis",
    }
    return f"## 0. User Query\n\n{query}\n\n" + "".join(f"## {titles[k]}\n\n{sections[k]}\n\n" for k in sorted(sections))
