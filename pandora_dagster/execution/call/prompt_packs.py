"""The prompt pack of a call: its parts in their order (specification 000, section 15, step 4)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.compression_results import CompressionReport
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.images import ImagePart
from pandora_dagster.contracts.model_calls import CallRequest, InputDocument, Part, PartKind, PromptPack, frame_text
from pandora_dagster.contracts.recipe_schema import LoadedRecipe, PromptFrames, TokenBudget
from pandora_dagster.execution.fit.call_budget import TokenCountFunction, document_text
from pandora_dagster.recipes.static_prompts import fill_variables, io_schema

MAX_FEEDBACK_CHARACTERS = 480
"""A longer error is shortened in the feedback of a retry; enough for three schema faults, about 120 tokens."""
_FEEDBACK_END_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class PackContents:
    """The contents of the pack of one call on one layer, each part within its budget; feedback is added for each attempt."""

    request: CallRequest
    loaded: LoadedRecipe
    layer: ModelLayer
    budget: TokenBudget
    """The recipe's, as far as the served model takes it."""
    temperature: float
    tools: tuple[str, ...]
    shared: tuple[Part, ...]
    input: tuple[Part, ...]
    prompt_tokens: int
    input_tokens: int
    feedback_limit: int
    """Tokens that prompt and input leave of the call's budget."""
    left_out: tuple[str, ...] = ()
    tokens_saved: int = 0
    compressions: tuple[CompressionReport, ...] = ()


def counted_part(kind: PartKind, name: str, text: str, count: TokenCountFunction) -> Part:
    """A part with its tokens, counted in its frame with the blank line after it.

    A frame ends in a punctuation mark and line breaks, and the next one begins with `<`. cl100k never merges characters across that
    border, so the tokens of the parts add up to those of the message.
    """
    return Part(kind, name, text, count(frame_text(kind, name, text) + "\n\n"))


def input_parts(variables: str, documents: Iterable[InputDocument], query: str, count: TokenCountFunction) -> tuple[Part, ...]:
    """The parts of the input: variables, documents, and the query last (specification 000, section 6)."""
    parts = [counted_part("variables", "variables", variables, count)] if variables else []
    parts += [counted_part("document", d.name, text, count) for d in documents if (text := document_text(d))]
    return (*parts, counted_part("query", "query", query, count))


def build_pack(contents: PackContents, call_id: str, feedback: str, count: TokenCountFunction) -> PromptPack:
    """The pack of one attempt; `feedback` is the last error, shortened or left out where it does not fit."""
    recipe = contents.loaded.recipe
    feedback_parts = _fit_feedback(feedback, contents.loaded.frames, contents.feedback_limit, count)
    return PromptPack(
        call_id=call_id,
        recipe=contents.loaded.name,
        recipe_version=contents.loaded.version,
        role=recipe.role or recipe.name,
        layer=contents.layer,
        mode=contents.request.mode,
        output_format=recipe.output_format,
        output_schema=recipe.output_schema,
        temperature=contents.temperature,
        max_output_tokens=contents.budget.output,
        parts=(*contents.shared, *contents.input, *feedback_parts),
        sources=contents.request.sources,
        tools=contents.tools,
        priority=contents.request.site.priority,
        images=contents.request.images,
        answer_cue=contents.loaded.frames.answer_cue,
    )


def _fit_feedback(error: str, frames: PromptFrames, limit: int, count: TokenCountFunction) -> Sequence[Part]:
    """The feedback part with the error, or without it, whichever fits into `limit` tokens; none where neither does."""
    if not error:
        return ()
    message = (
        error
        if len(error) <= MAX_FEEDBACK_CHARACTERS
        else f"{error[: MAX_FEEDBACK_CHARACTERS - _FEEDBACK_END_CHARACTERS]} ... {error[-_FEEDBACK_END_CHARACTERS:]}"
    )
    for text in (fill_variables(frames.retry, {"error": message}), frames.retry_short):
        candidate = counted_part("feedback", "feedback", text, count)
        if candidate.tokens <= limit:
            return (candidate,)
    return ()


def pack_text(pack: PromptPack) -> str:
    """A pack as the vault stores it: what is sent, and to which layer, as a JSON object with one line for each field."""
    fields = {
        "recipe": pack.recipe,
        "recipe_version": pack.recipe_version,
        "layer": pack.layer.value,
        "temperature": pack.temperature,
        "max_output_tokens": pack.max_output_tokens,
        "output_schema": pack.output_schema,
        "sources": {source.label: source.path for source in pack.sources},
        **({"images": [_image_fields(image) for image in pack.images]} if pack.images else {}),
        "system": pack.system,
        "user": pack.user,
    }
    # built for every call: json.dumps with an indent takes six times as long
    lines = (f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _image_fields(image: ImagePart) -> dict[str, object]:
    """The fields of an image in a stored pack; its bytes are stored under the reference."""
    return {"name": image.name, "media_type": image.media_type, "tokens": image.tokens, "reference": image.reference}


def shared_parts(loaded: LoadedRecipe, prompts: Iterable[str], count: TokenCountFunction) -> tuple[tuple[Part, ...], int]:
    """Policy, role prompts and IO schema, in this order (specification 000, section 6), and their tokens with the blank line after them."""
    texts: list[tuple[PartKind, str, str]] = [("policy", "policy", loaded.policy)]
    texts.extend(("role", "role", text) for text in prompts)
    texts.append(("schema", "schema", io_schema(loaded)))
    parts = tuple(Part(kind, name, text, count(text)) for kind, name, text in texts if text.strip())
    return parts, count("\n\n".join(part.text for part in parts) + "\n\n") if parts else 0
