"""The desk a phase works at: the turn it reads, the calls it makes, what it writes. No phase's own logic."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from pydantic import BaseModel, ValidationError

from pandora_dagster.contracts.compression_results import CompressionReport, CompressionResult
from pandora_dagster.contracts.enums import InterventionType, Priority, TurnState
from pandora_dagster.contracts.gates import GateVerdict
from pandora_dagster.contracts.model_calls import CallRequest, CallResult, CallSite, InputDocument, Source
from pandora_dagster.contracts.phase_outputs import QueryAnalysis
from pandora_dagster.contracts.turns import Turn
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import BadAnswerError, DocumentError, HaltError
from pandora_dagster.phases.core.dependencies import PhaseDependencies
from pandora_dagster.phases.core.halt_interventions import open_intervention

Answer = TypeVar("Answer", bound=BaseModel)
_LINE_END = re.compile("[\x85\u2028\u2029]")
"""What ends a line beside the control characters, which JSON escapes."""
_SCHEMA_HINT = "compare the recipe's output_schema with the shipped one: it lets an answer pass that the phase can not read"


@dataclass(frozen=True, slots=True)
class PhaseOutput:
    """What a phase hands back: sections by number, files by name, and what to show of it."""

    sections: Mapping[int, str] = field(default_factory=dict[int, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    state: TurnState | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    verdicts: tuple[GateVerdict, ...] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shown: str = ""
    """Markdown to show where the phase writes no section."""


@dataclass(slots=True)
class PhaseContext:
    """One phase's run over one turn. `results` collects its calls in order."""

    phase: str
    turn: Turn
    deps: PhaseDependencies
    results: list[CallResult] = field(default_factory=list[CallResult])
    compressions: list[CompressionReport] = field(default_factory=list[CompressionReport])
    overflows: list[GateVerdict] = field(default_factory=list[GateVerdict])
    kept: dict[str, str] = field(default_factory=dict[str, str])
    """Documents that stay where the phase HALTs: what a person needs to judge it."""

    @property
    def site(self) -> CallSite:
        """Who calls: stands in every record of this run."""
        manifest = self.turn.manifest
        answered = manifest.state in (TurnState.SAVED, TurnState.CLARIFY)
        priority = min(self.deps.priority, Priority.FOLLOW_UP) if answered else self.deps.priority
        return CallSite(self.phase, manifest.user_id, manifest.session_id, self.turn.key, manifest.revision, priority)

    @property
    def context_document(self) -> ContextDocument:
        return ContextDocument.parse(self.turn.context)

    @property
    def query(self) -> str:
        """The person's words, verbatim."""
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
        context: ContextDocument | None = None,
        halt_on_low_confidence: bool = True,
        aloud: bool = False,
    ) -> CallResult:
        """Run the recipe of `recipe` (a stem, taken in the turn's mode) over this turn's documents; `aloud`: the person may listen."""
        manifest = self.turn.manifest
        whole = (context or self.context_document).render()
        analysis = self.analysis() if "query_analysis.json" in self.turn.files else None
        request = CallRequest(
            recipe=recipe,
            query=self.query,
            site=self.site,
            documents=(InputDocument("context.md", whole), *documents),
            variables={"mode": self.mode, "session_id": manifest.session_id, "turn_id": manifest.turn_id},
            sources=sources,
            intent=analysis.intent if analysis else "",
            ambiguous=bool(analysis and analysis.reference_resolution.status == "unresolved"),
            policy=self.deps.policy,
            mode=self.mode,
            halt_on_low_confidence=halt_on_low_confidence,
            listener=self.deps.listener if aloud else None,
        )
        result = await self.deps.execution.call(request)
        self.results.append(result)
        self.compressions += result.compressions
        return result

    def withdraw(self, reason: str) -> None:
        """Tell whoever listens that the answer they heard is none."""
        if self.deps.listener is not None:
            self.deps.listener.on_withdrawal(reason)

    def record_compression(self, shrunk: CompressionResult) -> str:
        """The text of a compression, whose report goes into this run's; one that had to stay too large is told as a verdict."""
        if shrunk.report:
            self.compressions.append(shrunk.report)
        if shrunk.halted:
            self.overflows.append(GateVerdict("within_budget", False, shrunk.halted))
        return shrunk.text

    @property
    def compression_verdicts(self) -> tuple[GateVerdict, ...]:
        """The checks of every compression of this run."""
        return tuple(v for report in self.compressions for v in report.verdicts) + tuple(self.overflows)

    def file(self, name: str) -> str:
        """A document an earlier phase wrote; raises DocumentError where it is missing."""
        try:
            return self.turn.files[name]
        except KeyError:
            raise DocumentError(f"{self.turn.key}: {name}: missing; {self.phase} needs it", missing=True) from None

    def read(self, name: str, shape: type[Answer]) -> Answer:
        """A parsed answer an earlier phase wrote; raises DocumentError where it does not have `shape`."""
        try:
            return shape.model_validate_json(self.file(name))
        except ValidationError as error:
            first = error.errors()[0]
            raise DocumentError(f"{self.turn.key}: {name}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error

    def analysis(self) -> QueryAnalysis:
        return self.read("query_analysis.json", QueryAnalysis)

    def analysis_document(self) -> InputDocument:
        """`query_analysis.json` as calls read it: without the query's own words, which every pack says already."""
        analysis = self.analysis()
        same = analysis.resolved_query.strip() == self.query.strip()
        said = {"original_query", "resolved_query"} if same else {"original_query"}
        return InputDocument("query_analysis.json", as_json(analysis.model_dump(mode="json", exclude=said)))

    def halt(self, kind: InterventionType, message: str, *, hint: str) -> HaltError:
        """The HALT of a phase that judges its last call's answer, with its intervention written."""
        call = self.results[-1].record if self.results else None
        opened = open_intervention(self.deps, self.phase, self.turn.manifest, kind, message, hint=hint, call=call)
        return HaltError(message, intervention_id=opened.id, hint=hint)


def parsed_answer(result: CallResult, shape: type[Answer], **filled: Any) -> Answer:
    """The parsed answer of a call as the phase reads it; raises BadAnswerError where a changed recipe schema let another shape pass."""
    where = f"{result.record.recipe}: answer"
    parsed: object = result.parsed
    if not isinstance(parsed, dict):
        raise BadAnswerError(f"{where}: no object: expected {shape.__name__}", hint=_SCHEMA_HINT)
    try:
        return shape.model_validate({**cast("dict[str, Any]", parsed), **filled})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        message = f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}: expected {shape.__name__}"
        raise BadAnswerError(message, hint=_SCHEMA_HINT) from error


def as_json(value: BaseModel | Mapping[str, Any]) -> str:
    """A document as JSON for files: readable, keys in the order of the specification."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, indent=2) + "\n"


def json_line(value: Mapping[str, Any]) -> str:
    """One JSON line for a list of headers: also to readers to whom more than a line feed ends a line."""
    return _LINE_END.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False))
