"""The prompt texts of the levels. Knows their files, read on first use, and how to fill them; not what they ask for (DECISIONS 24)."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from pandora_dagster.contracts.calls import framed
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
"""Constant -> its file in `prompts/memory/`, and the documents that stand after the file's text."""


def prompt_text(name: str) -> str:
    """The text of 003's constant `name`: its prompt file, then its documents as `{{slots}}`, framed as in every prompt pack.

    Raises AttributeError for a name that is none of them, as a module does.
    """
    if name not in _FILES:
        raise AttributeError(f"no attribute {name!r}: expected one of {', '.join(_FILES)}")
    file, documents = _FILES[name]
    return _with_documents(_file_text(file), {document: f"{{{{{document}}}}}" for document in documents})


def filled(name: str, **values: str) -> str:
    """The template `name` with its slots filled, once: a slot that stands in a value is never read again."""
    file, documents = _FILES[name]
    text = _SLOT.sub(lambda slot: values[slot[1]], _file_text(file))
    return _with_documents(text, {document: values[document] for document in documents})


def number_items(items: Sequence[str]) -> str:
    """One item after `[n] `; its further lines are indented, so that no item looks like another one or like a frame."""
    return "\n".join(f"[{n}] " + "\n    ".join(item.split("\n")) for n, item in enumerate(items, start=1))


def items_in(prompt: str, document: str) -> tuple[str, int]:
    """The numbered text of `document`, the last one of a filled prompt, and how many items it has; "" and 0 in any other text."""
    opening, closing = (f"\n{line}\n" for line in framed("document", document, "\0").split("\n\0\n"))
    head, _, rest = f"{prompt}\n".rpartition(opening)
    body = rest.removesuffix(closing) if head else ""
    return body, len(ITEM.findall(body))


@cache
def _file_text(file: str) -> str:
    return (shipped_folder() / "prompts" / "memory" / f"{file}.md").read_text(encoding="utf-8").strip()


def _with_documents(text: str, documents: Mapping[str, str]) -> str:
    return "\n\n".join([text, *(framed("document", name, body) for name, body in documents.items())])
