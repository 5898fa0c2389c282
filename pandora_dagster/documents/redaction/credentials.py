"""Search and redaction of credentials and secret codes in text, by their form, before text is stored.

Text that merely looks random (order ids, hashes, flight numbers) stays: a rule needs a known prefix, a known header or a word that names a
secret. Each rule is a regular expression with hints, short texts of which every match has one: `password: hunter2` is found by the hint
`pass`. A rule without a hint in the text is skipped, and a pattern is tried only near its hints. Payment cards are found by their digits.

This is the only recognizer of credentials. A user's own documents keep them. Everything that is derived from documents goes through it:
rows of indexes, ledgers, logs, metadata of Dagster and compressed texts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

REDACTED = "[redacted]"
_CREDENTIAL_NAME = (
    r"(?:password|passwd|passphrase|passcode|pwd|api[ _-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|client[_-]?secret|private[_-]?key"
    r"|(?:access|auth|refresh|bearer)[_-]?token)"
)
"""Names whose value is a secret. A bare `token` is not among them: it also means a unit of text, and has its own rule."""
_CREDENTIAL_NAME_HINTS = ("pass", "pwd", "secret", "api", "private", "access", "auth", "refresh", "bearer")
_SECRET_VARIABLE = re.compile(
    rf"(?:^|_){_CREDENTIAL_NAME}(?:_|$)|(?:^|_)(?:key|token|secret|pass|pw|credentials?)$|(?:password|passwd|passphrase)$", re.IGNORECASE
)
_ENGLISH_NOUN = r"(?:password|passwd|passphrase|passcode|pwd|pw)"
_ENGLISH_NOUN_HINTS = "pass pw"
"""What people call a password in a sentence; the other languages follow."""
_FOREIGN_NOUN = r"(?:passwort|kennwort|contrase(?:ñ|n\u0303?)a|mot de passe|senha|wachtwoord|lösenord|hasło|пароль)"
_FOREIGN_NOUN_HINTS = ("pass", "kennwort", "contrase", "senha", "wachtwoord", "lösenord", "hasło", "пароль")
_CLAUSE_END = r"(?=[\"'”.!?,;)\\]*(?:$|\n|[\"'”.!?,;)\\]\s|[\"'”\\]|[ \t]+(?:and|but|or|for|so|please|if|when|thanks?|und|y|et|e)\b))"
"""The end of a clause: a sentence about a password continues ("gone since 2019"), a password does not."""
_SENTENCE_AFTER_LABEL = (
    r"(?!(?:strict|strong|weak|wrong|right|correct|incorrect|valid|invalid|secure|insecure|unsafe|secret|private|public|short|empty|blank"
    r"|mandatory|optional|necessary|known|unknown|never|always|still|already|there|below|above|simple|complex|enough|important|different"
    r"|reset|stolen|broken|chosen|taken|given|found|sensitive|unique|ready|being|kept|again|likely|string|bytes|boolean|integer|undefined|false|hidden|first|please|today|yours"
    r"|[a-z]+(?:ed|ing|able|ible|ten|wn|less|ful|ly))\b)"
)
"""Words that sentences, forms and schemas put after the label of a password; participles and adjectives by their endings."""
_PLAIN_WORD = rf"{_SENTENCE_AFTER_LABEL}[^\W\d_]{{5,40}}{_CLAUSE_END}"
"""A password of letters only: one word at the end of a clause."""
_WITH_DIGIT = r"(?=\S{0,80}[0-9!@#$%^&*_])(?![\[<{])[^\s,;\"'\\]{3,}[^\s,;\"'\\.]"
"""A password with a digit or a sign."""
_FOR_WHAT = r"(?: (?:for|of|to) [\w .\-]{1,40}?)?"
"""Between the noun and its verb: `the password for the router is`."""
_RANDOM_STRING = r"(?=[A-Za-z_.~+/-]{0,40}[0-9])(?=[0-9_.~+/-]{0,40}[A-Za-z])[A-Za-z0-9_.~+/-]{12,}=*"
"""Letters and digits together, which a count of tokens never has."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A form of credentials: the group `secret` of `pattern` is redacted. A text without any of the `hints` (lower case) has no match,
    and only the places around its hints are searched."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    reach: int = 1
    """A match begins at a hint, or at most this number of characters before it."""


def _rule(hints: str, pattern: str, flags: int = 0, *, reach: int = 1) -> _Rule:
    return _Rule(tuple(hints.split()), re.compile(pattern, flags), reach)


_RULES = (
    _rule(
        "private",
        r"(?P<secret>-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----.*?(?:-----END (?P=kind)-----|\Z))",
        re.DOTALL,
        reach=51,
    ),
    _rule(
        "auth",
        r"(?i)\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?P<secret>(?:(?:basic|bearer|token|digest|negotiate)\s+)?[^\s\"',\\]{4,})",
        reach=6,
    ),
    _rule("cookie", r"(?i)\b(?:set-)?cookie:[ \t]*(?P<secret>[^\r\n\"]+)", reach=4),
    _rule("bearer", r"(?i)\bbearer\s+(?P<secret>(?=[A-Za-z0-9._~+/=-]*[0-9._~+/=-])[A-Za-z0-9._~+/=-]{16,})"),
    _rule("sk- rk- pk-", r"\b(?P<secret>(?:sk|rk|pk)-(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{16,})"),
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
    _rule("eyj", r"\b(?P<secret>eyJ[A-Za-z0-9_-]{8,4000}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,})"),
    _rule("://", r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{1,100}:(?P<secret>[^\s/@\"']{1,200})(?=@)", reach=21),
    _rule("token", rf"(?i)(?:\b|_)token\\?[\"']?\s*[:=]\s*\\?[\"']?(?P<secret>{_RANDOM_STRING})"),
    _rule("ya29.", r"\b(?P<secret>ya29\.[A-Za-z0-9_-]{16,})"),
    _rule("sg.", r"\b(?P<secret>SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})"),
    _rule("hooks.slack.com/", r"(?i)\bhooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_+-]{10,})"),
    _rule("_v1_", r"\b(?P<secret>do[opr]_v1_[A-Za-z0-9]{20,})\b", reach=3),
    _rule("accountkey sharedaccess", r"(?i)\b(?:account|sharedaccess)key\s*=\s*(?P<secret>[A-Za-z0-9+/]{16,}=*)"),
    _rule("sig", r"(?i)[?&;](?:sig|(?:x-(?:amz|goog)-)?signature)=(?!\[)(?P<secret>[^\s&#;\"'<>\\)]{8,})", reach=8),
    _rule("secret", rf"(?i)\bsecret(?:[ _-](?:access[ _-])?key)?(?: is| was)?:?[ \t]+[\"']?(?P<secret>(?=\S{{20}}){_RANDOM_STRING})"),
    _rule("token", rf"(?i)\b(?:access|auth|refresh|bearer|api)[ _-]token(?: is| was)?:?[ \t]+[\"']?(?P<secret>{_RANDOM_STRING})", reach=8),
    _rule(
        _ENGLISH_NOUN_HINTS,
        rf"(?i)(?:\b|_){_ENGLISH_NOUN}{_FOR_WHAT} (?:is|was)(?: now)?:?[ \t]+[\"'“‘]?(?P<secret>{_WITH_DIGIT}|{_PLAIN_WORD})",
    ),
    _rule(
        _ENGLISH_NOUN_HINTS,
        rf"(?i)(?:\b|_){_ENGLISH_NOUN}{_FOR_WHAT} (?:is|was):?[ \t]+[\"“](?P<secret>\w[^\"”\n\\]{{3,80}})(?=[\"”])",
    ),
    _rule(_ENGLISH_NOUN_HINTS, rf"(?i)(?:\b|_){_ENGLISH_NOUN}(?:\s*:[ \t]*|[ \t]+=[ \t]*)(?P<secret>(?=\w){_WITH_DIGIT}|{_PLAIN_WORD})"),
    _rule(
        _ENGLISH_NOUN_HINTS,
        rf"(?i)(?:\b|_){_ENGLISH_NOUN}[ \t]+(?P<secret>(?!https?:)(?=[^\W\d_][^\s/:]{{0,40}}\d)[^\s,;:/\"'\\()]{{5,}}[^\s,;:/\"'\\.()?])",
    ),
    _rule("pass pw", r"(?i)(?:_|[?&])(?:pass|pw)\s*[=:][ \t]*[\"']?(?!true\b|false\b|\d{1,3}\b|\[)(?P<secret>[^\s&,;\"'\\]{4,})"),
    _rule("pw=", r"(?i)\bpw=[\"']?(?!\[)(?P<secret>[^\s&,;\"'\\]{4,})"),
    _Rule(
        _FOREIGN_NOUN_HINTS, re.compile(rf"(?i)\b{_FOREIGN_NOUN}\s*[:=]\s*[\"'„“«]?(?P<secret>(?=\w){_WITH_DIGIT}|{_PLAIN_WORD})"), reach=7
    ),
    _Rule(
        _FOREIGN_NOUN_HINTS,
        re.compile(
            rf"(?i)\b{_FOREIGN_NOUN} (?:ist|lautet|war|es|era|est|était|é|is|was|är|to)(?:[ \t]*:)?[ \t]++"
            rf"[\"'„“«]?(?P<secret>{_WITH_DIGIT})"
        ),
        reach=7,
    ),
    _rule(
        "密码 密碼 口令 パスワード 暗証番号 비밀번호",
        r"(?:密[码碼]|口令|パスワード|暗証番号|비밀번호)\s*(?:是|为|為|は|が|는|은|[:：=])+\s*[\"'「“]?(?P<secret>(?![\[<{])[!#-&*-+./-9<-Z^-~-]{4,})",
    ),
    _rule(
        "pin code cv otp one security",
        r"(?i)\b(?:pin(?: code| number)?|pass ?code|cv[vc]2?|security (?:code|number)|(?:verification|one[- ]time|2fa|login) code"
        r"|one[- ]time password|otp(?: code)?)\b(?:(?: \w{1,20}){0,6}? (?:is|was))?(?:[ \t]{0,2}[:=#])?[ \t]{1,2}[\"']?"
        r"(?P<secret>\d{3}[ -]?\d{3}|\d{3,8})(?![\w%]|[.,:/-]\d)",
        reach=13,
    ),
    _rule("pin cv otp", r"(?i)\b(?:pin|cv[vc]2?|otp)[=:](?P<secret>\d{3,8})(?![\w%]|[.,:/-]\d)"),
    _rule(
        "ssn social",
        r"(?i)\b(?:ssn|social security(?: number| no\.?)?)\b(?:(?: \w{1,20}){0,5}? (?:is|was))?(?:[ \t]*[:=#])?[ \t]*+[\"']?"
        r"(?P<secret>\d{3}([ -]?)\d{2}\2\d{4})(?![\w-])",
    ),
    _Rule(
        _CREDENTIAL_NAME_HINTS,
        re.compile(rf"(?i)(?:\b|_){_CREDENTIAL_NAME}\\?[\"']?\s*[:=]\s*\\?\"(?P<secret>(?:[^\"\\]|\\[^\"])+)(?=\\?\")"),
        reach=8,
    ),
    _Rule(_CREDENTIAL_NAME_HINTS, re.compile(rf"(?i)(?:\b|_){_CREDENTIAL_NAME}[\"']?\s*[:=]\s*'(?P<secret>[^'\n]+)(?=')"), reach=8),
    _Rule(_CREDENTIAL_NAME_HINTS, re.compile(rf"(?i)(?:\b|_){_CREDENTIAL_NAME}=(?![\"'\\\[])(?P<secret>[^\s&;,\"'\\]+)"), reach=8),
    _Rule(
        _CREDENTIAL_NAME_HINTS,
        re.compile(
            rf"(?i)(?:\b|_){_CREDENTIAL_NAME}(?:\s*:[ \t]+|[ \t]+=[ \t]*)"
            r"(?P<secret>(?=[^\s]*[0-9!@#$%^&*_])(?![\"'\\\[<{])[^\s,;\"'\\]{6,})"
        ),
        reach=8,
    ),
)
_ESCAPED_BREAK = re.compile(r"\\[nrt]")
_HINTS = frozenset(hint for rule in _RULES for hint in rule.hints)
_ATTEMPT_CHARACTERS = 6
"""Characters that a search passes in the time of one match attempt at a position."""
_CARD = re.compile(r"(?<![\w\-.])(?:\d{4}([ \-])\d{4}\1\d{4}\1\d{4}|3\d{3}([ \-])\d{6}\2\d{5}|[3-6]\d{12,18})(?![\w\-])")
_CARD_DIGITS = re.compile(r"4\d{12}(?:\d{3}){0,2}|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3[068]\d{12}|35\d{14}|6(?:011|4[4-9]|5)\d{12,13}")
_CARD_WORDS = re.compile(r"card|visa|master|amex|\bpan\b|\bcc\b", re.IGNORECASE)
_CARD_WORD_DISTANCE = 40
"""Characters before a number in which a word such as `card` is looked for."""


def credential_spans(text: str) -> tuple[tuple[int, int], ...]:
    """The spans of credentials, as (start, end), in order and without overlap."""
    if not text:
        return ()
    merged: list[tuple[int, int]] = []
    for start, end in sorted(_scan(text)):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def holds_secret(text: str) -> bool:
    """Whether a text contains a credential that `redact` would replace."""
    return bool(credential_spans(text))


def names_secret(variable: str) -> bool:
    """Whether an environment variable of this name holds a credential, whatever its value looks like."""
    return variable != "PWD" and _SECRET_VARIABLE.search(variable) is not None  # PWD is the shell's working directory


def redact(text: str) -> str:
    """`text` with every credential replaced by `[redacted]`; a second run changes nothing (decision 14,
    docs/decisions/14-the-intervention-record.md)."""
    spans = credential_spans(text)
    if not spans:
        return text
    parts: list[str] = []
    position = 0
    for start, end in spans:
        parts += (text[position:start], REDACTED)
        position = end
    return "".join((*parts, text[position:]))


def redact_values(value: Any) -> Any:
    """Plain data with every credential in its strings replaced, at any depth; keys stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {name: redact_values(item) for name, item in cast("Mapping[Any, Any]", value).items()}
    return [redact_values(item) for item in cast("Sequence[Any]", value)] if isinstance(value, (list, tuple)) else value


def _scan(text: str) -> Iterator[tuple[int, int]]:
    """The spans of all matches, in any order; they may overlap. A line may begin after an escaped line break, as in stored JSON."""
    text = _ESCAPED_BREAK.sub("\n ", text) if "\\" in text else text
    lowered = text.lower()
    if not lowered.isascii():  # a case-insensitive pattern matches these as i and s
        lowered = lowered.replace("ı", "i").replace("ſ", "s")
    present = {hint for hint in _HINTS if hint in lowered}
    for rule in _RULES:
        if hints := present.intersection(rule.hints):
            yield from (match.span("secret") for match in _matches(rule, hints, text, lowered) if match["secret"] != REDACTED)
    yield from (match.span() for match in _CARD.finditer(text) if _is_card(match, text))


def _matches(rule: _Rule, hints: Iterable[str], text: str, lowered: str) -> Iterator[re.Match[str]]:
    """The matches of a rule, from left to right. Only positions near a hint are tried, unless that is slower than a search of the whole
    text, or they are unknown because lower-casing changed the length of the text."""
    attempts = sum(lowered.count(hint) for hint in hints) * (rule.reach + 1)
    if attempts * _ATTEMPT_CHARACTERS > len(text) or len(lowered) != len(text):
        yield from rule.pattern.finditer(text)
        return
    end = 0
    hint_positions = (position for hint in hints for position in _occurrences(hint, lowered))
    for start in sorted({start for position in hint_positions for start in range(max(0, position - rule.reach), position + 1)}):
        if start >= end and (match := rule.pattern.match(text, start)):
            end = match.end()
            yield match


def _occurrences(hint: str, text: str) -> Iterator[int]:
    position = text.find(hint)
    while position >= 0:
        yield position
        position = text.find(hint, position + 1)


def _is_card(match: re.Match[str], text: str) -> bool:
    """Whether digits are a payment card's number: prefix and length of an issuer, a valid check digit, and grouped as on the card or named
    as a card. A device or parcel number with as many digits is not one."""
    digits = re.sub(r"\D", "", match[0])
    is_grouped_or_named = match.lastindex is not None or _CARD_WORDS.search(
        text, max(0, match.start() - _CARD_WORD_DISTANCE), match.start()
    )
    if not is_grouped_or_named or not _CARD_DIGITS.fullmatch(digits):
        return False
    doubled = [d * 2 - 9 if d > 4 else d * 2 for d in map(int, digits[-2::-2])]
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0
