"""Checks a narrative and a digest against what they were made from: unsupported statements are removed, an answer without any other is
refused.

Makes no calls. A level may leave facts out (decision 7, docs/decisions/07-levels-link-every-fact.md), so only what it says is judged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pandora_dagster.compression.levels.level_prompts import ITEM, LIST_LIMITS, PROGRESS, L2Summarizer, normalize_digest
from pandora_dagster.compression.verification.summary_check import check_summary, sound_part
from pandora_dagster.compression.verification.text_facts import TextFacts, find_facts
from pandora_dagster.compression.verification.verifier import find_unsupported, verify
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.contracts.user.summary_levels import ERROR_LABEL, LIMIT_LABEL, TOOLS_LABEL
from pandora_dagster.documents.redaction.credentials import holds_secret
from pandora_dagster.language.courtesy import is_courtesy
from pandora_dagster.language.sentences import sentences

_MIN_SHARE = 0.5
"""Share of a sentence's content words that the source must have."""
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


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence of a narrative."""

    line: int
    text: str
    label: str
    """What its line begins with, such as `Tools: `; "" for prose."""


def check_narrative(
    answer: str, entries: Sequence[str], *, heads: Sequence[str] = (), max_tokens: int, counter: TokenMeasure
) -> NarrativeCheck:
    """The sentences of an answer that the entries support, within `max_tokens`; whole sentences are left out, the last first.

    `heads`: what entries begin with; a line that begins so is read without it, as prose.
    """
    bodies = [_without_head(entry, heads) for entry in entries]
    # a head is a line of its own, so that what its entry says is a line of the source
    apart = (f"{entry.removesuffix(body)}\n{body}" if body != entry else entry for entry, body in zip(entries, bodies, strict=True))
    source = find_facts("\n".join(apart))
    refused: list[str] = []
    supported: list[_Sentence] = []
    for number, line in enumerate(L2Summarizer().parse_summary_response(answer).splitlines()):
        plain = _without_head(ITEM.sub("", line.strip()), heads)
        label = next((label for label in _LABELS if plain.startswith(label)), "")
        for text in sentences(plain):
            if reason := _refusal(text, source):
                refused.append(f"{text[:80]}: {reason}")
            else:
                supported.append(_Sentence(number, text, label))
    fitting = _fit(supported, max_tokens, counter)
    if not fitting:
        return NarrativeCheck(
            "", tuple(refused), len(verify("\n".join(bodies), "").left_out), ("nothing of it is supported by the entries",)
        )

    def reasons_against(kept: Sequence[_Sentence]) -> tuple[str, ...]:
        prose = [s for s in kept if s.label != TOOLS_LABEL]
        return check_summary(_joined(prose or kept), source, max_tokens, counter)

    sound, spoiling, reasons = sound_part(fitting, reasons_against)
    refused += [f"{sentence.text[:80]}: {reasons[0]}" for sentence in spoiling]
    text = _joined(sound)
    return NarrativeCheck(text, tuple(refused), len(verify("\n".join(bodies), text).left_out), () if spoiling else reasons)


def check_level_digest(answer: object, summaries: Sequence[str]) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """An answer's digest with the items that the summaries support, what was taken out, and reasons where nothing is left of it."""
    candidate = normalize_digest(answer)
    source = find_facts("\n".join(summaries))
    refused: list[str] = []

    def is_supported(text: str, field: str) -> bool:
        if reason := item_refusal(text, source, field=field):
            refused.append(f"{text[:80]}: {reason}")
        return not reason

    digest = {name: [text for text in candidate[name] if is_supported(text, name)] for name in LIST_LIMITS}
    progress = "" if is_courtesy(candidate[PROGRESS]) else candidate[PROGRESS]
    digest |= {PROGRESS: progress if progress and is_supported(progress, PROGRESS) else ""}
    is_empty = bool(refused) and not any(digest.values())
    return normalize_digest(digest), tuple(refused), ("nothing of it is supported by the summaries", *refused[:3]) if is_empty else ()


def item_refusal(text: str, source: TextFacts, *, field: str) -> str:
    """Why a source does not support an item of a digest's `field`; "" where it does."""
    if field == _TOOLS:
        return "" if source.index.share(text) == 1.0 else "no summary names it"
    return "a courtesy" if len(text.split()) > 1 and is_courtesy(text) else _refusal(text, source)


def trim_digest(digest: dict[str, Any], limit: int, count: Callable[[str], int], shown: Callable[[dict[str, Any]], str]) -> dict[str, Any]:
    """The digest within `limit` tokens as it is shown: the longest list loses its oldest item until it is; its sources stay linked."""
    while count(shown(digest)) > limit and any(digest[name] for name in LIST_LIMITS):
        longest = max(LIST_LIMITS, key=lambda name: sum(map(len, digest[name])))
        digest = {**digest, longest: digest[longest][1:]}
    return digest if count(shown(digest)) <= limit else {**digest, PROGRESS: ""}


def _refusal(text: str, source: TextFacts) -> str:
    """Why the source does not support a sentence; "" where it does."""
    if holds_secret(text):
        return "it holds a credential"
    if verdict := next(iter(find_unsupported(source, text)), None):
        return f"{verdict.outcome.value}: {verdict.reason}"
    return "" if source.index.share(text) >= _MIN_SHARE else "its words are not those of the source"


def _fit(kept: Sequence[_Sentence], max_tokens: int, counter: TokenMeasure) -> list[_Sentence]:
    """The sentences within `max_tokens`: the last one of those without a label goes first, labelled lines last."""
    fitting = list(kept)
    while fitting and counter.count(_joined(fitting)) > max_tokens:
        fitting.pop(max((n for n, sentence in enumerate(fitting) if not sentence.label), default=len(fitting) - 1))
    return fitting


def _without_head(text: str, heads: Sequence[str]) -> str:
    return next((text.removeprefix(head) for head in heads if text.startswith(head)), text)


def _joined(kept: Sequence[_Sentence]) -> str:
    return "\n".join(" ".join(s.text for s in line) for _, line in groupby(kept, key=lambda s: s.line))
