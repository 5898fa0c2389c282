"""One turn on its way to the archive: what of it stays readable, compressed; its originals ready for cold storage; its row.

The order is that of docs/architecture.md: nothing changes before the cold object has been read back, and `turn.json` is the switch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from zoneinfo import ZoneInfo

from pandora_dagster.contracts.archive import ArchivedDocument, ArchiveRecord, ColdObject, ColdPlace, Due
from pandora_dagster.contracts.archive_ports import ArchivesTurns, ColdStorage, Holds
from pandora_dagster.contracts.calls import CallSite
from pandora_dagster.contracts.compression import Content, Shrunk
from pandora_dagster.contracts.conversations import Message
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.contracts.words import ContentType, Priority, TurnState
from pandora_dagster.phases.kit import Kit
from pandora_dagster.selection.whole_answer import RESPONSE, whole_answer
from pandora_dagster.text.dates import stamp
from pandora_dagster.text.sections import ContextDocument

PHASE = "archival"
CONTEXT = "context.md"
SMALLEST = 200
"""Tokens under which a document is not compressed, and under which no target lies."""
_WIDER = (1.0, 1.35, 1.7, 2.0)
"""Where no sound text fits the target, these multiples of it are tried, as long as they save something."""
_READABLE = (".md", ".txt", ".html")


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """What settings say of archival."""

    zone: ZoneInfo
    after_days: int = 30
    ratio: float = 0.42
    """Tokens that a document is to keep, as a share of its own."""
    document_tokens: int = 500
    concurrency: int = 8


@dataclass(frozen=True, slots=True)
class ArchiveDesk:
    """What an archival works with. `preamble` gives what stood before a recorded conversation's first turn, for its row."""

    kit: Kit
    cold: ColdStorage
    folders: ArchivesTurns
    holds: Holds
    rules: ArchiveRules
    preamble: Callable[[Manifest], tuple[Message, ...]]
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Packed:
    """A turn that is compressed in memory; nothing of it has changed on the disk."""

    due: Due
    turn: Turn
    cold: ColdObject
    texts: Mapping[str, str]
    """The documents of the archived turn by name, context.md among them."""
    documents: tuple[ArchivedDocument, ...]


async def packed(due: Due, desk: ArchiveDesk) -> Packed:
    """The turn read, held against its manifests and compressed; raises DocumentError, StoreError, HaltError."""
    turn, files = desk.folders.originals(due.key)
    texts: dict[str, str] = {}
    documents: list[ArchivedDocument] = []
    for name, text in readable(turn, count=desk.kit.counter.count, over=desk.rules.document_tokens).items():
        texts[name], about = await _document(name, text, turn, desk)
        documents.append(about)
    return Packed(due, turn, ColdObject(due.key, due.day.isoformat(), files), texts, tuple(documents))


def readable(turn: Turn, *, count: Callable[[str], int], over: int) -> dict[str, str]:
    """What of a turn stays in its folder: context.md, and the larger texts that people and citations read.

    `response.md` only where the answer is more than section 5 holds; a section's own original not: context.md tells it.
    """
    answer = ContextDocument.parse(turn.context)
    said_in_context = {RESPONSE} if whole_answer(answer, turn.files) == whole_answer(answer, {}) else set[str]()
    chosen = (
        name
        for name, text in sorted(turn.files.items())
        if name.endswith(_READABLE) and not name.startswith("section_") and name not in said_in_context and count(text) > over
    )
    return {CONTEXT: turn.context, **{name: turn.files[name] for name in chosen}}


def targets_of(tokens: int, rules: ArchiveRules) -> tuple[int, ...]:
    """What a document of this size is to fit, the first that a sound text fits; () where it stands whole."""
    return tuple(t for t in dict.fromkeys(max(SMALLEST, int(tokens * rules.ratio * more)) for more in _WIDER) if t < tokens)


def record_of(made: Packed, place: ColdPlace, desk: ArchiveDesk) -> ArchiveRecord:
    """What the archived turn's manifest keeps."""
    return ArchiveRecord(
        archived_at=stamp(desk.kit.clock().replace(microsecond=0)),
        day=made.due.day.isoformat(),
        was="clarify" if made.turn.manifest.state is TurnState.CLARIFY else "saved",
        cold=place.path,
        sha256=place.sha256,
        size=place.size,
        files={name: sha256(data).hexdigest() for name, data in sorted(made.cold.files.items())},
        documents=made.documents,
        run_id=desk.run_id,
    )


def store(made: Sequence[Packed], desk: ArchiveDesk) -> tuple[Turn, ...]:
    """Originals to cold storage, then the switch, then what is left over; the turns as they stand. Raises StoreError, DocumentError."""
    places = desk.cold.put([one.cold for one in made])
    after = [desk.folders.archived(one.turn, one.texts, record_of(one, place, desk)) for one, place in zip(made, places, strict=True)]
    desk.folders.switch([(one.turn, turn) for one, turn in zip(made, after, strict=True)])
    desk.folders.tidy(turn.manifest for turn in after)
    return tuple(after)


async def _document(name: str, text: str, turn: Turn, desk: ArchiveDesk) -> tuple[str, ArchivedDocument]:
    """A document as it will stand in the archived turn's folder, and what the manifest tells of it."""
    tokens = desk.kit.counter.count(text)
    targets = targets_of(tokens, desk.rules)
    shrunk = await _shrunk(name, text, tokens, targets, turn, desk)
    report = shrunk.report
    about = ArchivedDocument(
        name=name,
        original=f"revisions/{turn.manifest.revision}/{name}" if turn.manifest.revision else name,
        sha_before=_sha(text),
        sha_after=_sha(shrunk.text),
        tokens_before=tokens,
        tokens_after=report.tokens_after if report else tokens,
        target=targets[0] if targets else 0,
        content_type=report.content_type.value if report else (_kind(name) or ContentType.GENERIC).value,
        recipe=report.recipe if report else "",
        recipe_version=report.recipe_version if report else "",
        prompt_hash=report.prompt_hash if report else "",
        runtime=report.runtime if report else "",
        model=report.model if report else "",
        counts=dict(report.counts) if report else {},
        checks={verdict.gate: verdict.passed for verdict in report.verdicts} if report else {},
        whole="" if report else shrunk.halted,
        call_ids=(report.call_id,) if report else (),
    )
    return shrunk.text, about


async def _shrunk(name: str, text: str, tokens: int, targets: Sequence[int], turn: Turn, desk: ArchiveDesk) -> Shrunk:
    """The text compressed, or whole with the reason."""
    if not targets:
        return Shrunk(text, halted=f"{tokens} tokens: documents up to {SMALLEST} tokens stand whole")
    if desk.kit.summarizer is None:
        return Shrunk(text, halted="compression is switched off (COMPRESSION_ENABLED)")
    manifest = turn.manifest
    site = CallSite(PHASE, manifest.user_id, manifest.session_id, turn.key, manifest.revision, Priority.NIGHT)
    content = Content(text, name, _kind(name))
    shrunk = await desk.kit.summarizer.condense(content, targets=targets, site=site)
    if name == CONTEXT and shrunk.report and not _is_sound(text, shrunk.text):
        return Shrunk(text, halted="its compression would change section 0 or lose a section: expected both as they were")
    return shrunk


def _is_sound(before: str, after: str) -> bool:
    """Whether the compressed context.md is one, with the person's words and all sections."""
    was, becomes = ContextDocument.parse(before), ContextDocument.parse(after)
    same_sections = [s.number for s in was.sections] == [s.number for s in becomes.sections]
    return not becomes.faults() and same_sections and _query(was) == _query(becomes)


def _query(document: ContextDocument) -> str:
    section = document.section(0)
    return section.text if section else ""


def _kind(name: str) -> ContentType | None:
    return ContentType.CONTEXT_DOC if name == CONTEXT else None


def _sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()
