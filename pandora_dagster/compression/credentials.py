"""Credentials in a text: keys, tokens, passwords. Recognised so that they enter no ledger, no verdict and no feedback.

Knows forms and where they stand; changes nothing.
"""

import re

from pandora_dagster.text.credentials import redacted

_HINT = re.compile(
    r"(?i:passw|passph|pwd|secret|key|token|bearer|authorization)|-----BEGIN|\b[spr]k[-_]|gh[pousr]_|github_pat|glpat-|\bhf_|xox[abprs]-"
    r"|AKIA|AIza|eyJ|://[^/\s:@]{1,64}:|\d(?:[ \-]?\d){12}"
)
"""One quick scan: a text without any of these has no credentials."""
_FORMS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:sk|pk|rk)[-_](?:live[-_]|test[-_]|proj[-_]|ant[-_])?[A-Za-z0-9_\-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w\-]{16,}|\bhf_[A-Za-z0-9]{20,}|\bxox[abprs]-[\w\-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w\-]{30,}|\beyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)?"
    r"|(?<=://)[^/\s:@]{1,64}:[^/\s@]{1,128}(?=@)",
    re.DOTALL,
)
_NAMED = re.compile(
    r"(?i:\b(?:password|passwd|passphrase|pwd|secret|api[_\- ]?key|access[_\- ]?key|secret[_\- ]?key|auth[_\- ]?token|access[_\- ]?token|"
    r"refresh[_\- ]?token|client[_\- ]?secret|private[_\- ]?key)\b[\"']?\s*(?:[:=]|\bis\b)\s*[\"']?)(?P<value>[^\s\"',;|]{4,})"
    r"|(?i:\bauthorization\b[\"']?\s*[:=]\s*[\"']?(?:bearer|basic)\s+|\bbearer\s+)(?P<bearer>[A-Za-z0-9._~+/=\-]{12,})"
)
_CODE = re.compile(
    r"\b(?:pin|pin (?:code|number)|pass ?code|cv[vc]2?|security (?:code|number)|ssn|one[- ]time code|otp)\b\W{0,3}(?:\w+\W+){0,5}?\d{3}",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\w\-])(?:\d[ \-]?){12,18}\d(?![\w\-])")


def credential_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Where credentials stand, as (start, end) in order."""
    if not _HINT.search(text):
        return ()
    spans = [found.span() for found in _FORMS.finditer(text)]
    for found in _NAMED.finditer(text):
        spans.append(found.span("value" if found.group("value") else "bearer"))
    spans += [found.span() for found in _CARD.finditer(text) if _is_card(found.group())]
    return tuple(sorted(spans))


def holds_secret(text: str) -> bool:
    """Whether a text holds anything that must not be remembered: a credential by any form known here, a PIN, a card's code."""
    return bool(credential_spans(text)) or bool(_CODE.search(text)) or redacted(text) != text


def _is_card(text: str) -> bool:
    """Whether a run of digits is a payment card number: 13 to 19 digits with a right check digit, grouped or known by its start."""
    digits = [int(c) for c in text if c.isdigit()]
    if not 13 <= len(digits) <= 19 or digits[0] not in (3, 4, 5, 6):
        return False
    doubled = [d * 2 - 9 if d > 4 else d * 2 for d in digits[-2::-2]]
    return (sum(doubled) + sum(digits[-1::-2])) % 10 == 0
