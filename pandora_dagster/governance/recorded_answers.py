"""Answers of a model to the tests of a recipe, recorded once and replayed without the model.

A recording is keyed by its request: the digest of what was sent, to which layer. A test that is replayed builds its prompt packs as
always. A pack that was recorded gets the recorded answer, and expectations and gates judge it again. Any other pack fails its test: the
prompt has changed since, so nothing is known of what the model would answer.
"""

from collections.abc import Callable, Iterable
from hashlib import sha256
from json import dumps

from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.model_calls import ModelAnswer, PromptPack, Usage
from pandora_dagster.contracts.ports.measurement import Clock
from pandora_dagster.contracts.recipe_governance import RecordedAnswer
from pandora_dagster.errors import ModelRejectedError


def request_digest(pack: PromptPack) -> str:
    """The sha256 of what a call sends and to which layer; neither its id nor its sampling, which do not change what is asked."""
    images = [image.reference for image in pack.images]
    return sha256(dumps([pack.recipe, pack.layer.value, pack.system, pack.user, images], ensure_ascii=False).encode()).hexdigest()


class AnswerRecorder:
    """Notes the raw answers of the calls that an executor makes; `note` is its listener."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: list[RecordedAnswer] = []

    def note(self, pack: PromptPack, answer: ModelAnswer) -> None:
        """Note one answer, also one that a gate then refuses."""
        self._answers.append(
            RecordedAnswer(
                request=request_digest(pack),
                recipe=pack.recipe,
                layer=pack.layer,
                runtime=answer.runtime,
                model=answer.model,
                recorded_at=self._clock().isoformat(timespec="seconds"),
                finish_reason=answer.finish_reason,
                answer=answer.text,
            )
        )

    def take(self, test: str) -> tuple[RecordedAnswer, ...]:
        """The answers noted since the last call, as those of `test`."""
        noted_answers = tuple(answer.model_copy(update={"test": test}) for answer in self._answers)
        self._answers.clear()
        return noted_answers


class RecordedRuntime:
    """A runtime that answers from recordings. Each answer names the runtime and the model that gave it."""

    name = "recorded"

    def __init__(self, recorded: Iterable[RecordedAnswer]) -> None:
        self._answers = {answer.request: answer for answer in recorded}
        self._recipes = {answer.recipe for answer in self._answers.values()}

    def model(self, layer: ModelLayer) -> str:
        return self.name

    def context_limit(self, layer: ModelLayer) -> int | None:
        return None

    def picture_fault(self, layer: ModelLayer) -> str:
        return "recorded answers read no pictures"

    def temperature(self, layer: ModelLayer) -> float:
        return 0.0

    async def count(self, pack: PromptPack) -> int | None:
        return None

    async def complete(self, pack: PromptPack, *, timeout_s: float, on_words: Callable[[str], None] | None = None) -> ModelAnswer:
        """The recorded answer; raises ModelRejectedError where this request was not recorded."""
        recorded = self._answers.get(request_digest(pack))
        if recorded is None:
            reason = "recorded for another prompt: record again" if pack.recipe in self._recipes else "no answer is recorded"
            raise ModelRejectedError(f"{pack.recipe}: {reason}", hint=f"pandora recipes record {pack.recipe}")
        if on_words is not None:
            on_words(recorded.answer)
        return ModelAnswer(recorded.answer, recorded.finish_reason, Usage(), recorded.runtime, recorded.model, 0.0)

    async def aclose(self) -> None:
        """Nothing is held open."""
