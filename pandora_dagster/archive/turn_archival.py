"""One turn on its way to the archive: what of it stays readable, compressed; its originals ready for cold storage; its row.

The order is that of docs/architecture.md: nothing changes before the cold object has been read back, and `turn.json` is the switch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from zoneinfo import ZoneInfo

from pandora_dagster.contracts.archive_records import ArchivedDocument, ArchiveRecord, ColdLocation, ColdObject, DueTurn
from pandora_dagster.contracts.compression_results import CompressionInput, CompressionResult
from pandora_dagster.contracts.enums import ContentType, Priority, TurnState
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.contracts.ports.archive_storage import ColdStorage, Holds, TurnArchive
from pandora_dagster.contracts.turns import Manifest, Turn
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.timestamps import format_timestamp
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.retrieval.turn_row import RESPONSE_FILE, whole_answer

PHASE = "archival"
CONTEXT = "context.md"
SMALLEST_TOKENS = 200
"""Tokens under which a document is not compressed, and under which no target lies."""
_TARGET_FACTORS = (1.0, 1.35, 1.7, 2.0)
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
class ArchiveContext:
    """What an archival works with. `preamble` gives what stood before a recorded conversation's first turn, for its row."""

    deps: PhaseDependencies
    cold: ColdStorage
    folders: TurnArchive
    holds: Holds
    rules: ArchiveRules
    preamble: Callable[[Manifest], tuple[Message, ...]]
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class PackedTurn:
    """A turn that is compressed in memory; nothing of it has changed on the disk."""

    due: DueTurn
    turn: Turn
    cold: ColdObject
    texts: Mapping[str, str]
    """The documents of the archived turn by name, context.md among them."""
    documents: tuple[ArchivedDocument, ...]


async def pack_turn(due: DueTurn, ctx: ArchiveContext) -> PackedTurn:
    """The turn read, held against its manifests and compressed; raises DocumentError, StoreError, HaltError."""
    turn, files = ctx.folders.originals(due.key)
    texts: dict[str, str] = {}
    documents: list[ArchivedDocument] = []
    for name, text in readable_documents(turn, count=ctx.deps.counter.count, over=ctx.rules.document_tokens).items():
        texts[name], about = await _compress_document(name, text, turn, ctx)
        documents.append(about)
    return PackedTurn(due, turn, ColdObject(due.key, due.day.isoformat(), files), texts, tuple(documents))


def readable_documents(turn: Turn, *, count: Callable[[str], int], over: int) -> dict[str, str]:
    """What of a turn stays in its folder: context.md, and the larger texts that people and citations read.

    `response.md` only where the answer is more than section 5 holds; a section's own original not: context.md tells it.
    """
    answer = ContextDocument.parse(turn.context)
    said_in_context = {RESPONSE_FILE} if whole_answer(answer, turn.files) == whole_answer(answer, {}) else set[str]()
    chosen = (
        name
        for name, text in sorted(turn.files.items())
        if name.endswith(_READABLE) and not name.startswith("section_") and name not in said_in_context and count(text) > over
    )
    return {CONTEXT: turn.context, **{name: turn.files[name] for name in chosen}}


def compression_targets(tokens: int, rules: ArchiveRules) -> tuple[int, ...]:
    """What a document of this size is to fit, the first that a sound text fits; () where it stands whole."""
    return tuple(t for t in dict.fromkeys(max(SMALLEST_TOKENS, int(tokens * rules.ratio * more)) for more in _TARGET_FACTORS) if t < tokens)


def archive_record(made: PackedTurn, place: ColdLocation, ctx: ArchiveContext) -> ArchiveRecord:
    """What the archived turn's manifest keeps."""
    return ArchiveRecord(
        archived_at=format_timestamp(ctx.deps.clock().replace(microsecond=0)),
        day=made.due.day.isoformat(),
        was="clarify" if made.turn.manifest.state is TurnState.CLARIFY else "saved",
        cold=place.path,
        sha256=place.sha256,
        size=place.size,
        files={name: sha256(data).hexdigest() for name, data in sorted(made.cold.files.items())},
        documents=made.documents,
        run_id=ctx.run_id,
    )


def store_turns(made: Sequence[PackedTurn], ctx: ArchiveContext) -> tuple[Turn, ...]:
    """Originals to cold storage, then the switch, then what is left over; the turns as they stand. Raises StoreError, DocumentError."""
    places = ctx.cold.put([one.cold for one in made])
    after = [
        ctx.folders.archived_turn(one.turn, one.texts, archive_record(one, place, ctx)) for one, place in zip(made, places, strict=True)
    ]
    ctx.folders.commit([(one.turn, turn) for one, turn in zip(made, after, strict=True)])
    ctx.folders.remove_unnamed(turn.manifest for turn in after)
    return tuple(after)


async def _compress_document(name: str, text: str, turn: Turn, ctx: ArchiveContext) -> tuple[str, ArchivedDocument]:
    """A document as it will stand in the archived turn's folder, and what the manifest tells of it."""
    tokens = ctx.deps.counter.count(text)
    targets = compression_targets(tokens, ctx.rules)
    shrunk = await _compress_text(name, text, tokens, targets, turn, ctx)
    report = shrunk.report
    about = ArchivedDocument(
        name=name,
        original=f"revisions/{turn.manifest.revision}/{name}" if turn.manifest.revision else name,
        sha_before=_sha(text),
        sha_after=_sha(shrunk.text),
        tokens_before=tokens,
        tokens_after=report.tokens_after if report else tokens,
        target=targets[0] if targets else 0,
        content_type=report.content_type.value if report else (_content_type(name) or ContentType.GENERIC).value,
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


async def _compress_text(name: str, text: str, tokens: int, targets: Sequence[int], turn: Turn, ctx: ArchiveContext) -> CompressionResult:
    """The text compressed, or whole with the reason."""
    if not targets:
        return CompressionResult(text, halted=f"{tokens} tokens: documents up to {SMALLEST_TOKENS} tokens stand whole")
    if ctx.deps.summarizer is None:
        return CompressionResult(text, halted="compression is switched off (COMPRESSION_ENABLED)")
    manifest = turn.manifest
    site = CallSite(PHASE, manifest.user_id, manifest.session_id, turn.key, manifest.revision, Priority.BATCH)
    content = CompressionInput(text, name, _content_type(name))
    shrunk = await ctx.deps.summarizer.compress_for_archive(content, targets=targets, site=site)
    if name == CONTEXT and shrunk.report and not _is_sound(text, shrunk.text):
        return CompressionResult(text, halted="its compression would change section 0 or lose a section: expected both as they were")
    return shrunk


def _is_sound(before: str, after: str) -> bool:
    """Whether the compressed context.md is one, with the person's words and all sections."""
    was, becomes = ContextDocument.parse(before), ContextDocument.parse(after)
    same_sections = [s.number for s in was.sections] == [s.number for s in becomes.sections]
    return not becomes.faults() and same_sections and _query_section(was) == _query_section(becomes)


def _query_section(document: ContextDocument) -> str:
    section = document.section(0)
    return section.text if section else ""


def _content_type(name: str) -> ContentType | None:
    return ContentType.CONTEXT_DOC if name == CONTEXT else None


def _sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()
