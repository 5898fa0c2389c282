"""Checks a narrative and a digest against what they were made from: unsupported statements are removed, an answer without any other is
refused.

Knows texts; makes no calls. A level may leave facts out (DECISIONS 7), so only what it says is judged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pandora_dagster.compression.levels.level_prompts import ITEM, LIST_LIMITS, PROGRESS, L2Summarizer, normalised
from pandora_dagster.compression.verification.ledger import Ledger, build_ledger
from pandora_dagster.compression.verification.summary_check import check_summary
from pandora_dagster.compression.verification.verifier import unsupported, verify
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.user.summary_levels import ERROR_LABEL, LIMIT_LABEL, TOOLS_LABEL
from pandora_dagster.documents.redaction.credentials import holds_secret
from pandora_dagster.language.courtesy import is_courtesy
from pandora_dagster.language.sentences import sentences

_LEAST = 0.5
"""Share of a sentence's content words that the source has."""
_TOOLS = "tools_used"
_LABELS = (LIMIT_LABEL, TOOLS_LABEL, ERROR_LABEL)


@dataclass(frozen=True, slots=True)
class NarrativeCheck:
    """A narrative that passed, or the reasons why none can be made of the answer."""

    text: str
    refused: tuple[str, ...] = ()
    left_out: int = 0
    """Statements of the entries that are not in it."""
    reasons: tuple[str, ...] = ()


def check_narrative(
    answer: str, entries: Sequence[str], *, heads: Sequence[str] = (), max_tokens: int, counter: TokenMeasure
) -> NarrativeCheck:
    """The sentences of an answer that the entries support, within `max_tokens`; whole sentences are left out, the last first.

    `heads`: what entries begin with; a line that begins so is read without it, as prose.
    """
    entry_text = "\n".join(_apart(entry, heads) for entry in entries)
    source = build_ledger(entry_text)
    refused: list[str] = []
    lines: list[list[str]] = []
    for line in L2Summarizer().parse_summary_response(answer).splitlines():
        kept: list[str] = []
        plain = ITEM.sub("", line.strip())
        for sentence in sentences(next((plain.removeprefix(head) for head in heads if plain.startswith(head)), plain)):
            if wrong := _wrong(sentence, source):
                refused.append(f"{sentence[:80]}: {wrong}")
            else:
                kept.append(sentence)
        lines += [kept] if kept else []
    lines = _fitting(lines, max_tokens, counter)
    lines, unsound, reasons = _supported_lines(lines, source, max_tokens, counter)
    text, plain = _joined(lines), "\n".join(next((e.removeprefix(h) for h in heads if e.startswith(h)), e) for e in entries)
    return NarrativeCheck(text, (*refused, *unsound), len(verify(plain, text).left_out), reasons)


def check_level_digest(answer: object, summaries: Sequence[str]) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """An answer's digest with the items that the summaries support, what was taken out, and reasons where nothing is left of it."""
    given = normalised(answer)
    source = build_ledger("\n".join(summaries))
    refused: list[str] = []

    def kept(text: str, *, is_name: bool = False) -> bool:
        wrong = ("" if source.index.share(text) == 1.0 else "no summary names it") if is_name else _wrong(text, source)
        if not is_name and len(text.split()) > 1 and is_courtesy(text):
            wrong = "a courtesy"
        if wrong:
            refused.append(f"{text[:80]}: {wrong}")
        return not wrong

    digest = {name: [text for text in given[name] if kept(text, is_name=name == _TOOLS)] for name in LIST_LIMITS}
    progress = "" if is_courtesy(given[PROGRESS]) else given[PROGRESS]
    digest |= {PROGRESS: progress if progress and kept(progress) else ""}
    nothing = bool(refused) and not any(digest.values())
    return normalised(digest), tuple(refused), ("nothing of it is supported by the summaries", *refused[:3]) if nothing else ()


def trim_digest(digest: dict[str, Any], limit: int, count: Callable[[str], int], shown: Callable[[dict[str, Any]], str]) -> dict[str, Any]:
    """The digest within `limit` tokens as it is shown: the longest list loses its oldest item until it is; its sources stay linked."""
    while count(shown(digest)) > limit and any(digest[name] for name in LIST_LIMITS):
        longest = max(LIST_LIMITS, key=lambda name: sum(map(len, digest[name])))
        digest = {**digest, longest: digest[longest][1:]}
    return digest if count(shown(digest)) <= limit else {**digest, PROGRESS: ""}


def _wrong(text: str, source: Ledger) -> str:
    """Why the source does not support a sentence; "" where it does."""
    if holds_secret(text):
        return "it holds a credential"
    if bad := next(iter(unsupported(source, text)), None):
        return f"{bad.outcome.value}: {bad.reason}"
    return "" if source.index.share(text) >= _LEAST else "its words are not those of the source"


def _fitting(lines: list[list[str]], limit: int, counter: TokenMeasure) -> list[list[str]]:
    """The lines within `limit` tokens: the last sentence of those that are not labelled goes first, labelled lines last."""
    while lines and counter.count(_joined(lines)) > limit:
        at = max((n for n, line in enumerate(lines) if not line[0].startswith(_LABELS)), default=len(lines) - 1)
        lines = [*lines[:at], *([rest] if (rest := lines[at][:-1]) else []), *lines[at + 1 :]]
    return lines


def _supported_lines(
    lines: list[list[str]], source: Ledger, limit: int, counter: TokenMeasure
) -> tuple[list[list[str]], tuple[str, ...], tuple[str, ...]]:
    """The lines where they are a narrative; else without the one sentence that spoils it; else the reasons. Sentences that are all
    verbatim in the source are one."""
    if not lines:
        return [], (), ("nothing of it is supported by the entries",)

    def reasons_against(found: list[list[str]]) -> tuple[str, ...]:
        return check_summary(_joined(_prose(found) or found), source, limit, counter)

    reasons = reasons_against(lines)
    if not reasons:
        return lines, (), ()
    for at, line in enumerate(lines):
        for n, sentence in enumerate(line):
            rest = [*lines[:at], *([r] if (r := line[:n] + line[n + 1 :]) else []), *lines[at + 1 :]]
            if rest and not reasons_against(rest):
                return rest, (f"{sentence[:80]}: {reasons[0]}",), ()
    return lines, (), reasons


def _prose(lines: list[list[str]]) -> list[list[str]]:
    """The lines but those that only name tools."""
    return [line for line in lines if not line[0].startswith(TOOLS_LABEL)]


def _apart(entry: str, heads: Sequence[str]) -> str:
    """An entry with its head on a line of its own, so that what it says is a line of the source."""
    return next((f"{head}\n{entry.removeprefix(head)}" for head in heads if entry.startswith(head)), entry)


def _joined(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(" ".join(line) for line in lines)
