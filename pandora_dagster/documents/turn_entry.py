"""The entry of a turn (level L1 of specification 003): its day, topics and summary, the user's limits, the tools used and their errors.

    2026-01-04 (laptop, gpu): Searched for laptops.
    Limit: It must cost at most 900 euros.
    Tools used: web_search

Limits, tools and errors are quoted from the turn's own sections, so that no level above loses them; no model is called.
"""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256

from pandora_dagster.contracts.turns import Manifest
from pandora_dagster.contracts.user.summary_levels import ERROR_LABEL, LIMIT_LABEL, TOOLS_LABEL
from pandora_dagster.documents.meta import subsections
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.language.cues import Cue, cues
from pandora_dagster.language.tokens import TokenKind, tokens

_RESULT = re.compile(r"Result \d{1,4}: (.+)")
_FAILED = re.compile(r"\*\*Status:\*\* error\b[^\n]*\n(?:\*\*\w+:\*\*[^\n]*\n)*")
"""The head of a result in a live (not recorded) turn whose call failed."""
_ITEM_MARK = re.compile(r"^(?:[-*+]|\d{1,3}[.)])\s+")
_MAX_SEARCHED_CHARACTERS = 20_000
"""Characters of a result that are searched for its error."""
_MAX_QUOTED_CHARACTERS = 300
"""A longer error or limit is not quoted."""
_MAX_TOOLS, _MAX_ERRORS, _MAX_LIMITS = 12, 4, 3
"""Tools, errors and limits of one entry."""
_BINDING_CUES = frozenset({Cue.FORCE, Cue.NEGATION, Cue.EXCEPTION})


def entry_head(manifest: Manifest) -> str:
    """The beginning of an entry: `2026-01-04 (laptop, gpu): `."""
    topics = ", ".join(" ".join(str(topic).split()) for topic in (manifest.summary or {}).get("topics", ()))
    return redact(f"{manifest.created_at[:10]}{f' ({topics})' if topics else ''}: ")


def turn_entry(manifest: Manifest) -> str:
    """The entry, without credentials: head and summary, then a line for each limit that the summary lacks, for the tools, and for each
    error.

    It does not change when the turn is archived or restored, since the manifest keeps its summary.
    """
    summary = manifest.summary or {}
    summary_text = " ".join(str(summary.get("summary", "")).split()) or "A turn without a summary."
    limits = [text for limit in summary.get("limits", ()) if (text := " ".join(str(limit).split())) not in summary_text]
    tools = ", ".join(map(str, summary.get("tools", ())))
    errors = [" ".join(str(error).split()) for error in summary.get("errors", ())]
    lines = [summary_text, *(f"{LIMIT_LABEL}{text}" for text in limits), *([f"{TOOLS_LABEL}{tools}"] if tools else ())]
    return entry_head(manifest) + redact("\n".join([*lines, *(f"{ERROR_LABEL}{text}" for text in errors)]))


def entry_sha(entry: str) -> str:
    return sha256(entry.encode()).hexdigest()


def turn_trace(document: ContextDocument) -> Mapping[str, list[str]]:
    """`tools`, `errors` and `limits` of a turn, from sections 4 and 0; a name without any is absent."""
    results = [(match[1].strip(), body) for title, body in subsections(document.body(4)).items() if (match := _RESULT.fullmatch(title))]
    trace = {
        "tools": list(dict.fromkeys(tool for tool, _ in results))[:_MAX_TOOLS],
        "errors": list(dict.fromkeys(error for tool, body in results for error in _errors(tool, body)))[:_MAX_ERRORS],
        "limits": list(dict.fromkeys(_limits(own_words(document.query()))))[:_MAX_LIMITS],
    }
    return {name: values for name, values in trace.items() if values}


def _errors(tool: str, body: str) -> Iterator[str]:
    """The error of one result as `tool: error`; `tool failed` where the error is too long to quote."""
    text = body.lstrip()
    head = _FAILED.match(text)
    text = text[head.end() if head else 0 :]
    searched = text if len(text) <= _MAX_SEARCHED_CHARACTERS else text[: text.rfind("\n", 0, _MAX_SEARCHED_CHARACTERS) + 1]
    units = read_units(searched)
    error = next((unit for unit in units if not unit.is_context and (head or unit.kind is UnitKind.ERROR)), None)
    if error:
        yield f"{tool}: {error.text}" if len(error.text) <= _MAX_QUOTED_CHARACTERS else f"{tool} failed"


def _limits(words: str) -> Iterator[str]:
    """The statements of the user that set a limit: they have a value or words of force, and are no question."""
    for unit in read_units(words):
        if unit.kind in (UnitKind.SENTENCE, UnitKind.ITEM) and len(unit.text) <= _MAX_QUOTED_CHARACTERS and _is_limit(unit):
            yield _ITEM_MARK.sub("", unit.text)


def _is_limit(unit: Unit) -> bool:
    text = _ITEM_MARK.sub("", unit.text)
    text_cues = cues(text)
    if Cue.QUESTION in text_cues:
        return False
    has_value = any(token.kind is TokenKind.VALUE and not token.key.endswith(")") for token in tokens(text, ""))
    return has_value or (Cue.FORCE in text_cues and len(text_cues & _BINDING_CUES) > 1)
