"""Credentials in text: found by their shape, and taken out before anything is kept. Knows nothing of where text is kept.

What merely looks random (order ids, hashes, flight numbers) stays: a pattern here needs a known prefix, a known header or
a word that says "this is a secret". This is the only recogniser: ledgers, logs, indexes and condensed texts all ask it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

REDACTED = "[redacted]"
_NAMES = (
    r"(?:password|passwd|passphrase|passcode|pwd|api[ _-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|client[_-]?secret|private[_-]?key"
    r"|(?:access|auth|refresh|bearer)[_-]?token)"
)
"""Names whose value is a secret. A bare `token` is not among them: here it counts words, and has a rule of its own."""
_PASSWORD_HINTS = ("password", "passphrase", "passcode")
_NAME_HINTS = (
    *_PASSWORD_HINTS,
    *("passwd", "pwd", "secret"),
    *(first + between + "key" for first in ("api", "private") for between in (" ", "_", "-", "")),
    *(first + between + "token" for first in ("access", "auth", "refresh", "bearer") for between in ("_", "-", "")),
)
_RANDOM = r"(?=[A-Za-z_.~+/-]{0,40}[0-9])(?=[0-9_.~+/-]{0,40}[A-Za-z])[A-Za-z0-9_.~+/-]{12,}=*"
"""Letters and digits together, as a number of words never is."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A form of credentials: `(?P<secret>)` in `pattern` is what is taken out. A text without any of the `hints` (in small
    letters) has none of them, and is not searched."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(hints: str, pattern: str, flags: int = 0) -> _Rule:
    return _Rule(tuple(hints.split()), re.compile(pattern, flags))


_RULES = (
    _rule(
        "private",
        r"(?P<secret>-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----.*?(?:-----END (?P=kind)-----|\Z))",
        re.DOTALL,
    ),
    _rule(
        "authorization",
        r"(?i)\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?P<secret>(?:(?:basic|bearer|token|digest|negotiate)\s+)?[^\s\"',\\]{4,})",
    ),
    _rule("cookie", r"(?i)\b(?:set-)?cookie:[ \t]*(?P<secret>[^\r\n\"]+)"),
    _rule("bearer", r"(?i)\bbearer\s+(?P<secret>(?=[A-Za-z0-9._~+/=-]*[0-9._~+/=-])[A-Za-z0-9._~+/=-]{16,})"),
    _rule("sk- rk- pk-", r"\b(?P<secret>(?:sk|rk|pk)-(?=[A-Za-z_-]*[0-9])(?:[A-Za-z]{2,12}[-_])*[A-Za-z0-9_-]{16,})"),
    _rule("sk-", r"\b(?P<secret>sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{16,})"),
    _rule("k_live_ k_test_", r"\b(?P<secret>[sr]k_(?:live|test)_[A-Za-z0-9]{16,})"),
    _rule("npm_", r"\b(?P<secret>npm_[A-Za-z0-9]{30,})\b"),
    _rule("akia asia", r"\b(?P<secret>(?:AKIA|ASIA)[0-9A-Z]{16})\b"),
    _rule(
        "gh github_pat_ glpat-",
        r"\b(?P<secret>gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,})",
    ),
    _rule("hf_", r"\b(?P<secret>hf_[A-Za-z0-9]{30,})\b"),
    _rule("aiza", r"\b(?P<secret>AIza[0-9A-Za-z_-]{35})"),
    _rule("xox", r"\b(?P<secret>xox[abeoprs]-[A-Za-z0-9-]{10,})"),
    _rule("eyj", r"\b(?P<secret>eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})"),
    _rule("://", r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{1,100}:(?P<secret>[^\s/@\"']{1,200})(?=@)"),
    _rule("token", rf"(?i)(?:\b|_)token\\?[\"']?\s*[:=]\s*\\?[\"']?(?P<secret>{_RANDOM})"),
    _rule(
        " ".join(_PASSWORD_HINTS),
        r"(?i)\b(?:password|passphrase|passcode)(?: (?:for|of|to) [\w .\-]{1,40}?)? is:?[ \t]+[\"']?"
        r"(?P<secret>(?=\S*[0-9!@#$%^&*_])(?![\[<{])[^\s,;\"'\\]{5,}[^\s,;\"'\\.])",
    ),
    _Rule(_NAME_HINTS, re.compile(rf"(?i)(?:\b|_){_NAMES}\\?[\"']?\s*[:=]\s*\\?\"(?P<secret>(?:[^\"\\]|\\[^\"])+)(?=\\?\")")),
    _Rule(_NAME_HINTS, re.compile(rf"(?i)(?:\b|_){_NAMES}[\"']?\s*[:=]\s*'(?P<secret>[^'\n]+)(?=')")),
    _Rule(_NAME_HINTS, re.compile(rf"(?i)(?:\b|_){_NAMES}=(?![\"'\\\[])(?P<secret>[^\s&;,\"'\\]+)")),
    _Rule(
        _NAME_HINTS,
        re.compile(
            rf"(?i)(?:\b|_){_NAMES}(?:\s*:[ \t]+|[ \t]+=[ \t]*)"
            r"(?P<secret>(?=[^\s]*[0-9!@#$%^&*_])(?![\"'\\\[<{])[^\s,;\"'\\]{6,})"
        ),
    ),
)
_CARD = re.compile(r"(?<![\w\-.])(?:\d{4}([ \-])\d{4}\1\d{4}\1\d{4}|3\d{3}([ \-])\d{6}\2\d{5}|[3-6]\d{12,18})(?![\w\-])")
_CARD_DIGITS = re.compile(r"4\d{12}(?:\d{3}){0,2}|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3[068]\d{12}|35\d{14}|6(?:011|4[4-9]|5)\d{12,13}")
_CARD_WORDS = re.compile(r"card|visa|master|amex|\bpan\b|\bcc\b", re.IGNORECASE)
_BEFORE_CARD = 40
_CODE = re.compile(
    r"\b(?:pin|pin (?:code|number)|pass ?code|cv[vc]2?|security (?:code|number)|ssn|one[- ]time code|otp)\b\W{0,3}(?:\w+\W+){0,5}?\d{3}",
    re.IGNORECASE,
)
_MANY_DIGITS = re.compile(r"\d{13}|\d{4}[ \-]\d{4,6}[ \-]\d")


def credential_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Where credentials stand, as (start, end), in order and without overlap."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(_found(text)):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def holds_secret(text: str) -> bool:
    """Whether a text holds anything that must not be remembered: a credential, a PIN, a card's code."""
    return bool(_CODE.search(text)) or bool(credential_spans(text))


def redacted(text: str) -> str:
    """`text` with every credential replaced by `[redacted]`; doing it twice changes nothing more (DECISIONS 14)."""
    spans = credential_spans(text)
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], REDACTED)
        at = end
    return "".join((*parts, text[at:]))


def _found(text: str) -> Iterator[tuple[int, int]]:
    lowered = text.lower()
    for rule in _RULES:
        if any(hint in lowered for hint in rule.hints):
            yield from (found.span("secret") for found in rule.pattern.finditer(text) if found.group("secret") != REDACTED)
    if _MANY_DIGITS.search(text):
        yield from (found.span() for found in _CARD.finditer(text) if _is_card(found, text))


def _is_card(found: re.Match[str], text: str) -> bool:
    """Whether digits are a payment card's number: its issuer's beginning and length, a right check digit, and grouped as on
    the card or named as one. What merely has as many digits (a device, a parcel) is none."""
    digits = re.sub(r"\D", "", found.group())
    is_said = found.lastindex is not None or _CARD_WORDS.search(text, max(0, found.start() - _BEFORE_CARD), found.start())
    if not is_said or not _CARD_DIGITS.fullmatch(digits):
        return False
    doubled = [d * 2 - 9 if d > 4 else d * 2 for d in map(int, digits[-2::-2])]
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0
