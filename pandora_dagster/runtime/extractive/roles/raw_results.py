"""`toolresults.md` as spans: each result as its tool gave it. What a tool was asked stands there too and is no evidence.

Knows the bundle's format and what section 4 says of each result; decides nothing about relevance.
"""

import re
from collections.abc import Iterator
from typing import cast

from pandora_dagster.runtime.extractive.roles.tool_planner import Result
from pandora_dagster.runtime.extractive.spans.citation_labels import Labels
from pandora_dagster.runtime.extractive.spans.document_spans import Span, SpanReader
from pandora_dagster.runtime.extractive.spans.header_lines import as_list, as_mapping
from pandora_dagster.runtime.extractive.spans.structured_records import decode

_BUNDLED = re.compile(
    r"^## (?P<number>\d+)\. [^\n]+\n\n(?P<asked>`{3,})json\n.*?\n(?P=asked)\n\n(?P<fence>`{3,})\n(?P<raw>.*?)\n(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_TURN_ID = re.compile(r"turn_0*(\d{1,9})")


def raw_spans(bundle: str, told: list[Result], labels: Labels, reader: SpanReader) -> list[Span]:
    """Spans of the results in `bundle` that section 4 (`told`) calls a success, each under the label that it can be cited by.

    A piece of a turn is cited under that turn, another result under the one source that its status line names; what has
    neither is left out.
    """
    found: list[Span] = []
    for result in _BUNDLED.finditer(bundle):
        at = int(result["number"]) - 1
        if at < len(told) and told[at].ok:
            found += _result(result["raw"].strip(), told[at].only, labels, reader)
    return found


def _result(raw: str, only: str | None, labels: Labels, reader: SpanReader) -> Iterator[Span]:
    decoded = decode(raw, 0)
    if not decoded or decoded[1] != len(raw):
        yield from reader.read(raw, label=only, quoted=True) if only else ()
        return
    value = decoded[0]
    for item in as_list(value) or [value]:
        piece = as_mapping(item)
        turn = _TURN_ID.fullmatch(str(piece.get("turn_id", "")))
        label = labels.turn(int(turn[1])) if turn else only
        if label and turn:
            day = str(piece.get("created_at", ""))[:10]
            yield from reader.read(str(piece.get("text", "")), label=label, quoted=True, date=day)
        elif label and isinstance(item, (dict, list)):
            yield from reader.read_records(cast("object", item), label=label)
