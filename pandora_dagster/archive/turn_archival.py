"""The archiving of one turn: its compressed documents, its originals in cold storage, its manifest.

docs/explanation/archive.md states the order: nothing changes before the cold object has been read back; writing `turn.json` is the commit
point.
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
CONTEXT = "context.md"
SMALLEST_TOKENS = 200
"""Tokens up to which a document stays whole."""
_TARGET_FACTORS = (1.0, 1.35, 1.7, 2.0)
"""Multiples of the target that are tried in turn while no sound text fits, as long as they save tokens."""
_READABLE = (".md", ".txt", ".html")


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """Settings of archival."""

    zone: ZoneInfo
    after_days: int = 30
    ratio: float = 0.4
    """Target tokens of a document, as a share of its tokens."""
    document_tokens: int = 500
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

    def index_row(self, manifest: Manifest, texts: Turn) -> TurnRow:
        """Write the row of a turn to the turn index and return it; `texts` has the documents that the row is made of."""
        row = build_turn_row(manifest, texts.context, texts.files, preamble=self.preamble(manifest))
        self.deps.index.put([row])
        return row

    def put_lineage(self, turns: Iterable[tuple[Manifest, Turn]]) -> None:
        """Write the lineage of turns, each with its documents before any archival, where lineage is kept."""
        if self.deps.lineage and (given := list(turns)):
            self.deps.lineage.put(given)


@dataclass(frozen=True, slots=True)
class PackedTurn:
    """A turn that is compressed in memory; nothing has changed on the disk."""

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
    for name, text in readable_documents(turn, count=ctx.deps.counter.count, over=ctx.rules.document_tokens).items():
        texts[name], about = await _compress_document(name, text, turn, ctx)
        documents.append(about)
    return PackedTurn(due, turn, ColdObject(due.key, due.day.isoformat(), files), texts, tuple(documents))


def readable_documents(turn: Turn, *, count: Callable[[str], int], over: int) -> dict[str, str]:
    """The documents that stay in an archived turn's folder: context.md, and texts over `over` tokens that users and citations read.

    `response.md` is among them only where the answer is longer than section 5; originals of sections are not, context.md contains them.
    """
    answer = ContextDocument.parse(turn.context)
    in_context = {RESPONSE_FILE} if whole_answer(answer, turn.files) == whole_answer(answer, {}) else set[str]()
    chosen = (
        name
        for name, text in sorted(turn.files.items())
        if name.endswith(_READABLE) and not name.startswith("section_") and name not in in_context and count(text) > over
    )
    return {CONTEXT: turn.context, **{name: turn.files[name] for name in chosen}}


def compression_targets(tokens: int, rules: ArchiveRules) -> tuple[int, ...]:
    """The targets to try for a document of this size, lowest first; () where it stays whole."""
    if tokens <= SMALLEST_TOKENS:
        return ()
    return tuple(t for t in dict.fromkeys(int(tokens * rules.ratio * more) for more in _TARGET_FACTORS) if t < tokens)


def archive_record(made: PackedTurn, place: ColdLocation, ctx: ArchiveContext) -> ArchiveRecord:
    """The archive record of the turn's manifest."""
    return ArchiveRecord(
        archived_at=ctx.deps.now,
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
    """Write the originals to cold storage, commit the manifests, remove leftovers; returns the archived turns.

    Raises StoreError, DocumentError.
    """
    places = ctx.cold.put([one.cold for one in made])
    after = [
        ctx.folders.archived_turn(one.turn, one.texts, archive_record(one, place, ctx)) for one, place in zip(made, places, strict=True)
    ]
    ctx.folders.commit([(one.turn, turn) for one, turn in zip(made, after, strict=True)])
    ctx.folders.remove_unnamed(turn.manifest for turn in after)
    return tuple(after)


async def _compress_document(name: str, text: str, turn: Turn, ctx: ArchiveContext) -> tuple[str, ArchivedDocument]:
    """A document of the archived turn's folder, and its entry in the manifest."""
    tokens = ctx.deps.counter.count(text)
    targets = compression_targets(tokens, ctx.rules)
    compressed = await _compress_text(name, text, tokens, targets, turn, ctx)
    report = compressed.report
    about = ArchivedDocument(
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
    return compressed.text, about


async def _compress_text(name: str, text: str, tokens: int, targets: Sequence[int], turn: Turn, ctx: ArchiveContext) -> CompressionResult:
    """The text compressed, or unchanged with the reason."""
    if not targets:
        return CompressionResult(text, halted=f"{tokens} tokens: documents up to {SMALLEST_TOKENS} tokens stay whole")
    if ctx.deps.summarizer is None:
        return CompressionResult(text, halted="compression is switched off (COMPRESSION_ENABLED)")
    manifest = turn.manifest
    site = CallSite(PHASE, manifest.user_id, manifest.session_id, turn.key, manifest.revision, Priority.BATCH)
    content = CompressionInput(text, name, _content_type(name))
    compressed = await ctx.deps.summarizer.compress_for_archive(content, targets=targets, site=site)
    if name == CONTEXT and compressed.report and not _is_sound(text, compressed.text):
        return CompressionResult(text, halted="its compression would change section 0 or lose a section: expected both as they were")
    return compressed


def _is_sound(before: str, after: str) -> bool:
    """Whether the compressed context.md is valid, with the user's words and all sections."""
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
