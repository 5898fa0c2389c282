"""Sentences by which people are polite and tell nothing: greetings, thanks, good wishes, offers of help. Knows set phrases only."""

import re

_OPENING = re.compile(
    r"\W*(?:(?:and|but|so|well|oh|ok|okay|aw|ah|yes|yeah|no|great|perfect|super|bon|na|gut)\b[,!. ]*)*"
    r"(?:thank(?:s| you)|many thanks|cheers|you(?:'|\u2019)?re (?:very |most )?welcome|no (?:problem|worries)|my pleasure|"
    r"don(?:'|\u2019)?t mention it|"
    r"good (?:morning|afternoon|evening|night|luck|day)|hi|hey|hello|morning|bye|goodbye|see you|take care|talk (?:soon|later)|you too|"
    r"have (?:a |an |fun)|hope you|i hope you(?:'|\u2019)?re|dear \w+|nice to (?:meet|hear|see)|welcome (?:to|back)|(?:(?:kind|best|warm) )?regards|best,?$|yours|sincerely|"
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
