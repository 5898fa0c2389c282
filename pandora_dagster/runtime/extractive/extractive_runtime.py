"""The embedded runtime: which function answers which role, and under which runtime and model name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.images import EMBEDDED_PICTURE_FAULT
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.ports.measurement import Clock, TokenMeasure
from pandora_dagster.errors import ModelRejectedError
from pandora_dagster.runtime.extractive.output_budget import Draft, render_draft
from pandora_dagster.runtime.extractive.roles.context_synthesis import gather
from pandora_dagster.runtime.extractive.roles.header_retrieval import retrieve
from pandora_dagster.runtime.extractive.roles.query_analyzer import analyse, reflect
from pandora_dagster.runtime.extractive.roles.synthesizer import answer
from pandora_dagster.runtime.extractive.roles.tool_planner import coordinate, plan, step
from pandora_dagster.runtime.extractive.roles.validator import check_meaning, validate

NAME = "extractive"
Role = Callable[[PromptPack, TokenMeasure], Draft]
_ANSWERING_ROLES: Mapping[str, Role] = MappingProxyType(
    {
        "query_analyzer": analyse,
        "reflection": reflect,
        "retrieval": retrieve,
        "context_synthesis": gather,
        "planner": plan,
        "executor": step,
        "coordinator": coordinate,
        "synthesizer": answer,
        "validator": validate,
        "meaning_checker": check_meaning,
    }
)
"""The roles that every turn calls until it has its answer."""


def roles() -> Mapping[str, Role]:
    """Recipe field `role` -> the function that answers it."""
    return MappingProxyType({**_ANSWERING_ROLES, **_other_roles(), **_research_roles()})


def _other_roles() -> Mapping[str, Role]:
    """The other roles of turns and archival, imported with the first call of one."""
    from pandora_dagster.runtime.extractive.roles import judging_roles
    from pandora_dagster.runtime.extractive.roles.conversation_summarizer import summarize_conversation
    from pandora_dagster.runtime.extractive.roles.level_summarizers import build_digest, summarize_session
    from pandora_dagster.runtime.extractive.roles.picture_transcription import transcribe
    from pandora_dagster.runtime.extractive.roles.session_fact_extraction import keep_facts, keep_profile
    from pandora_dagster.runtime.extractive.roles.text_shortener import shorten
    from pandora_dagster.runtime.extractive.roles.turn_summarizer import summarize

    return {
        "summarizer": summarize,
        "compressor": shorten,
        "session_summarizer": summarize_session,
        "digest_builder": build_digest,
        "conversation_summarizer": summarize_conversation,
        "fact_keeper": keep_facts,
        "profile_keeper": keep_profile,
        "fact_conflict": judging_roles.find_conflict,
        "fact_expiry": judging_roles.find_expiry,
        "memory_query": judging_roles.recall_entries,
        "forget_request": judging_roles.choose_forgotten,
        "doc_search_query": judging_roles.write_other_words,
        "argument_filler": judging_roles.correct_arguments,
        "loop_detector": judging_roles.judge_repetition,
        "failure_lesson": judging_roles.propose_nothing,
        "screenshot_reader": transcribe,
    }


def _research_roles() -> Mapping[str, Role]:
    """The roles of research. They import the readers of web pages, so they are imported with the first call of one."""
    from pandora_dagster.runtime.extractive.roles.research_roles import RESEARCH_ROLES

    return RESEARCH_ROLES


class ExtractiveRuntime:
    """The embedded default (decision 25): deterministic, offline, never takes a word from anywhere but its input and the templates."""

    def __init__(self, counter: TokenMeasure, clock: Clock) -> None:
        self._counter = counter
        self._clock = clock

    @property
    def name(self) -> str:
        return NAME

    def model(self, layer: ModelLayer) -> str:
        """Always `extractive`: it never passes for the model of a layer."""
        return NAME

    def context_limit(self, layer: ModelLayer) -> int | None:
        """None: it reads a pack of any length."""
        return None

    def picture_fault(self, layer: ModelLayer) -> str:
        return EMBEDDED_PICTURE_FAULT

    def temperature(self, layer: ModelLayer) -> float:
        """0: the same pack has the same answer."""
        return 0.0

    async def count(self, pack: PromptPack) -> int | None:
        """Tokens of both messages, by the counter with which budgets are planned."""
        return self._prompt_tokens(pack)

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        """The answer for `pack.role`; raises ModelRejectedError for an unknown role and for a pack with images. It takes milliseconds:
        `timeout_s` is ignored, and the answer is sent in one piece."""
        role = _ANSWERING_ROLES.get(pack.role) or _other_roles().get(pack.role) or _research_roles().get(pack.role)
        if role is None:
            raise ModelRejectedError(
                f"{pack.recipe}: role {pack.role!r}: the extractive runtime knows {', '.join(roles())}",
                hint="set `role` in the recipe to one of these, or configure the sglang runtime",
            )
        if pack.images:
            raise ModelRejectedError(
                f"{pack.recipe}: {len(pack.images)} images: the extractive runtime reads text only",
                hint="configure the sglang runtime with a model that reads images",
            )
        began = self._clock()
        text = render_draft(role(pack, self._counter))
        took = (self._clock() - began).total_seconds() * 1000
        if on_words is not None and text:
            on_words(text)
        usage = Usage(prompt=self._prompt_tokens(pack), output=self._counter.count(text))
        return ModelAnswer(text, "stop", usage, NAME, NAME, took)

    def _prompt_tokens(self, pack: PromptPack) -> int:
        return self._counter.count(pack.system) + self._counter.count(pack.user)

    async def aclose(self) -> None:
        """Nothing is held open."""
