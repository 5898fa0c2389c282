"""Level 3: prompts for structured digests, and what an answer or two digests amount to. Calls no model (003 "L3DigestBuilder").

A digest is what is shown; its caps may leave a fact out of it. What lies under it stays reachable by lineage (DECISIONS 7).
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from pandora_dagster.compression.levels.config import SummarizationConfig
from pandora_dagster.compression.levels.texts import filled, number_items
from pandora_dagster.text.answers import strict_json

_LIMITS: Mapping[str, int] = MappingProxyType({"key_decisions": 20, "tools_used": 30, "errors_encountered": 15, "open_questions": 10})
PROGRESS = "progress_toward_goal"
DIGEST_KEYS = frozenset({*_LIMITS, PROGRESS})
_ORDER = ("key_decisions", "tools_used", "errors_encountered", PROGRESS, "open_questions")
_MAX_TOKENS = SummarizationConfig().l3_max_digest_tokens


class L3DigestBuilder:
    """Builds prompts for level 3 and reads their answers; keeps nothing between calls (003 "L3DigestBuilder")."""

    def build_digest_prompt(self, summaries: list[str], task_context: str) -> str:
        """A prompt that asks for a JSON digest of `summaries`; "" where there are none."""
        return digest_prompt(summaries, task_context, max_tokens=_MAX_TOKENS)

    def parse_digest_response(self, response: str) -> dict[str, Any]:
        """The digest in an answer, also in a code fence or amid prose, with its five keys and within its caps.

        The empty digest for anything that is not one whole JSON object: malformed JSON is never repaired (DECISIONS 24).
        """
        try:
            return normalised(strict_json(response.strip()))
        except ValueError:
            return empty_digest()

    def merge_digests(self, old_digest: dict[str, Any], new_digest: dict[str, Any]) -> dict[str, Any]:
        """Both digests in one: old items first, equal ones (whatever their case) once, the new progress where there is one.

        Over a cap the oldest items that the new digest does not repeat go first. Merging the same digest again changes nothing.
        """
        old, new = normalised(old_digest), normalised(new_digest)
        merged = {name: _merged(old[name], new[name], limit) for name, limit in _LIMITS.items()}
        return _ordered({**merged, PROGRESS: new[PROGRESS] or old[PROGRESS]})


def digest_prompt(summaries: list[str], task_context: str, *, max_tokens: int) -> str:
    """The filled level 3 template; "" where there are no summaries."""
    if not summaries:
        return ""
    return filled("_L3_TEMPLATE", summaries=number_items(summaries), task_context=number_items([task_context]), max_tokens=str(max_tokens))


def empty_digest() -> dict[str, Any]:
    """A new digest that says nothing (003 `_EMPTY_DIGEST`)."""
    return _ordered({PROGRESS: "", **{name: list[str]() for name in _LIMITS}})


def normalised(value: object) -> dict[str, Any]:
    """`value` as a digest: the five keys, lists of text within their caps, progress as text; the empty digest for no dictionary."""
    given = cast("dict[str, object]", value) if isinstance(value, dict) else dict[str, object]()
    lists = {name: _texts(given.get(name))[:limit] for name, limit in _LIMITS.items()}
    return _ordered({**lists, PROGRESS: _text(given.get(PROGRESS))})


def _ordered(digest: Mapping[str, Any]) -> dict[str, Any]:
    return {name: digest[name] for name in _ORDER}


def _texts(value: object) -> list[str]:
    items = cast("list[object]", value) if isinstance(value, (list, tuple)) else [value]
    return [text for item in items if (text := _text(item))]


def _text(value: object) -> str:
    """A value as text: nothing for null, JSON for lists and objects."""
    if value is None:
        return ""
    return (json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (dict, list)) else str(value)).strip()


def _merged(old: list[str], new: list[str], limit: int) -> list[str]:
    items: dict[str, str] = {}
    for text in (*old, *new):
        items.setdefault(text.casefold(), text)
    repeated = {text.casefold() for text in new}
    spare = [key for key in items if key not in repeated][: max(0, len(items) - limit)]
    return [text for key, text in items.items() if key not in spare]


LIST_LIMITS = dict(_LIMITS)
EMPTY_DIGEST = empty_digest()
"""As 003 documents it, a plain dictionary; what this module gives out is always a new one."""
