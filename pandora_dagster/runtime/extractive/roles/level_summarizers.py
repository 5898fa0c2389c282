"""Roles `session_summarizer` and `digest_builder` (003): the most telling entries, and a digest of whole sentences, all verbatim."""

import json
import re
from collections.abc import Iterable
from typing import Any

from pandora_dagster.contracts.model_calls import PromptPack
from pandora_dagster.contracts.ports.measurement import TokenMeasure
from pandora_dagster.language.sentences import sentences
from pandora_dagster.runtime.extractive.output_budget import Draft
from pandora_dagster.runtime.extractive.roles.text_shortener import condensed

_MAX_TOKENS = re.compile(r"^max_tokens: (\d{1,6})$", re.MULTILINE)
_ITEM = re.compile(r"^\[\d+\] ")
_DECIDED = re.compile(
    r"\b(?:decided|decision|chose|chosen|agreed|accepted|confirmed|booked|cancelled|canceled|approved|rejected|will use|instead of)\b", re.I
)
_FAILED = re.compile(r"\b(?:\w*error|failed|failure|\w*exception|denied|refused|timed out)\b", re.I)
_OPEN = re.compile(r"\?\W*$|\b(?:still open|unresolved|undecided|not yet|pending|to be decided|remains open)\b", re.I)
_TOOL = re.compile(
    r"(?<![\w.@/-])[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)+(?![\w@/-])(?!\.\w)|(?<![\w.@/-])[a-z]+(?:_[a-z]+)*\.[a-z]+_?[a-z]+(?=\()"
)
_SENTENCE_WORDS = 45
_CAPS = {"key_decisions": 20, "tools_used": 30, "errors_encountered": 15, "open_questions": 10}


def summarize_session(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """003 level 2: whole lines and sentences of the entries, in their order, within the tokens that the call asks for."""
    return condensed(pack.document("entries"), _limit(pack), counter, about=pack.query)


def build_digest(pack: PromptPack, counter: TokenMeasure) -> Draft:
    """003 level 3: decisions, tools, errors and open questions as the summaries say them; the last sentence tells how far the task is."""
    said = list(dict.fromkeys(_said(pack.document("summaries"))))
    questions = [s for s in said if _OPEN.search(s)]
    failures = [s for s in said if _FAILED.search(s) and s not in questions]
    digest: dict[str, Any] = {
        "key_decisions": [s for s in said if _DECIDED.search(s) and s not in questions and s not in failures],
        "tools_used": list(dict.fromkeys(tool for s in said for tool in _TOOL.findall(s))),
        "errors_encountered": failures,
        "progress_toward_goal": said[-1] if said else "",
        "open_questions": questions,
    }
    return _fitting({name: value[-_CAPS[name] :] if name in _CAPS else value for name, value in digest.items()}, _limit(pack), counter)


def _limit(pack: PromptPack) -> int:
    """The tokens that the call asks for where it does, never more than it may write."""
    shown = next((p.text for p in pack.parts if p.kind == "variables"), "")
    asked = _MAX_TOKENS.search(shown)
    return min(int(asked[1]), pack.max_output_tokens) if asked else pack.max_output_tokens


def _said(text: str) -> Iterable[str]:
    """Whole sentences that are not too long for a list item; one that is stays out of the digest, never cut."""
    for line in text.splitlines():
        yield from (s.strip() for s in sentences(_ITEM.sub("", line.strip())) if s.strip() and len(s.split()) <= _SENTENCE_WORDS)


def _fitting(digest: dict[str, Any], limit: int, counter: TokenMeasure) -> str:
    """The digest as JSON; over the limit the longest list gives up its oldest item until it fits."""
    while counter.count(text := json.dumps(digest, ensure_ascii=False)) > limit and any(digest[name] for name in _CAPS):
        longest = max(_CAPS, key=lambda name: len(digest[name]))
        digest = {**digest, longest: digest[longest][1:]}
    return text if counter.count(text) <= limit else json.dumps({**digest, "progress_toward_goal": ""})


ANSWERS = {"session_summarizer": summarize_session, "digest_builder": build_digest}
"""Recipe field `role` -> the function that answers it."""
