"""Text that gives orders to a program that reads it: an assistant, a language model or a crawler. A mention of one is no order."""

import re
from unicodedata import normalize

_MODEL = (
    r"(?:(?:ai|ki|automat\w{2,8}|digital\w{0,3})[ -](?:assistants?|assistent\w{0,4}|agents?|agenten|models?|modelle?)"
    r"|(?:large )?language models?|sprachmodell\w{0,3}|llms?|chat ?bots?|ais?|kis?)"
)
_ANY = r"(?:all|any|every|each|the|an?|alle|jede[rsn]?|die|das|den|eine?) "
_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # told to drop what it was told
        r"\b(?:ignore|disregard|forget|override) (?:(?:all|any|the|your|of) ){0,3}(?:previous|prior|earlier|above|system) "
        r"(?:instructions?|prompts?|text|rules|guidelines)\b",
        r"\b(?:ignoriere?n?|vergiss) (?:sie )?(?:(?:alle|die|deine|ihre) ){0,2}(?:vorherigen|bisherigen|obigen) (?:anweisungen|regeln)\b",
        # addressed by its kind
        rf"\b(?:note|hinweis|message|attention|instructions?|anweisung\w{{0,3}}) (?:(?:to|for|an|für) )?(?:{_ANY})?{_MODEL}\b"
        r"[^.\n]{0,40}:",
        rf"\b(?:dear|hey|liebe[rs]?|hallo) {_MODEL}\b",
        # addressed as the reader of the page
        rf"\b{_MODEL} (?:(?:that|who|which) )?(?:reads?|reading|process(?:es|ing)?|summari[sz](?:es?|ing)|visit(?:s|ing)?) "
        r"(?:this|the page)\b",
        rf"\b{_MODEL}, (?:die|das|welche[sr]?) dies\w{{0,2}} (?:\w+ )?(?:liest|lesen|verarbeite\w{{1,2}})\b",
        rf"\b(?:if you are|wenn du|falls du) (?:{_ANY})?{_MODEL}\b",
        # written as the turn of a conversation
        r"<\|?(?:system|assistant|im_start)\b|\[/?INST\]|<</?SYS>>",
    )
)


def orders_model(text: str) -> bool:
    """Whether a text gives orders to a program that reads it.

    Common wordings in English and German, and the marks of chat templates. What a page says is data in any case: this is a second guard.
    """
    line = " ".join(normalize("NFKC", text).split())
    return any(pattern.search(line) for pattern in _ORDERS)
