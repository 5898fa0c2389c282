"""Masks without a grammar, on the CPU: what holds thoughts back under --enable-strict-thinking. Import it in every process of the server.

SGLang 0.5.23 applies a grammar's mask on the CPU, but refuses to where there is nothing but a mask; the operation is the same.
"""

import torch
import xgrammar
from sglang.srt.constrained.xgrammar_backend import XGrammarGrammarBackend


def _applied(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    xgrammar.apply_token_bitmask_inplace(logits, vocab_mask, backend="cpu")


XGrammarGrammarBackend.apply_vocab_mask = staticmethod(_applied)
