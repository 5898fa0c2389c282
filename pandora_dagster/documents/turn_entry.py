"""Level L1 of a turn (003): its day, topics and summary, the limits that the user set, the tools used and their errors.

Limits, tools and errors are read verbatim from the turn's own sections, so that no level above loses them; no model is asked.
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
"""The head of a live result whose call failed."""
_ITEM_MARK = re.compile(r"^(?:[-*+]|\d{1,3}[.)])\s+")
_READ = 20_000
"""Characters of a result in which its error is looked for."""
_LONGEST = 300
"""Characters of an error or limit that L1 shows whole; a longer one is not shown."""
_MOST_TOOLS, _MOST_ERRORS, _MOST_LIMITS = 12, 4, 3
_BINDING = frozenset({Cue.FORCE, Cue.NEGATION, Cue.EXCEPTION})


def entry_head(manifest: Manifest) -> str:
    """What an entry begins with: `2026-01-04 (laptop, gpu): `."""
    topics = ", ".join(" ".join(str(topic).split()) for topic in (manifest.summary or {}).get("topics", ()))
    return redact(f"{manifest.created_at[:10]}{f' ({topics})' if topics else ''}: ")


def turn_entry(manifest: Manifest) -> str:
    """`2026-01-04 (laptop, gpu): Searched for laptops.`, then a line for each limit that the summary does not name, the tools, and each
    error; credentials taken out.

    It does not change when the turn is archived or restored: the summary is the turn's own.
    """
    summary = manifest.summary or {}
    said = " ".join(str(summary.get("summary", "")).split()) or "A turn without a summary."
    limits = [text for limit in summary.get("limits", ()) if (text := " ".join(str(limit).split())) not in said]
    tools = ", ".join(map(str, summary.get("tools", ())))
    errors = [" ".join(str(error).split()) for error in summary.get("errors", ())]
    lines = [said, *(f"{LIMIT_LABEL}{text}" for text in limits), *([f"{TOOLS_LABEL}{tools}"] if tools else ())]
    return entry_head(manifest) + redact("\n".join([*lines, *(f"{ERROR_LABEL}{text}" for text in errors)]))


def entry_sha(entry: str) -> str:
    return sha256(entry.encode()).hexdigest()


def turn_trace(document: ContextDocument) -> Mapping[str, list[str]]:
    """`tools`, `errors` and `limits` of a turn, from sections 4 and 0; a name without any is absent."""
    results = [(found[1].strip(), body) for title, body in subsections(document.body(4)).items() if (found := _RESULT.fullmatch(title))]
    found = {
        "tools": list(dict.fromkeys(tool for tool, _ in results))[:_MOST_TOOLS],
        "errors": list(dict.fromkeys(error for tool, body in results for error in _errors(tool, body)))[:_MOST_ERRORS],
        "limits": list(dict.fromkeys(_limits(own_words(document.query()))))[:_MOST_LIMITS],
    }
    return {name: values for name, values in found.items() if values}


def _errors(tool: str, body: str) -> Iterator[str]:
    """The error of one result, `tool: error`; the tool's name alone where the error is too long to be shown whole."""
    text = body.lstrip()
    head = _FAILED.match(text)
    text = text[head.end() if head else 0 :]
    units = read_units(text if len(text) <= _READ else text[: text.rfind("\n", 0, _READ) + 1])
    error = next((unit for unit in units if not unit.is_context and (head or unit.kind is UnitKind.ERROR)), None)
    if error:
        yield f"{tool}: {error.text}" if len(error.text) <= _LONGEST else f"{tool} failed"


def _limits(words: str) -> Iterator[str]:
    """Statements of the user that bind what follows: with a value, or with words of force, and no question."""
    for unit in read_units(words):
        if unit.kind in (UnitKind.SENTENCE, UnitKind.ITEM) and len(unit.text) <= _LONGEST and _is_limit(unit):
            yield _ITEM_MARK.sub("", unit.text)


def _is_limit(unit: Unit) -> bool:
    text = _ITEM_MARK.sub("", unit.text)
    found = cues(text)
    if Cue.QUESTION in found:
        return False
    has_value = any(token.kind is TokenKind.VALUE and not token.key.endswith(")") for token in tokens(text, ""))
    return has_value or (Cue.FORCE in found and len(found & _BINDING) > 1)
