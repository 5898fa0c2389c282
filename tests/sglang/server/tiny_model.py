"""A tiny random model with a real vocabulary: `python tiny_model.py FOLDER [--shape qwen3-0.6b]`. Deterministic; nothing is downloaded.

The tokenizer is byte-level BPE over the first merges of the shipped cl100k vocabulary: its counts stay near cl100k's and above them, as
a served model's do. The weights are random but for one dimension, which carries how often a token occurs in short JSON lists of the
shipped prompts' words: so strings, lists and answers come to an end as a model's do, and everything between is nonsense.
"""

import argparse
import base64
import itertools
import json
import re
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import on_a_cpu  # noqa: F401 - first, see there
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

REPOSITORY = Path(__file__).parents[3]
CONTEXT = 32_768
SIZE = 16_000
"""Tokens of the vocabulary before the special ones."""
STEADY = 8.0
"""What every token puts into the first dimension of the residual stream; no layer changes it."""
END_SHARE = 0.04
"""How often an answer ends where it may."""
CLOSING = 12.0
"""How much more often a list or an object ends than in the text that is counted: else nested ones hardly would."""
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
THOUGHT = ("<think>", "</think>")
SPLIT = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif -%}
{%- endif -%}"""


@dataclass(frozen=True)
class Shape:
    """Sizes of a model, as Qwen3's configuration names them."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int


SHAPES = {"tiny": Shape(64, 128, 2, 4, 2, 16), "qwen3-0.6b": Shape(1024, 3072, 28, 16, 8, 128)}


def main(folder: Path, shape: Shape) -> None:
    tokenizer = shipped_tokenizer()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    random_model(tokenizer, shape).save_pretrained(folder)
    print(f"{folder}: {len(tokenizer)} tokens")  # noqa: T201 - a command's output


def shipped_tokenizer() -> PreTrainedTokenizerFast:
    """The first merges of cl100k, a chat template as Qwen3's, and its special tokens."""
    ranks = _ranks(REPOSITORY / "data" / "tokenizer" / "cl100k_base.tiktoken")
    letters = _letters()
    vocabulary = {_spelt(token, letters): rank for token, rank in ranks.items()}
    merges = [tuple(_spelt(half, letters) for half in _halves(token, ranks)) for token in ranks if len(token) > 1]
    bpe = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens([AddedToken(word, special=True) for word in SPECIAL])
    bpe.add_tokens([AddedToken(word) for word in THOUGHT])
    fast = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=CONTEXT)
    fast.chat_template = TEMPLATE
    return fast


def _ranks(path: Path) -> dict[bytes, int]:
    """The first SIZE tokens, by rank: each is made of two before it."""
    lines = path.read_bytes().splitlines()[:SIZE]
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}


def _halves(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two tokens whose merge made this one: what is left when all earlier merges are done."""
    pieces = [token[i : i + 1] for i in range(len(token))]
    while len(pieces) > 2:
        pairs = [ranks.get(a + b, SIZE) for a, b in itertools.pairwise(pieces)]
        at = pairs.index(min(pairs))
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
    return pieces[0], pieces[1]


def _letters() -> dict[int, str]:
    """Byte -> the visible character that stands for it in byte-level vocabularies."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + n) for n, byte in enumerate(others)}


def _spelt(token: bytes, letters: dict[int, str]) -> str:
    return "".join(letters[byte] for byte in token)


def random_model(tokenizer: PreTrainedTokenizerFast, shape: Shape) -> Qwen3ForCausalLM:
    """Random layers over the steady dimension, from a fixed seed."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=(len(tokenizer) + 63) // 64 * 64,
        **asdict(shape),
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="bfloat16",
    )
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        model.model.embed_tokens.weight.normal_(0, 1)
        model.model.embed_tokens.weight[:, 0] = STEADY
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0
            layer.mlp.down_proj.weight[0] = 0
        model.lm_head.weight.normal_(0, 0.1)
        steady_after_norm = STEADY / ((STEADY**2 + shape.hidden_size - 1) / shape.hidden_size) ** 0.5
        model.lm_head.weight[:, 0] = habits(tokenizer, config.vocab_size) / steady_after_norm
    return model.to(torch.bfloat16)


def habits(tokenizer: PreTrainedTokenizerFast, size: int) -> torch.Tensor:
    """The logarithm of each token's share in the shipped prompts' words, written as JSON lists of a few words."""
    prompts = sorted((REPOSITORY / "prompts").rglob("*.md"))
    words = re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in prompts))
    lists = [json.dumps({word: words[index : index + 3]}) for index, word in enumerate(words)]
    seen = Counter(tokenizer.encode("\n".join(lists)))
    shares = torch.full((size,), 0.1)
    shares[len(tokenizer) :] = 1e-6  # rows that only fill the matrix
    for token, times in seen.items():
        closes = set(tokenizer.decode([token])) <= set('"]}') and not tokenizer.decode([token]).startswith('""')
        shares[token] += times * (CLOSING if closes else 1)
    shares /= shares.sum()
    shares[tokenizer.convert_tokens_to_ids(list((*SPECIAL, *THOUGHT)))] = 1e-9
    shares[tokenizer.eos_token_id] = END_SHARE
    return shares.log()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    options = parser.parse_args()
    main(options.folder, SHAPES[options.shape])
