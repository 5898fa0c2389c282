"""Sentences that tell nothing of their own: greetings, thanks, good wishes; what stands on every page and below every mail.

Knows set phrases and the form of link lists only.
"""

import re

_OPENING = re.compile(
    r"\W*(?:(?:and|but|so|well|oh|ok|okay|aw|ah|yes|yeah|no|great|perfect|super|bon|na|gut)\b[,!. ]*)*"
    r"(?:thank(?:s| you)|many thanks|cheers|you(?:'|\u2019)?re (?:very |most )?welcome|no (?:problem|worries)|my pleasure|"
    r"don(?:'|\u2019)?t mention it|"
    r"good (?:morning|afternoon|evening|night|luck|day)|hi|hey|hello|morning|bye|goodbye|see you|take care|talk (?:soon|later)|you too|"
    r"have (?:a |an |fun)|hope you|i hope you(?:'|\u2019)?re|dear \w+|nice to (?:meet|hear|see)|welcome (?:to|back)|"
    r"(?:(?:kind|best|warm) )?regards|best,?$|yours|sincerely|"
    r"(?:i(?:'|\u2019)?m |i am )?(?:so |very |really )?sorry to hear|congrat\w*|happy to help|glad to (?:help|hear)|"
    r"(?:just )?(?:one|a) (?:moment|second|minute)|please (?:hold|wait)|let me (?:look|check|see)\b|(?:how|what) (?:can|may|else can) i |"
    r"(?:is|was) there anything else|anything else\b|how are you|i can help with that|"
    r"salut|bonjour|bonsoir|merci|de rien|au revoir|bonne journ\u00e9e|\u00e7a va|hallo|guten (?:morgen|tag|abend)|danke|"
    r"bitte sch\u00f6n|tsch\u00fcss|"
    r"bis (?:bald|dann)|hola|buenos d\u00edas|gracias|de nada|adi\u00f3s|hasta (?:luego|pronto)|ciao|grazie|prego|obrigad[oa]|ol\u00e1)\b",
    re.IGNORECASE,
)
_LONGEST = 14
"""Words of a sentence that may be nothing but courtesy."""
_REASON = re.compile(r"\d|\b(?:because|but|if|that|until|before|after)\b|,[^,]*\b(?:I|we|my|our)\b(?! hope)", re.IGNORECASE)
"""What turns a phrase into a statement: `thanks, but the refund of $5 is missing`."""


def is_courtesy(sentence: str) -> bool:
    """Whether a sentence is a set phrase of politeness and says nothing of its own."""
    return bool(_OPENING.match(sentence)) and len(sentence.split()) <= _LONGEST and not _REASON.search(sentence)


_BOILERPLATE = re.compile(
    r"\ball rights reserved\b|\bcookies?\b.{0,40}\b(?:experience|consent|accept)|\bunsubscribe\b|\bsign up and\b|\bskip to\b|"
    r"\b(?:confidential and intended|intended solely for|received (?:it|this[\w \-]*) (?:by mistake|in error))\b|"
    r"^\W*(?:terms|privacy|imprint|sitemap|careers)(?:(?:,| \||&| and)? ?\w+){0,8}\W*$",
    re.IGNORECASE,
)
_LINKS = re.compile(r"\s*(?:[-*+] )?(?:\[[^\]\n]*\]\([^)\n]*\)[\s|\u00b7,]*)+")


def is_boilerplate(line: str) -> bool:
    """Whether a line stands on every page or below every mail of its kind, or is nothing but links that lead elsewhere."""
    return bool(_BOILERPLATE.search(line) or _LINKS.fullmatch(line))
