"""Incremental parser of the response protocol of specification 002 (section 2): plain text with three tags.

| tag | content | receiver |
|---|---|---|
| `<thinking>` | the model's reasoning | the call's record |
| `<draft>` | a text for the user: an invitation, a statement | the user, and the caller |
| `<dispatch>` | one action, as a word or a JSON object | the caller |

Example: `<thinking>short</thinking>Done.<dispatch>SAVE</dispatch>` shows `Done.` and dispatches `{"action": "SAVE"}`.

The reader is fed the answer in pieces, cut anywhere. It buffers only what it cannot decide yet: the beginning of a possible tag, and an
open thinking or dispatch block. No tag of the protocol reaches the user; other tags are text. The content of a block without its closing
tag, and of a dispatch without an action, is plain text.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

MAX_DISPATCH_CHARACTERS = 4_000
"""A longer dispatch is not an action and is shown as text."""
_TAG = re.compile(r"<(/?)(thinking|draft|dispatch)>", re.IGNORECASE | re.ASCII)
_TAGS = ("<thinking>", "</thinking>", "<draft>", "</draft>", "<dispatch>", "</dispatch>")
_MAX_TAG_CHARACTERS = max(map(len, _TAGS))
_ACTION = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_CLOSING = {name: re.compile(f"</{name}>", re.IGNORECASE | re.ASCII) for name in ("thinking", "dispatch")}


@dataclass(frozen=True, slots=True)
class TaggedAnswer:
    """A parsed answer. `text`: for the user, drafts included; `draft`: the first complete draft, or ""; `dispatch`: the first action, or
    None."""

    text: str
    thinking: str = ""
    draft: str = ""
    dispatch: Mapping[str, Any] | None = None

    def as_parsed(self) -> dict[str, Any]:
        """The dict that gates and callers read."""
        return {"text": self.text, "thinking": self.thinking, "draft": self.draft, "dispatch": self.dispatch}


def read_tagged(text: str) -> TaggedAnswer:
    """Parse a whole answer."""
    reader = TaggedAnswerReader()
    return reader.result(reader.feed(text) + reader.finish())


@dataclass(slots=True)
class TaggedAnswerReader:
    """Reads one answer incrementally: `feed` returns the text that can be shown now, `finish` the text that was still buffered."""

    thoughts: list[str] = field(default_factory=list[str])
    drafts: list[str] = field(default_factory=list[str])
    actions: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    _buffer: str = ""
    _position: int = 0
    """Position in `_buffer` up to which it is read."""
    _open_block: str = ""
    """The name of the block that is open at this position: thinking, dispatch, or ""."""
    _searched_to: int = 0
    """Position in `_buffer` up to which the open block was searched for its closing tag."""
    _draft_pieces: list[str] | None = None
    """The text of the open draft so far; None outside a draft."""
    _unclosed: set[str] = field(default_factory=set[str])
    """Names of blocks that are never closed, known at the end of the answer."""

    def feed(self, piece: str) -> str:
        """Add `piece`; returns the text that can be shown to the user now."""
        self._buffer += piece
        return self._read(ended=False)

    def finish(self) -> str:
        """End the answer; returns the remaining text for the user."""
        return self._read(ended=True)

    def result(self, text: str) -> TaggedAnswer:
        """The parsed answer; `text` is everything that `feed` and `finish` returned."""
        dispatch = self.actions[0] if self.actions else None
        return TaggedAnswer(text.strip(), "\n\n".join(self.thoughts), next((d for d in self.drafts if d), ""), dispatch)

    def _read(self, *, ended: bool) -> str:
        """Read the buffer as far as it can be decided; returns the text for the user. `ended`: no more text follows."""
        shown: list[str] = []
        while not self._open_block or self._close_block(ended=ended):
            tag = _TAG.search(self._buffer, self._position)
            end = tag.start() if tag else len(self._buffer) - (0 if ended else _partial_tag_length(self._buffer, self._position))
            shown.append(self._emit(self._buffer[self._position : end]))
            self._position = tag.end() if tag else end
            if tag is None:
                break
            self._handle_tag(tag[2].lower(), opens=not tag[1])
        self._buffer, self._searched_to, self._position = self._buffer[self._position :], self._searched_to - self._position, 0
        return "".join(shown)

    def _handle_tag(self, name: str, *, opens: bool) -> None:
        """Handle a tag outside of thinking and dispatch. A tag that closes nothing, or is never closed, is ignored."""
        if name == "draft":
            if not opens and self._draft_pieces is not None:
                self.drafts.append("".join(self._draft_pieces).strip())
            self._draft_pieces = [] if opens else None
        elif opens and name not in self._unclosed:
            self._open_block, self._searched_to = name, self._position

    def _close_block(self, *, ended: bool) -> bool:
        """Close the open block if its end is known; False where more text is needed."""
        name, length = self._open_block, len(self._buffer) - self._position
        limit = MAX_DISPATCH_CHARACTERS if name == "dispatch" else length
        close = _CLOSING[name].search(self._buffer, self._searched_to, self._position + limit + _MAX_TAG_CHARACTERS)
        if close is None and not ended and length <= limit + _MAX_TAG_CHARACTERS:
            self._searched_to = max(self._position, len(self._buffer) - _MAX_TAG_CHARACTERS)
            return False
        if close is None and name == "thinking":
            self._unclosed.add(name)
        content = self._buffer[self._position : close.start()] if close else ""
        if close and len(content) <= limit and self._record_block(name, content.strip()):
            self._position = close.end()
        self._open_block = ""
        return True

    def _record_block(self, name: str, content: str) -> bool:
        """Record a complete block; False for a dispatch without an action."""
        if name == "thinking":
            self.thoughts += [content] if content else []
            return True
        action = parse_dispatch(content)
        self.actions += [action] if action is not None else []
        return action is not None

    def _emit(self, text: str) -> str:
        """Return text for the user; inside a draft it also belongs to the draft."""
        if self._draft_pieces is not None:
            self._draft_pieces.append(text)
        return text


def parse_dispatch(content: str) -> Mapping[str, Any] | None:
    """The action of a dispatch: a JSON object unchanged, a word as `{"action": word}`; None for anything else."""
    if _ACTION.fullmatch(content):
        return {"action": content}
    try:
        value: object = json.loads(content, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _partial_tag_length(text: str, position: int) -> int:
    """How many characters at the end of `text`, from `position`, may be the beginning of a tag."""
    start = text.rfind("<", max(position, len(text) - _MAX_TAG_CHARACTERS + 1))
    if start < 0:
        return 0
    tail = text[start:].lower()
    return len(text) - start if any(name.startswith(tail) for name in _TAGS) else 0
