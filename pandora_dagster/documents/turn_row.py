"""The index row of a turn, made from its documents alone, and the texts that later turns read of it.

This is the only place that makes a row: phases, import, archival and rebuild call it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pandora_dagster.contracts.turns import IndexedMessage, Manifest, TurnRow
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.citations import REFERENCES_TITLE, cited_labels, source_references
from pandora_dagster.documents.conversation_messages import message_text, message_time, read_message_lines, tool_call_lines
from pandora_dagster.documents.meta import subsections
from pandora_dagster.documents.redaction.credentials import redact, redact_values
from pandora_dagster.documents.sections import ContextDocument

RESPONSE_FILE = "response.md"
"""The answer as the user sees it. Section 5 may be a compression of it, once section 6 has judged it (specification 001, section 7)."""
MESSAGES_FILE = "messages.jsonl"
ROW_FILES = (RESPONSE_FILE, MESSAGES_FILE)
"""The documents beside context.md that a row is made from, and that later turns read."""
ANSWER_SECTION = 5
_PREAMBLE_SECTION = 2
"""In a recorded turn: the text before the first words of the user."""
_SHOWN_SECTIONS = (0, 4, 5)
"""The words of the user, tool results, the answer."""
_MESSAGE_OF_SECTION = {0: ("query", "user"), 4: ("results", "tool"), 5: ("answer", "assistant")}
"""Section of a live turn -> the id and the role of its message in the index."""
_QUOTING_RUNTIME = "extractive"
"""The runtime whose answers are quotations with citations (decision 25, docs/decisions/25-the-embedded-runtime.md)."""


def whole_answer(document: ContextDocument, files: Mapping[str, str]) -> str:
    """The answer as the user sees it: `response.md`, or section 5 where a turn has no such file (recorded, or not answered yet)."""
    response = files.get(RESPONSE_FILE)
    return document.body(ANSWER_SECTION) if response is None else response.removesuffix("\n")


def build_turn_row(
    manifest: Manifest, context: str, files: Mapping[str, str] | None = None, *, preamble: Sequence[Message] = ()
) -> TurnRow:
    """Build the row of a turn (specification 004, section 3.3) from its manifest, its context.md and its other documents.

    Credentials are left out. `preamble`: the messages before the first turn of a recorded conversation, for that turn only.
    """
    bodies = informative_sections(manifest, ContextDocument.parse(context), files or {})
    lines = (files or {}).get(MESSAGES_FILE, "")
    has_messages = manifest.recorded and (lines or not manifest.archive)  # an archived turn whose originals are deleted has no lines
    messages = _recorded_messages(manifest, lines, preamble) if has_messages else _section_messages(manifest, bodies)
    return TurnRow(
        user_id=manifest.user_id,
        turn_id=manifest.turn_id,
        number=int(manifest.turn_id.removeprefix("turn_")),
        session_id=manifest.session_id,
        state=manifest.state,
        created_at=manifest.created_at,
        last_activity=manifest.last_activity,
        tokens=manifest.tokens,
        revision=manifest.revision,
        recorded=manifest.recorded,
        runtime=manifest.runtime,
        context_sha=manifest.context_sha,
        text=redact("\n\n".join(bodies.values())),
        messages=tuple(message.model_copy(update={"text": redact(message.text)}) for message in messages),
        **redact_values(_summary_fields(manifest.summary or {})),
    )


def _section_messages(manifest: Manifest, bodies: Mapping[int, str]) -> tuple[IndexedMessage, ...]:
    """Query, new results and answer of a turn as messages."""
    texts = ((message, bodies.get(number)) for number, message in _MESSAGE_OF_SECTION.items())
    return tuple(IndexedMessage(id=name, role=role, text=text, created_at=manifest.created_at) for (name, role), text in texts if text)


def _recorded_messages(manifest: Manifest, lines: str, preamble: Sequence[Message]) -> tuple[IndexedMessage, ...]:
    """The messages of a recorded turn as they were imported."""
    messages = read_message_lines(lines, where=f"{manifest.user_id}:{manifest.turn_id}: {MESSAGES_FILE}")
    numbered = [*enumerate(preamble), *enumerate(messages, manifest.first_message)]
    return tuple(_indexed_message(message, index, manifest.created_at) for index, message in numbered)


def _indexed_message(message: Message, index: int, created_at: str) -> IndexedMessage:
    message_id, name = message.get("id"), message.get("name")
    return IndexedMessage(
        id=message_id if isinstance(message_id, str) and message_id else f"m{index}",
        role=message["role"],
        name=name if isinstance(name, str) else "",
        text="\n".join(part for part in (message_text(message), *tool_call_lines(message)) if part),
        created_at=message_time(message, created_at),
    )


def informative_sections(manifest: Manifest, document: ContextDocument, files: Mapping[str, str]) -> dict[int, str]:
    """The text that later turns read of a turn, by section; text that only repeats an older source is left out.

    A recorded turn is read whole. Of a live turn, sections 1 to 3 and 6 are left out: they describe its own work. So are results that cite
    only earlier turns, and answers of the embedded runtime, whose quotations are in their sources. An answer over the budget of section 5
    is taken whole from `files`.
    """
    if manifest.recorded:
        bodies = {n: document.body(n) for n in sorted((*_SHOWN_SECTIONS, _PREAMBLE_SECTION))}
    else:
        answer = "" if manifest.runtime == _QUOTING_RUNTIME else whole_answer(document, files)
        bodies = {0: document.query(), 4: _new_results(document.body(4)), ANSWER_SECTION: answer}
    return {n: body for n, body in bodies.items() if body.strip()}


def _new_results(body: str) -> str:
    """The results of section 4 that cite a source other than an earlier turn."""
    new_labels = {s.label for s in source_references(body) if not s.path.startswith("turns/")}
    results = [f"### {title}\n\n{text}" for title, text in subsections(body).items() if new_labels.intersection(cited_labels(text))]
    return "\n\n".join(part for part in results if not part.startswith(f"### {REFERENCES_TITLE}"))


def _summary_fields(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "summary": str(summary.get("summary", "")),
        "topics": [str(t) for t in summary.get("topics", ())],
        "intent": str(summary.get("intent", "")),
        "has_research": bool(summary.get("has_research", False)),
        "research_topic": summary.get("research_topic"),
    }
