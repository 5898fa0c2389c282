"""A tiny random model that reads images: `python tiny_vision.py FOLDER`. Deterministic; nothing is downloaded.

It has the shape of Qwen2-VL, the tokenizer and the habits of `tiny_model`: what it says is nonsense, and how it takes an image is real.
"""

import sys
from pathlib import Path

import on_a_cpu  # noqa: F401 - first, see there
import torch
from tiny_model import CONTEXT, STEADY, TEMPLATE, habits, shipped_tokenizer
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
)

HIDDEN = 64
PATCH_PX = 28
MARKS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
CONTENT = """\
{%- if message.content is string %}{{ message.content }}{% else %}{% for part in message.content -%}
{% if part.type == 'text' %}{{ part.text }}{% else %}<|vision_start|><|image_pad|><|vision_end|>{% endif %}
{%- endfor %}{% endif -%}"""


def main(folder: Path) -> None:
    tokenizer = shipped_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": list(MARKS)})
    tokenizer.image_token, tokenizer.video_token = MARKS[2:]
    template = TEMPLATE.replace("{{ message.content }}", CONTENT)
    tokenizer.chat_template = template
    processor = Qwen2VLProcessor(
        image_processor=Qwen2VLImageProcessor(min_pixels=4 * PATCH_PX**2, max_pixels=1280 * PATCH_PX**2),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=template,
    )
    folder.mkdir(parents=True, exist_ok=True)
    processor.save_pretrained(folder)
    random_model(tokenizer).save_pretrained(folder)


def random_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2VLForConditionalGeneration:
    """Random layers over the steady dimension, from a fixed seed."""
    torch.manual_seed(0)
    start, end, image, video = (tokenizer.convert_tokens_to_ids(mark) for mark in MARKS)
    rope = {"rope_type": "default", "type": "mrope", "mrope_section": [2, 3, 3], "rope_theta": 1e6}
    text = {
        "vocab_size": (len(tokenizer) + 63) // 64 * 64,
        "hidden_size": HIDDEN,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "rope_parameters": rope,
    }
    vision = {"depth": 1, "embed_dim": 32, "num_heads": 2, "hidden_size": HIDDEN, "mlp_ratio": 2, "patch_size": 14, "in_chans": 3}
    config = Qwen2VLConfig(
        text_config=text,
        vision_config={**vision, "spatial_merge_size": 2, "temporal_patch_size": 2},
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
        dtype="bfloat16",
    )
    model = Qwen2VLForConditionalGeneration(config)
    with torch.no_grad():
        language = model.model.language_model
        language.embed_tokens.weight.normal_(0, 1)
        language.embed_tokens.weight[:, 0] = STEADY
        for layer in language.layers:
            layer.self_attn.o_proj.weight[0] = 0
            layer.mlp.down_proj.weight[0] = 0
        model.lm_head.weight.normal_(0, 0.1)
        steady_after_norm = STEADY / ((STEADY**2 + HIDDEN - 1) / HIDDEN) ** 0.5
        model.lm_head.weight[:, 0] = habits(tokenizer, text["vocab_size"]) / steady_after_norm
    return model.to(torch.bfloat16)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
