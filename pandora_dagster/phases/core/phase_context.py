"""The phase context: the turn that a phase reads, the calls it makes, what it writes."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

from pandora_dagster.contracts.compression_results import CompressionReport, CompressionResult, GateVerdict
from pandora_dagster.contracts.enums import InterventionType, Priority, TurnState
from pandora_dagster.contracts.model_calls import CallRequest, CallResult, CallSite, InputDocument, Source
from pandora_dagster.contracts.phase_outputs import QueryAnalysis
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import BadAnswerError, ConfigurationError, DocumentError, HaltError
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.halt_interventions import open_intervention
from pandora_dagster.phases.core.turn_lock import TurnLock

Answer = TypeVar("Answer", bound=BaseModel)
_LINE_END = re.compile("[\x85\u2028\u2029]")
"""Line separators that JSON does not escape: NEL, LINE SEPARATOR and PARAGRAPH SEPARATOR."""
_SCHEMA_HINT = "compare the recipe's output_schema with the shipped one: it accepts an answer that the phase cannot read"


@dataclass(frozen=True, slots=True)
class PhaseOutput:
    """What a phase returns: sections by number, files by name, and what reports show of it."""

    sections: Mapping[int, str] = field(default_factory=dict[int, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Numbers and tables for the report and the manifest, by name."""
    verdicts: tuple[GateVerdict, ...] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of the manifest that the commit sets."""
    shown: str = ""
    """Markdown that reports show where the phase writes no section."""


@dataclass(slots=True)
class PhaseContext:
    """One phase's run over one turn. `results` collects its calls in order."""

    phase: str
    turn: Turn
    deps: PhaseDependencies
    required_files: tuple[str, ...] = ()
    """Documents that the phases before this one always write."""
    required_sections: tuple[int, ...] = ()
    """Sections that the phases before this one write."""
    results: list[CallResult] = field(default_factory=list[CallResult])
    compressions: list[CompressionReport] = field(default_factory=list[CompressionReport])
    overflows: list[GateVerdict] = field(default_factory=list[GateVerdict])
    """A failed `within_budget` verdict for each text that no sound compression fits."""
    halt_files: dict[str, str] = field(default_factory=dict[str, str])
    """Documents that are stored where the phase HALTs, so that the user can judge it."""
    lock: TurnLock | None = None
    """Of the turn, released while a tool runs; None where the phase holds no turn."""
    _parsed_context: tuple[str, ContextDocument] | None = field(default=None, init=False, repr=False)

    @property
    def site(self) -> CallSite:
        """The caller, as every call record of this run names it."""
        manifest = self.turn.manifest
        answered = manifest.state in (TurnState.SAVED, TurnState.CLARIFY)
        priority = min(self.deps.priority, Priority.FOLLOW_UP) if answered else self.deps.priority
        return CallSite(self.phase, manifest.user_id, manifest.session_id, self.turn.key, manifest.revision, priority)

    @property
    def context_document(self) -> ContextDocument:
        """context.md of the turn, parsed once for each text of it."""
        if self._parsed_context is None or self._parsed_context[0] != self.turn.context:
            self._parsed_context = (self.turn.context, ContextDocument.parse(self.turn.context))
        return self._parsed_context[1]

    @property
    def query(self) -> str:
        """The user's words, verbatim."""
        return self.context_document.query()

    @property
    def mode(self) -> Literal["chat", "code"]:
        return self.turn.manifest.mode

    async def ask(
        self,
        recipe: str,
        documents: Sequence[InputDocument] = (),
        *,
        sources: tuple[Source, ...] = (),
        evidence: Mapping[str, str] | None = None,
        context: ContextDocument | None = None,
        query: str | None = None,
        is_streamed: bool = False,
    ) -> CallResult:
        """Run `recipe`, in its variant for the turn's mode where it has one, over this turn's documents.

        `query`: replaces the user's words in the pack. `is_streamed`: the listener receives the answer while it is written.
        """
        manifest = self.turn.manifest
        context_text = (context or self.context_document).render()
        analysis = self.analysis() if "query_analysis.json" in self.turn.files else None
        request = CallRequest(
            recipe=recipe,
            query=self.query if query is None else query,
            site=self.site,
            documents=(InputDocument("context.md", context_text), *documents, *self._named_files(recipe, {d.name for d in documents})),
            variables={"mode": self.mode, "session_id": manifest.session_id, "turn_id": manifest.turn_id},
            sources=sources,
            evidence=evidence or {},
            intent=analysis.intent if analysis else "",
            ambiguous=bool(analysis and analysis.reference_resolution.status == "unresolved"),
            mode=self.mode,
            listener=self.deps.listener if is_streamed else None,
        )
        result = await self.deps.execution.call(request)
        self.results.append(result)
        self.compressions += result.compressions
        return result

    def _named_files(self, recipe: str, offered: Collection[str]) -> tuple[InputDocument, ...]:
        """The files of earlier phases that the recipe names and the phase does not offer itself."""
        try:
            named = self.deps.recipes.get(recipe, self.mode).recipe.input_docs
        except ConfigurationError:
            return ()  # the call reports it
        return tuple(InputDocument(name, self.turn.files[name]) for name in named if name in self.turn.files and name not in offered)

    def withdraw(self, reason: str) -> None:
        """Notify the listener that the streamed answer is withdrawn."""
        if self.deps.listener is not None:
            self.deps.listener.on_withdrawal(reason)

    def record_compression(self, result: CompressionResult) -> str:
        """The compressed text; adds the report, and a failed verdict where the text had to stay over its budget."""
        if result.report:
            self.compressions.append(result.report)
        if result.halted:
            self.overflows.append(GateVerdict("within_budget", False, result.halted))
        return result.text

    @property
    def compression_verdicts(self) -> tuple[GateVerdict, ...]:
        """The checks of every compression of this run."""
        return tuple(v for report in self.compressions for v in report.verdicts) + tuple(self.overflows)

    def file(self, name: str) -> str:
        """A document of an earlier phase; raises DocumentError where it is missing."""
        try:
            return self.turn.files[name]
        except KeyError:
            raise DocumentError(f"{self.turn.key}: {name}: missing; {self.phase} needs it", missing=True) from None

    def read(self, name: str, model: type[Answer]) -> Answer:
        """A parsed answer of an earlier phase; raises DocumentError where it does not fit `model`."""
        try:
            return model.model_validate_json(self.file(name))
        except ValidationError as error:
            first = error.errors()[0]
            raise DocumentError(f"{self.turn.key}: {name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error

    def analysis(self) -> QueryAnalysis:
        return self.read("query_analysis.json", QueryAnalysis)

    def analysis_document(self) -> InputDocument:
        """`query_analysis.json` as calls read it: without the query's own words, which every pack contains already."""
        analysis = self.analysis()
        is_unchanged = analysis.resolved_query.strip() == self.query.strip()
        repeated = {"original_query", "resolved_query"} if is_unchanged else {"original_query"}
        return InputDocument("query_analysis.json", as_json(analysis.model_dump(mode="json", exclude=repeated)))

    def halt(self, kind: InterventionType, message: str, *, hint: str) -> HaltError:
        """The HALT to raise in a phase that rejects its last call's answer; its intervention is stored."""
        call = self.results[-1].record if self.results else None
        intervention = open_intervention(self.deps, self.phase, self.turn.manifest, kind, message, hint=hint, call=call)
        return HaltError(message, intervention_id=intervention.id, hint=hint)


def parsed_answer(result: CallResult, model: type[Answer], **fields: Any) -> Answer:
    """The parsed answer of a call as `model`, with `fields` filled in.

    Raises BadAnswerError where a changed recipe schema accepted an answer that does not fit it.
    """
    where = f"{result.record.recipe}: answer"
    parsed: object = result.parsed
    if not isinstance(parsed, dict):
        raise BadAnswerError(f"{where}: no object: expected {model.__name__}", hint=_SCHEMA_HINT)
    try:
        return model.model_validate({**cast("dict[str, Any]", parsed), **fields})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message = f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}: expected {model.__name__}"
        raise BadAnswerError(message, hint=_SCHEMA_HINT) from error


def as_json(value: BaseModel | Mapping[str, Any]) -> str:
    """A document as indented JSON, keys in the order of the specification."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, indent=2) + "\n"


def json_line(value: Mapping[str, Any]) -> str:
    """One JSON line; line separators are escaped, for readers that end a line at more than a line feed."""
    return _LINE_END.sub(lambda match: f"\\u{ord(match.group()):04x}", json.dumps(value, ensure_ascii=False))
