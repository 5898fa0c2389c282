"""Prompts for level 2 (narratives) and level 3 (digests), and the narratives and digests in their answers. Calls no model.

The limits of a digest may leave facts out of it; lineage leads to the texts that it was made from (decision 7,
docs/decisions/07-levels-link-every-fact.md). The names follow specification 003, "L2Summarizer" and "L3DigestBuilder".
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, cast

from pandora_dagster.compression.levels.summarization_config import SummarizationConfig, batches
from pandora_dagster.contracts.model_calls import frame_text
from pandora_dagster.documents.model_json import read_strict_json
from pandora_dagster.shipped import shipped_folder

_SLOT = re.compile(r"\{\{([a-z_]+)\}\}")
ITEM = re.compile(r"^\[\d+\] ", re.MULTILINE)
_FILES: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "_L2_SYSTEM": ("l2_system", ()),
        "_L2_TEMPLATE": ("l2_summary", ("entries",)),
        "_L3_TEMPLATE": ("l3_digest", ("task_context", "summaries")),
    }
)
"""Constant -> its file in `prompts/memory/`, and the documents after the file's text."""


def prompt_text(name: str) -> str:
    """The text of specification 003's constant `name`: its prompt file, then its documents as `{{slots}}`, framed as in every prompt pack.

    Raises AttributeError for a name that is none of them, as a module does.
    """
    if name not in _FILES:
        raise AttributeError(f"no attribute {name!r}: expected one of {', '.join(_FILES)}")
    file, documents = _FILES[name]
    return _with_documents(_file_text(file), {document: f"{{{{{document}}}}}" for document in documents})


def filled(name: str, **values: str) -> str:
    """The template `name` with its slots filled, once: a slot within a value is never read again."""
    file, documents = _FILES[name]
    text = _SLOT.sub(lambda slot: values[slot[1]], _file_text(file))
    return _with_documents(text, {document: values[document] for document in documents})


def number_items(items: Sequence[str]) -> str:
    """One item after `[n] `; its further lines are indented, so that no item looks like another one or like a frame."""
    return "\n".join(f"[{n}] " + "\n    ".join(item.split("\n")) for n, item in enumerate(items, start=1))


def items_in(prompt: str, document: str) -> tuple[str, int]:
    """The numbered text of `document`, the last one of a filled prompt, and how many items it has; "" and 0 in any other text."""
    opening, closing = (f"\n{line}\n" for line in frame_text("document", document, "\0").split("\n\0\n"))
    head, _, rest = f"{prompt}\n".rpartition(opening)
    body = rest.removesuffix(closing) if head else ""
    return body, len(ITEM.findall(body))


@cache
def _file_text(file: str) -> str:
    return (shipped_folder() / "prompts" / "memory" / f"{file}.md").read_text(encoding="utf-8").strip()


def _with_documents(text: str, documents: Mapping[str, str]) -> str:
    return "\n\n".join([text, *(frame_text("document", name, body) for name, body in documents.items())])


_DEFAULTS = SummarizationConfig()
_MARKS = r"[#*_ \t]{0,8}"
_KIND = r"(?:(?:brief|concise|short|final|narrative|clean)\s){0,2}"
_PREAMBLE = re.compile(
    rf"(?:{_MARKS}(?:sure|certainly|of course|okay|ok)\b[,.!:]{{0,2}}\s{{0,4}})?"
    rf"{_MARKS}(?:here(?:['’]s|\sis|\scomes)\s[^:.\n]{{0,60}}\bsummary\b[^:.\n]{{0,60}}:"
    rf"|(?:(?:the|a|my)\s)?{_KIND}summary(?:\s(?:follows|is|is as follows|below))?\s{{0,2}}:)(?:\*\*|__)?"
    rf"|#{{1,6}} (?:the\s)?{_KIND}summary[ \t]*(?=\n|$)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\A```[a-z]{0,10}[ \t]*\n((?:(?!```).)*)\n```\Z", re.DOTALL)


class L2Summarizer:
    """Builds prompts for level 2 and reads their answers; keeps nothing between calls (specification 003, "L2Summarizer")."""

    def build_summary_prompt(self, entries: list[str], max_tokens: int = _DEFAULTS.l2_max_summary_tokens) -> str:
        """A prompt that asks for one narrative of `entries` in at most `max_tokens` tokens; "" where there are none."""
        if not entries:
            return ""
        return filled("_L2_TEMPLATE", entries=number_items(entries), max_tokens=str(max_tokens))

    def parse_summary_response(self, response: str) -> str:
        """The summary without preamble ("Here is a summary:", "Summary:") and without a fence around it; "" for an empty answer."""
        text = response.strip()
        while (shorter := _unwrapped(text)) != text:
            text = shorter
        return text

    def build_batch_summary_prompt(self, entries: list[str], batch_size: int = _DEFAULTS.l2_batch_size) -> list[str]:
        """One prompt per `batch_size` entries, in order; a batch has at least one entry. The last one may be smaller."""
        return [self.build_summary_prompt(list(batch)) for batch in batches(entries, batch_size)]

    def estimate_compression_ratio(self, original_tokens: int, summary_tokens: int) -> float:
        """Original over summary; 0.0 where the summary has no token."""
        return original_tokens / summary_tokens if summary_tokens > 0 else 0.0


def _unwrapped(text: str) -> str:
    """`text` without one preamble and one fence around the rest."""
    preamble = _PREAMBLE.match(text)
    body = text[preamble.end() :].strip() if preamble else text
    fence = _FENCE.match(body)
    return fence[1].strip() if fence else body


_LIMITS: Mapping[str, int] = MappingProxyType({"key_decisions": 20, "tools_used": 30, "errors_encountered": 15, "open_questions": 10})
PROGRESS = "progress_toward_goal"
DIGEST_KEYS = frozenset({*_LIMITS, PROGRESS})
_ORDER = ("key_decisions", "tools_used", "errors_encountered", PROGRESS, "open_questions")
_MAX_TOKENS = SummarizationConfig().l3_max_digest_tokens


class L3DigestBuilder:
    """Builds prompts for level 3 and reads their answers; keeps nothing between calls (specification 003, "L3DigestBuilder")."""

    def build_digest_prompt(self, summaries: list[str], task_context: str) -> str:
        """A prompt that asks for a JSON digest of `summaries`; "" where there are none."""
        return digest_prompt(summaries, task_context, max_tokens=_MAX_TOKENS)

    def parse_digest_response(self, response: str) -> dict[str, Any]:
        """The digest in an answer, also in a code fence or amid prose, with its five keys and within its limits.

        The empty digest for anything that is not one whole JSON object: malformed JSON is never repaired (decision 24,
        docs/decisions/24-malformed-digests.md).
        """
        try:
            return normalize_digest(read_strict_json(response.strip()))
        except ValueError:
            return empty_digest()

    def merge_digests(self, old_digest: dict[str, Any], new_digest: dict[str, Any]) -> dict[str, Any]:
        """Both digests in one: old items first, equal ones (whatever their case) once, the new progress where there is one.

        Over a limit the oldest items that the new digest does not repeat go first. Merging the same digest again changes nothing.
        """
        old, new = normalize_digest(old_digest), normalize_digest(new_digest)
        merged = {name: _merged(old[name], new[name], limit) for name, limit in _LIMITS.items()}
        return _ordered({**merged, PROGRESS: new[PROGRESS] or old[PROGRESS]})


def digest_prompt(summaries: list[str], task_context: str, *, max_tokens: int) -> str:
    """The filled level 3 template; "" where there are no summaries."""
    if not summaries:
        return ""
    return filled("_L3_TEMPLATE", summaries=number_items(summaries), task_context=number_items([task_context]), max_tokens=str(max_tokens))


def empty_digest() -> dict[str, Any]:
    """A new digest that says nothing (specification 003, `_EMPTY_DIGEST`)."""
    return _ordered({PROGRESS: "", **{name: list[str]() for name in _LIMITS}})


def normalize_digest(value: object) -> dict[str, Any]:
    """`value` as a digest: the five keys, lists of text within their limits, progress as text; the empty digest for no dictionary."""
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else dict[str, object]()
    lists = {name: _texts(fields.get(name))[:limit] for name, limit in _LIMITS.items()}
    return _ordered({**lists, PROGRESS: _text(fields.get(PROGRESS))})


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
    dropped = [key for key in items if key not in repeated][: max(0, len(items) - limit)]
    return [text for key, text in items.items() if key not in dropped]


LIST_LIMITS = dict(_LIMITS)
EMPTY_DIGEST = empty_digest()
"""As specification 003 documents it, a plain dictionary; the functions return new ones."""
