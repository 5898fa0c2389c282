"""Step 4 of 000 section 15: the prompt pack. Knows parts and their order; decides nothing about budgets."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pandora_dagster.contracts.compression_results import CompressionReport
from pandora_dagster.contracts.enums import ModelLayer
from pandora_dagster.contracts.images import ImagePart
from pandora_dagster.contracts.model_calls import CallRequest, InputDocument, Part, PartKind, PromptPack, frame_text
from pandora_dagster.contracts.recipe_schema import LoadedRecipe
from pandora_dagster.execution.fit.call_budget import TokenCountFunction, document_text
from pandora_dagster.recipes.static_prompts import io_schema

LONGEST_FEEDBACK = 480
"""Characters of an error that a retry gets as feedback; enough for three schema faults, about 120 tokens."""
SHORT_FEEDBACK = "Your last answer was not accepted. Answer again in the form asked for."


@dataclass(frozen=True, slots=True)
class PackContents:
    """Everything a pack of one call on one layer is made of, each part within its budget."""

    request: CallRequest
    loaded: LoadedRecipe
    layer: ModelLayer
    temperature: float
    tools: tuple[str, ...]
    shared: tuple[Part, ...]
    input: tuple[Part, ...]
    prompt_tokens: int
    input_tokens: int
    feedback_room: int
    """Tokens that prompt and input leave of the call's room."""
    left_out: tuple[str, ...] = ()
    tokens_saved: int = 0
    compressions: tuple[CompressionReport, ...] = ()


def counted_part(kind: PartKind, name: str, text: str, count: TokenCountFunction) -> Part:
    """A part with its tokens, counted as in its message and with the blank line that follows it.

    The frame ends in a sign and line breaks and the next one begins with `<`: cl100k never merges across that border, so the
    parts' tokens add up to the message's.
    """
    return Part(kind, name, text, count(frame_text(kind, name, text) + "\n\n"))


def input_parts(variables: str, documents: Iterable[InputDocument], query: str, count: TokenCountFunction) -> tuple[Part, ...]:
    """Variables, documents, and the query last (000 section 6)."""
    parts = [counted_part("variables", "variables", variables, count)] if variables else []
    parts += [counted_part("document", d.name, text, count) for d in documents if (text := document_text(d))]
    return (*parts, counted_part("query", "query", query, count))


def build_pack(packable: PackContents, call_id: str, feedback: str, count: TokenCountFunction) -> PromptPack:
    """The pack of one attempt; `feedback` is the last error, shortened or left out where it does not fit."""
    recipe = packable.loaded.recipe
    feedback_parts = _fitting_feedback(feedback, packable.feedback_room, count)
    return PromptPack(
        call_id=call_id,
        recipe=packable.loaded.name,
        recipe_version=packable.loaded.version,
        role=recipe.role or recipe.name,
        layer=packable.layer,
        mode=packable.request.mode,
        output_format=recipe.output_format,
        output_schema=recipe.output_schema,
        temperature=packable.temperature,
        max_output_tokens=recipe.token_budget.output,
        thinking_tokens=recipe.token_budget.thinking,
        parts=(*packable.shared, *packable.input, *feedback_parts),
        sources=packable.request.sources,
        tools=packable.tools,
        priority=packable.request.site.priority,
        images=packable.request.images,
    )


def _fitting_feedback(error: str, room: int, count: TokenCountFunction) -> Sequence[Part]:
    if not error:
        return ()
    message = error if len(error) <= LONGEST_FEEDBACK else f"{error[: LONGEST_FEEDBACK - 200]} ... {error[-200:]}"
    for text in (f"Your last answer was not accepted: {message}\nAnswer again, completely and in the form asked for.", SHORT_FEEDBACK):
        candidate = counted_part("feedback", "feedback", text, count)
        if candidate.tokens <= room:
            return (candidate,)
    return ()


def pack_text(pack: PromptPack) -> str:
    """A pack as the vault keeps it: what was sent, and to which layer; a JSON object of one line a field."""
    sent = {
        "recipe": pack.recipe,
        "recipe_version": pack.recipe_version,
        "layer": pack.layer.value,
        "temperature": pack.temperature,
        "max_output_tokens": pack.max_output_tokens,
        **({"thinking_tokens": pack.thinking_tokens} if pack.thinking_tokens else {}),
        "output_schema": pack.output_schema,
        "sources": {source.label: source.path for source in pack.sources},
        **({"images": [_image_fields(image) for image in pack.images]} if pack.images else {}),
        "system": pack.system,
        "user": pack.user,
    }
    # every call asks for it: json.dumps with an indent takes six times as long
    lines = (f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in sent.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _image_fields(image: ImagePart) -> dict[str, object]:
    """An image as a stored pack names it; the bytes are stored under the reference."""
    return {"name": image.name, "media_type": image.media_type, "tokens": image.tokens, "reference": image.reference}


def shared_parts(loaded: LoadedRecipe, prompts: Iterable[str], count: TokenCountFunction) -> tuple[tuple[Part, ...], int]:
    """Policy, role prompts and IO schema, in this order (000 section 6), and their tokens with the blank line after them."""
    texts: list[tuple[PartKind, str, str]] = [("policy", "policy", loaded.policy)]
    texts.extend(("role", "role", text) for text in prompts)
    texts.append(("schema", "schema", io_schema(loaded.recipe)))
    parts = tuple(Part(kind, name, text, count(text)) for kind, name, text in texts if text.strip())
    return parts, count("\n\n".join(part.text for part in parts) + "\n\n") if parts else 0
