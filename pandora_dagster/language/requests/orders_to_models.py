"""Text that addresses a program instead of a reader: orders to an assistant, a language model or a crawler."""

import re

_PROGRAMS = r"(?:assistants?|assistent\w{0,4}|agents?|agenten|ai|ki|models?|modelle?|crawlers?|robots?|bots?)"
_ADDRESSES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:automat\w{2,8}|ai|ki|digital\w{0,3})[ -](?:assistants?|assistent\w{0,4}|agents?|agenten)\b",
        r"\b(?:language models?|sprachmodell\w{0,3}|llms?|chat ?bots?|chatgpt|system prompts?|systemprompt)\b",
        rf"\b(?:note|hinweis|message|instructions?|anweisung\w{{0,3}}) (?:to|for|an|für) (?:all |alle )?{_PROGRAMS}\b",
        r"\b(?:ignore|disregard|forget) (?:(?:all|any|the|your) )?(?:previous|prior|earlier|above) (?:instructions?|prompts?|text|rules)\b",
        r"\b(?:ignoriere?|vergiss) (?:(?:alle|die) )?(?:vorherigen|bisherigen|obigen) (?:anweisungen|regeln)\b",
        r"<\|?(?:system|assistant|im_start)\b",
    )
)


def addresses_model(text: str) -> bool:
    """Whether a text addresses an assistant or a model. It is data in any case; a page with such text is no source."""
    return any(pattern.search(text) for pattern in _ADDRESSES)
