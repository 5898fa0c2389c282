"""Archival of one turn: read it, compress its documents, write its originals to cold storage, commit its manifest.

Nothing changes before the cold object has been read back; writing `turn.json` is the commit point (docs/explanation/archive.md).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from zoneinfo import ZoneInfo

from pandora_dagster.contracts.archive_records import ArchivedDocument, ArchiveRecord, ColdLocation, ColdObject, DueTurn
from pandora_dagster.contracts.compression_results import CompressionInput, CompressionResult
from pandora_dagster.contracts.enums import ContentType, Priority, TurnState
from pandora_dagster.contracts.model_calls import CallSite
from pandora_dagster.contracts.ports.archive_storage import ColdStorage, Holds, TurnArchive
from pandora_dagster.contracts.turns import Manifest, Turn, TurnRow
from pandora_dagster.contracts.user.conversations import Message
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.documents.turn_row import RESPONSE_FILE, build_turn_row, whole_answer
from pandora_dagster.phases.core.dependencies import PhaseDependencies

PHASE = "archival"
CONTEXT_FILE = "context.md"
MAX_WHOLE_TOKENS = 200
"""A document of at most this many tokens is not compressed."""
_TARGET_FACTORS = (1.0, 1.35, 1.7, 2.0)
"""Multiples of the target that are tried one after the other while no sound text fits, as long as they save tokens."""
_READABLE_SUFFIXES = (".md", ".txt", ".html")


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """Settings of archival."""

    zone: ZoneInfo
    after_days: int = 30
    """Length of the waiting period: a turn is due after so many days."""
    ratio: float = 0.4
    """Target tokens of a document, as a share of its tokens."""
    document_tokens: int = 500
    """A document beside context.md stays in the folder only if it has more tokens than this."""
    concurrency: int = 8


@dataclass(frozen=True, slots=True)
class ArchiveContext:
    """Dependencies of archival. `preamble` returns the messages before a recorded conversation's first turn, for its row."""

    deps: PhaseDependencies
    cold: ColdStorage
    folders: TurnArchive
    holds: Holds
    rules: ArchiveRules
    preamble: Callable[[Manifest], tuple[Message, ...]]
    run_id: str = ""

    def index_row(self, manifest: Manifest, documents: Turn) -> TurnRow:
        """Write the row of a turn to the turn index and return it; `documents` has the texts as before archival."""
        row = build_turn_row(manifest, documents.context, documents.files, preamble=self.preamble(manifest))
        self.deps.index.put([row])
        return row

    def put_lineage(self, turns: Iterable[tuple[Manifest, Turn]]) -> None:
        """Write the lineage of turns, each given with its original documents; without a lineage index nothing is written."""
        if self.deps.lineage and (listed_turns := list(turns)):
            self.deps.lineage.put(listed_turns)


@dataclass(frozen=True, slots=True)
class PackedTurn:
    """A turn compressed in memory; nothing has changed on the disk."""

    due: DueTurn
    turn: Turn
    cold: ColdObject
    texts: Mapping[str, str]
    """The documents of the archived turn by name, context.md among them."""
    documents: tuple[ArchivedDocument, ...]


async def pack_turn(due: DueTurn, ctx: ArchiveContext) -> PackedTurn:
    """Read a turn, verify it against its manifests and compress it; raises DocumentError, StoreError, HaltError."""
    turn, files = ctx.folders.originals(due.key)
    texts: dict[str, str] = {}
    documents: list[ArchivedDocument] = []
    for name, text in readable_documents(turn, count=ctx.deps.counter.count, min_tokens=ctx.rules.document_tokens).items():
        texts[name], entry = await _compress_document(name, text, turn, ctx)
        documents.append(entry)
    return PackedTurn(due, turn, ColdObject(due.key, due.day.isoformat(), files), texts, tuple(documents))


def readable_documents(turn: Turn, *, count: Callable[[str], int], min_tokens: int) -> dict[str, str]:
    """The documents that stay in an archived turn's folder: context.md, and each text of more than `min_tokens` tokens that users and
    citations read.

    `response.md` stays only where the answer is longer than section 5. Originals of sections do not stay: context.md contains them.
    """
    context = ContextDocument.parse(turn.context)
    # Without files the answer is that of section 5: where both are equal, response.md adds nothing.
    redundant_names = {RESPONSE_FILE} if whole_answer(context, turn.files) == whole_answer(context, {}) else set[str]()
    kept_names = (
        name
        for name, text in sorted(turn.files.items())
        if name.endswith(_READABLE_SUFFIXES)
        and not name.startswith("section_")
        and name not in redundant_names
        and count(text) > min_tokens
    )
    return {CONTEXT_FILE: turn.context, **{name: turn.files[name] for name in kept_names}}


def compression_targets(tokens: int, rules: ArchiveRules) -> tuple[int, ...]:
    """The targets to try for a document of this size, lowest first; () where it stays whole."""
    if tokens <= MAX_WHOLE_TOKENS:
        return ()
    targets = dict.fromkeys(int(tokens * rules.ratio * factor) for factor in _TARGET_FACTORS)
    return tuple(target for target in targets if target < tokens)


def archive_record(packed: PackedTurn, location: ColdLocation, ctx: ArchiveContext) -> ArchiveRecord:
    """The record of the archival that the turn's manifest receives; `location`: its originals in cold storage."""
    return ArchiveRecord(
        archived_at=ctx.deps.now,
        day=packed.due.day.isoformat(),
        was="clarify" if packed.turn.manifest.state is TurnState.CLARIFY else "saved",
        cold=location.path,
        sha256=location.sha256,
        size=location.size,
        files={name: sha256(data).hexdigest() for name, data in sorted(packed.cold.files.items())},
        documents=packed.documents,
        run_id=ctx.run_id,
    )


def store_turns(packed_turns: Sequence[PackedTurn], ctx: ArchiveContext) -> tuple[Turn, ...]:
    """Write the originals to cold storage, commit the manifests, remove leftover files; returns the archived turns.

    Raises StoreError, DocumentError.
    """
    locations = ctx.cold.put([packed.cold for packed in packed_turns])
    archived_turns = [
        ctx.folders.archived_turn(packed.turn, packed.texts, archive_record(packed, location, ctx))
        for packed, location in zip(packed_turns, locations, strict=True)
    ]
    ctx.folders.commit([(packed.turn, archived) for packed, archived in zip(packed_turns, archived_turns, strict=True)])
    ctx.folders.remove_unnamed(archived.manifest for archived in archived_turns)
    return tuple(archived_turns)


async def _compress_document(name: str, text: str, turn: Turn, ctx: ArchiveContext) -> tuple[str, ArchivedDocument]:
    """Compress one document; returns its text for the archived turn's folder and its entry in the manifest."""
    tokens = ctx.deps.counter.count(text)
    targets = compression_targets(tokens, ctx.rules)
    compressed = await _compress_text(name, text, tokens, targets, turn, ctx)
    report = compressed.report
    entry = ArchivedDocument(
        name=name,
        original=f"revisions/{turn.manifest.revision}/{name}" if turn.manifest.revision else name,
        sha_before=_sha(text),
        sha_after=_sha(compressed.text),
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
        whole="" if report else compressed.halted,
        call_ids=(report.call_id,) if report else (),
    )
    return compressed.text, entry


async def _compress_text(name: str, text: str, tokens: int, targets: Sequence[int], turn: Turn, ctx: ArchiveContext) -> CompressionResult:
    """Compress a text; a text that stays whole is returned with the reason."""
    if not targets:
        return CompressionResult(text, halted=f"{tokens} tokens: documents up to {MAX_WHOLE_TOKENS} tokens stay whole")
    if ctx.deps.summarizer is None:
        return CompressionResult(text, halted="compression is switched off (COMPRESSION_ENABLED)")
    manifest = turn.manifest
    site = CallSite(PHASE, manifest.user_id, manifest.session_id, turn.key, manifest.revision, Priority.BATCH)
    content = CompressionInput(text, name, _content_type(name))
    compressed = await ctx.deps.summarizer.compress_for_archive(content, targets=targets, site=site)
    if name == CONTEXT_FILE and compressed.report and not _is_sound(text, compressed.text):
        return CompressionResult(text, halted="its compression would change section 0 or lose a section: expected both as they were")
    return compressed


def _is_sound(original: str, compressed: str) -> bool:
    """Whether the compressed context.md is valid and has the query unchanged and every section."""
    before, after = ContextDocument.parse(original), ContextDocument.parse(compressed)
    same_sections = [s.number for s in before.sections] == [s.number for s in after.sections]
    return not after.faults() and same_sections and _query_section(before) == _query_section(after)


def _query_section(document: ContextDocument) -> str:
    section = document.section(0)
    return section.text if section else ""


def _content_type(name: str) -> ContentType | None:
    return ContentType.CONTEXT_DOC if name == CONTEXT_FILE else None


def _sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()
