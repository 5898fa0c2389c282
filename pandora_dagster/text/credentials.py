"""Credentials in text: found by their shape and taken out before anything is kept. Knows nothing of where text is kept.

What merely looks random (order ids, hashes, flight numbers) stays: a pattern here needs a known prefix, a known header or
a word that says "this is a secret".
"""

import re

REDACTED = "[redacted]"
_NAMES = (
    r"(?:password|passwd|passphrase|pwd|api[ _-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|client[_-]?secret"
    r"|(?:access|auth|refresh|bearer)[_-]?token)"
)
"""Names whose value is a secret. A bare `token` is not among them: here it counts words, and has a rule of its own."""
_RANDOM = r"(?=[A-Za-z_.~+/-]{0,40}[0-9])(?=[0-9_.~+/-]{0,40}[A-Za-z])[A-Za-z0-9_.~+/-]{12,}=*"
"""Letters and digits together, as a number of words never is."""
_PRIVATE_KEY = re.compile(
    r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----.*?(?:-----END \1-----|\Z)",
    re.DOTALL,
)
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (_PRIVATE_KEY, f"-----BEGIN PRIVATE KEY----- {REDACTED} -----END PRIVATE KEY-----"),
    (
        re.compile(r"(?i)\b((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?)(?:(basic|bearer|token|digest|negotiate)\s+)?[^\s\"',\\]{4,}"),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"(?i)\b((?:set-)?cookie:[ \t]*)[^\r\n\"]+"), rf"\1{REDACTED}"),
    (re.compile(r"(?i)\b(bearer\s+)(?=[A-Za-z0-9._~+/=-]*[0-9._~+/=-])[A-Za-z0-9._~+/=-]{16,}"), rf"\1{REDACTED}"),
    (re.compile(r"\b(?:sk|rk|pk)-(?=[A-Za-z_-]*[0-9])(?:[A-Za-z]{2,12}[-_])*[A-Za-z0-9_-]{16,}"), REDACTED),
    (re.compile(r"\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{16,}"), REDACTED),
    (re.compile(r"\bnpm_[A-Za-z0-9]{30,}\b"), REDACTED),
    (re.compile(rf"(?i)((?:\b|_)token\\?[\"']?\s*[:=]\s*\\?[\"']?)(?:{_RANDOM})"), rf"\1{REDACTED}"),
    (
        re.compile(r"(?i)\b(my (?:password|passphrase|passcode) is:?[ \t]+[\"']?)(?=\S*[0-9!@#$%^&*_])(?![\[<{])[^\s,;\"'\\]{6,}"),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"), REDACTED),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), REDACTED),
    (re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,})"), REDACTED),
    (re.compile(r"\bhf_[A-Za-z0-9]{30,}\b"), REDACTED),
    (re.compile(r"\bAIza[0-9A-Za-z_-]{35}"), REDACTED),
    (re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"), REDACTED),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"), REDACTED),
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{1,100}:)[^\s/@\"']{1,200}(?=@)"), rf"\1{REDACTED}"),
    (
        re.compile(rf"(?i)((?:\b|_){_NAMES}\\?[\"']?\s*[:=]\s*)(\\?\")(?!\[redacted\])(?:[^\"\\]|\\[^\"])+(?=\\?\")"),
        rf"\1\2{REDACTED}",
    ),
    (re.compile(rf"(?i)((?:\b|_){_NAMES}\s*[:=]\s*)(')(?!\[redacted\])[^'\n]+(?=')"), rf"\1\2{REDACTED}"),
    (re.compile(rf"(?i)((?:\b|_){_NAMES}=)(?![\"'\\\[])[^\s&;,\"'\\]+"), rf"\1{REDACTED}"),
    (
        re.compile(
            rf"(?i)((?:\b|_){_NAMES}(?:\s*:[ \t]+|[ \t]+=[ \t]*))"
            r"(?=[^\s]*[0-9!@#$%^&*_])(?![\"'\\\[<{])[^\s,;\"'\\]{6,}"
        ),
        rf"\1{REDACTED}",
    ),
)
"""Pattern and replacement, in order: whole blocks and headers before the values inside them."""


def redacted(text: str) -> str:
    """`text` with every credential replaced by `[redacted]`; doing it twice changes nothing more (DECISIONS 14)."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
