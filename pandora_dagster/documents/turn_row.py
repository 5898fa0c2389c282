"""A turn's index row, made from its documents alone. The one place where a row is made: phases, import and rebuild call it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pandora_dagster.contracts.turns import IndexedMessage, Manifest, TurnRow
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.citations import REFERENCES_TITLE, cited_labels, source_references
from pandora_dagster.documents.conversation_messages import message_text, message_time, read_message_lines, tool_call_lines
from pandora_dagster.documents.meta import subsections
from pandora_dagster.documents.sections import ContextDocument

# The answer of a turn as the user sees it. Section 5 may be a compression of it, once section 6 has judged it (001 section 7).

RESPONSE_FILE = "response.md"
ANSWER_SECTION = 5


def whole_answer(document: ContextDocument, files: Mapping[str, str]) -> str:
    """The answer, whatever section 5 has become; a turn without `response.md` (recorded, or not answered yet) has its section alone."""
    stored = files.get(RESPONSE_FILE)
    return document.body(ANSWER_SECTION) if stored is None else stored.removesuffix("\n")


MESSAGES = "messages.jsonl"
READ_FILES = (RESPONSE_FILE, MESSAGES)
"""The documents beside context.md that make a turn's row and what later turns read of it."""
_WORDS = {0: ("query", "user"), 4: ("results", "tool"), 5: ("answer", "assistant")}
"""Section of a live turn -> the id and role of the message that it is."""
_SHOWN = (0, 4, 5)
"""The words of the user, tool results, the answer."""
_BEFORE = 2
"""In a recorded turn: the text before the first words of the user."""
_QUOTING = "extractive"
"""The runtime whose answers are verbatim spans, each with its citation, under fixed sentences (DECISIONS 25)."""


def build_turn_row(
    manifest: Manifest, context: str, files: Mapping[str, str] | None = None, *, preamble: Sequence[Message] = ()
) -> TurnRow:
    """The row of a turn (004 section 3.3) from its manifest, its context.md and its other documents.

    `preamble` is the text before the first turn of a recorded conversation, given for that turn only.
    """
    bodies = informative_sections(manifest, ContextDocument.parse(context), files or {})
    lines = (files or {}).get(MESSAGES, "")
    as_they_came = manifest.recorded and (lines or not manifest.archive)  # an archived turn whose originals are gone has no lines
    messages = _recorded(manifest, lines, preamble) if as_they_came else _live(manifest, bodies)
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
        text="\n\n".join(bodies.values()),
        messages=messages,
        **_summarised(manifest.summary or {}),
    )


def _live(manifest: Manifest, bodies: Mapping[int, str]) -> tuple[IndexedMessage, ...]:
    """Query, new results, answer."""
    said = ((words, bodies.get(number)) for number, words in _WORDS.items())
    return tuple(IndexedMessage(id=name, role=role, text=body, created_at=manifest.created_at) for (name, role), body in said if body)


def _recorded(manifest: Manifest, lines: str, preamble: Sequence[Message]) -> tuple[IndexedMessage, ...]:
    own = read_message_lines(lines, where=f"{manifest.user_id}:{manifest.turn_id}: {MESSAGES}")
    numbered = [*enumerate(preamble), *enumerate(own, manifest.first_message)]
    return tuple(_indexed(m, i, manifest.created_at) for i, m in numbered)


def _indexed(message: Message, index: int, created_at: str) -> IndexedMessage:
    own_id, name = message.get("id"), message.get("name")
    return IndexedMessage(
        id=own_id if isinstance(own_id, str) and own_id else f"m{index}",
        role=message["role"],
        name=name if isinstance(name, str) else "",
        text="\n".join(part for part in (message_text(message), *tool_call_lines(message)) if part),
        created_at=message_time(message, created_at),
    )


def informative_sections(manifest: Manifest, document: ContextDocument, files: Mapping[str, str]) -> dict[int, str]:
    """What later turns learn from a turn: section -> text, without what only repeats an older source.

    A recorded turn tells all it holds. A live turn's sections 1 to 3 and 6 tell of its own work; a result that leads to
    earlier turns is theirs; and an answer of the embedded runtime is made of quotations, each of which is in its source.
    An answer over section 5's budget is shown whole, from `files`.
    """
    if manifest.recorded:
        bodies = {n: document.body(n) for n in sorted((*_SHOWN, _BEFORE))}
    else:
        answer = whole_answer(document, files)
        bodies = {
            0: document.query(),
            4: _new_results(document.body(4)),
            5: "" if manifest.runtime == _QUOTING else answer,
        }
    return {n: body for n, body in bodies.items() if body.strip()}


def _new_results(body: str) -> str:
    """The results of section 4 that tell something no earlier turn holds."""
    elsewhere = {s.label for s in source_references(body) if not s.path.startswith("turns/")}
    kept = [f"### {title}\n\n{text}" for title, text in subsections(body).items() if elsewhere.intersection(cited_labels(text))]
    return "\n\n".join(part for part in kept if not part.startswith(f"### {REFERENCES_TITLE}"))


def _summarised(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "summary": str(summary.get("summary", "")),
        "topics": tuple(str(t) for t in summary.get("topics", ())),
        "intent": str(summary.get("intent", "")),
        "has_research": bool(summary.get("has_research", False)),
        "research_topic": summary.get("research_topic"),
    }
