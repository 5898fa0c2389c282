"""Dagster's metadata of a phase, made from its report. Numbers stay numbers, so that the UI plots them; credentials are redacted.

Dagster stores about 150 bytes beside each value, so that what is zero is left out."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

import dagster as dg

from pandora_dagster.contracts.enums import InterventionType
from pandora_dagster.contracts.interventions import Intervention
from pandora_dagster.contracts.model_calls import SHARED_KINDS, CallRecord
from pandora_dagster.documents.markdown import table
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.language.word_forms import counted
from pandora_dagster.phases.core.phase_report import PhaseReport

Metadata = dict[str, Any]
_CELL_TYPES = (str, int, float, bool)
_MAX_MARKDOWN_ROWS = 10
_MARKDOWN_FACTS = frozenset({"compression_before", "compression_after"})


def phase_metadata(report: PhaseReport, folder: str) -> Metadata:
    """The metadata of one materialization: section, calls, numbers, versions, runtime, folder, what was left out."""
    metadata: Metadata = {"section": dg.MetadataValue.md(redact(report.section))} if report.section else {}
    if report.calls:
        metadata |= {"calls": call_table(report.calls), **_call_totals(report.calls)}
    if left_out := tuple(name for call in report.calls for name in call.left_out):
        metadata["left_out"] = dg.MetadataValue.md("\n".join(f"- {name}" for name in left_out))
    metadata |= {name: _fact_metadata(name, value) for name, value in report.facts.items() if name not in metadata}
    return metadata | _location_metadata(report, folder)


def data_version(report: PhaseReport) -> dg.DataVersion:
    """Recipe and prompt version of every call, then the hash of what the phase wrote: `intent@3fd9c2/81ab04+0a1b2c3d4e5f`.

    See decision 29: docs/decisions/29-versions-in-dagster.md.
    """
    section_hash = sha256(report.section.encode()).hexdigest()[:12]
    call_versions = dict.fromkeys(f"{c.recipe}@{c.recipe_version}/{c.prompt_version}" for c in report.calls)
    return dg.DataVersion("+".join([*call_versions, section_hash]))


def halt_metadata(report: PhaseReport, halt: Intervention, folder: str) -> Metadata:
    """The metadata of a HALT: the intervention, the command that runs the phase again, and where to look."""
    texts = {"intervention": halt.id, "type": halt.type.value, "hint": halt.hint, "turn": str(report.key), "recipe": halt.recipe}
    return {
        **{name: redact(text) for name, text in texts.items() if text},
        "resolve": retry_command(halt),
        "path": dg.PathMetadataValue(folder),
    }


def retry_command(halt: Intervention) -> dg.MetadataValue[Any]:
    """The command that runs the halted phase again: once the cause is removed, or the user approves what the turn asked."""
    ways = {InterventionType.NEEDS_APPROVAL: "--approve", InterventionType.NEEDS_PERSON: "--answer FILE"}
    way = ways.get(halt.type, "--retry")
    return dg.MetadataValue.md(f"`pandora interventions resolve {halt.id} {way}`")


def call_table(calls: Sequence[CallRecord]) -> dg.MetadataValue[Any]:
    """One row per model call, in order, as Markdown: Dagster's own tables take 200 bytes a column in every event."""
    return _markdown_table([_call_row(call) for call in calls])


def _call_row(call: CallRecord) -> dict[str, str]:
    """Few and short columns: a wide table does not fit the page's panel. The asset and the data version name the whole recipe."""
    queued = f" ({call.queue_ms:.1f} queued)" if call.queue_ms else ""
    return {
        "recipe": call.recipe.rpartition("/")[2],
        "versions": f"{call.recipe_version}/{call.prompt_version}",
        "model": f"{call.model_layer.value}: {call.model or call.runtime}" + (" (escalated)" if call.escalated else ""),
        "tokens": f"{call.tokens.total} of {call.tokens.budget}",
        "time": f"{call.latency_ms:.1f} ms{queued}",
        "outcome": "; ".join(_outcome_parts(call)),
    }


def _outcome_parts(call: CallRecord) -> Iterator[str]:
    """How a call ended, and of retries, confidence and cost what there is."""
    yield "ok" if call.success else redact(call.error or "failed")
    if call.retries:
        yield counted(call.retries, "retry", "retries")
    if call.confidence is not None:
        yield f"confidence {call.confidence:.2f}"
    if call.cost:
        yield f"cost {call.cost:g}"


def _markdown_table(rows: Sequence[Mapping[str, Any]]) -> dg.MetadataValue[Any]:
    """Rows as a Markdown table with every column that a row has."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return dg.MetadataValue.md(table(columns, [[_table_cell(row.get(name)) for name in columns] for row in rows]))


def _call_totals(calls: Sequence[CallRecord]) -> Metadata:
    counts = {
        "tokens_prompt": sum(c.tokens.prompt for c in calls),
        "tokens_input": sum(c.tokens.input for c in calls),
        "tokens_output": sum(c.tokens.output for c in calls),
        "tokens_used": sum(c.used_tokens for c in calls),
        "tokens_budget": sum(c.tokens.budget for c in calls),
    }
    optional = {
        "tokens_cached": sum(c.tokens.cached for c in calls),
        "retries": sum(c.retries for c in calls),
        "queue_ms": round(sum(c.queue_ms for c in calls), 1),
        "cost": sum(c.cost for c in calls),
    }
    if any(c.compression_applied for c in calls):
        counts["compression_savings"] = sum(c.compression_savings for c in calls)
    counts |= {name: number for name, number in optional.items() if number}
    return {**counts, "latency_ms": round(sum(c.latency_ms for c in calls), 1), **_context_metadata(calls)}


def _context_metadata(calls: Sequence[CallRecord]) -> Metadata:
    """Tokens of the packs by source, each a number that the UI plots; and why calls were routed to their layers.

    What all calls of a recipe share is left out: it changes with the recipe alone, and `tokens_prompt` has it.
    """
    sizes: dict[str, int] = {}
    for call in calls:
        for source, tokens in call.context_sizes.items():
            sizes[source] = sizes.get(source, 0) + tokens
    routed = [f"{c.recipe}: {', '.join(c.routed)}" for c in calls if c.routed]
    metadata: Metadata = {f"context/{source}": tokens for source, tokens in sizes.items() if tokens and source not in SHARED_KINDS}
    return metadata | ({"routed": "; ".join(routed)} if routed else {})


def _location_metadata(report: PhaseReport, folder: str) -> Metadata:
    manifest = report.manifest
    return {
        "session": manifest.session_id,
        **({"revision": manifest.revision} if manifest.revision else {}),
        "state": manifest.state.value,
        "path": dg.PathMetadataValue(folder),
    }


def _fact_metadata(name: str, value: Any) -> Any:
    """A fact of a report as metadata: number, text, Markdown, table or JSON."""
    if isinstance(value, _CELL_TYPES):
        shown = redact(value) if isinstance(value, str) else value
        return dg.MetadataValue.md(str(shown)) if name in _MARKDOWN_FACTS else shown
    return _fact_table(cast("Sequence[Any]", value)) if _is_table(value) else dg.MetadataValue.json(_json_value(value))


def _is_table(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(cast("Sequence[object]", value)) > 0
        and all(isinstance(row, Mapping) for row in cast("Sequence[object]", value))
    )


def _fact_table(rows: Sequence[Mapping[str, Any]]) -> dg.MetadataValue[Any]:
    """A table that the UI sorts, or Markdown for a short one."""
    if len(rows) <= _MAX_MARKDOWN_ROWS:
        return _markdown_table(rows)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [{name: _table_cell(row.get(name)) for name in columns} for row in rows]
    return dg.MetadataValue.table([dg.TableRecord(row) for row in cells], dg.TableSchema([dg.TableColumn(name) for name in columns]))


def _table_cell(value: Any) -> str | int | float | bool:
    return redact(str(value)) if not isinstance(value, int | float) and value is not None else "" if value is None else value


def _json_value(value: Any) -> Any:
    """A value in JSON's types: mappings as dict, tuples as list, values of any other type as text."""
    if isinstance(value, Mapping):
        return {str(k): _json_value(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_json_value(v) for v in cast("Sequence[Any]", value)]
    return value if value is None or isinstance(value, int | float) else redact(str(value))
