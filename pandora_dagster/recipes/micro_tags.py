"""Incremental parser of 002's response protocol (section 2): `<thinking>`, `<draft>` and `<dispatch>` among plain text.

| tag | content | receiver |
|---|---|---|
| `<thinking>` | the model's reasoning | the call's record |
| `<draft>` | a text for the user: an invitation, a statement | the user, and the caller |
| `<dispatch>` | one action, as a word or a JSON object | the caller |

A tag of the protocol never reaches the user. A block counts where it is complete: an opening tag without its closing one, and a dispatch
without an action, are plain text. A block ends at its closing tag. Other tags are text.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

LONGEST_DISPATCH = 4_000
"""Characters; a longer dispatch is not an action and is released as text."""
_TAG = re.compile(r"<(/?)(thinking|draft|dispatch)>", re.IGNORECASE | re.ASCII)
_NAMES = ("<thinking>", "</thinking>", "<draft>", "</draft>", "<dispatch>", "</dispatch>")
_LONGEST_TAG = max(map(len, _NAMES))
_ACTION = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_CLOSING = {name: re.compile(f"</{name}>", re.IGNORECASE | re.ASCII) for name in ("thinking", "dispatch")}


@dataclass(frozen=True, slots=True)
class TaggedAnswer:
    """A parsed answer. `text`: for the user, drafts included; `draft`: the first complete one, or ""; `dispatch`: None without one."""

    text: str
    thinking: str = ""
    draft: str = ""
    dispatch: Mapping[str, Any] | None = None

    def as_parsed(self) -> dict[str, Any]:
        """The dict that gates and callers read."""
        return {"text": self.text, "thinking": self.thinking, "draft": self.draft, "dispatch": self.dispatch}


def read_tagged(text: str) -> TaggedAnswer:
    """Parse a whole answer."""
    reading = TaggedAnswerReader()
    return reading.result(reading.feed(text) + reading.finish())


@dataclass(slots=True)
class TaggedAnswerReader:
    """Reads one answer incrementally: `feed` returns the text that can be shown now, `finish` the text that was still buffered."""

    thoughts: list[str] = field(default_factory=list[str])
    drafts: list[str] = field(default_factory=list[str])
    actions: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    _buffer: str = ""
    _at: int = 0
    """Position in `_buffer` up to which it is read."""
    _inside: str = ""
    """The open block at this position: thinking, dispatch, or ""."""
    _searched: int = 0
    """Position up to which the block was searched for its end."""
    _drafting: list[str] | None = None
    _unclosed: set[str] = field(default_factory=set[str])
    """Tags without a closing one, known at the end of the answer."""

    def feed(self, piece: str) -> str:
        """Add `piece`; returns the text that can be shown to the user now."""
        self._buffer += piece
        return self._read(ended=False)

    def finish(self) -> str:
        """End the answer; returns the remaining text for the user."""
        return self._read(ended=True)

    def result(self, text: str) -> TaggedAnswer:
        """The parsed answer, where `text` is all that was shown."""
        dispatch = self.actions[0] if self.actions else None
        return TaggedAnswer(text.strip(), "\n\n".join(self.thoughts), next((d for d in self.drafts if d), ""), dispatch)

    def _read(self, *, ended: bool) -> str:
        shown: list[str] = []
        while not self._inside or self._close_block(ended=ended):
            tag = _TAG.search(self._buffer, self._at)
            end = tag.start() if tag else len(self._buffer) - (0 if ended else _partial_tag_length(self._buffer, self._at))
            shown.append(self._emit(self._buffer[self._at : end]))
            self._at = tag.end() if tag else end
            if tag is None:
                break
            self._handle_tag(tag[2].lower(), opens=not tag[1])
        self._buffer, self._searched, self._at = self._buffer[self._at :], self._searched - self._at, 0
        return "".join(shown)

    def _handle_tag(self, name: str, *, opens: bool) -> None:
        """Handle a tag outside of thinking and dispatch. A tag that closes nothing, or is never closed, is ignored."""
        if name == "draft":
            if not opens and self._drafting is not None:
                self.drafts.append("".join(self._drafting).strip())
            self._drafting = [] if opens else None
        elif opens and name not in self._unclosed:
            self._inside, self._searched = name, self._at

    def _close_block(self, *, ended: bool) -> bool:
        """Close the open block if its end is known; False where more text is needed."""
        name, length = self._inside, len(self._buffer) - self._at
        longest = LONGEST_DISPATCH if name == "dispatch" else length
        close = _CLOSING[name].search(self._buffer, self._searched, self._at + longest + _LONGEST_TAG)
        if close is None and not ended and length <= longest + _LONGEST_TAG:
            self._searched = max(self._at, len(self._buffer) - _LONGEST_TAG)
            return False
        if close is None and name == "thinking":
            self._unclosed.add(name)
        if close and close.start() - self._at <= longest and self._record_block(name, self._buffer[self._at : close.start()].strip()):
            self._at = close.end()
        self._inside = ""
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
        if self._drafting is not None:
            self._drafting.append(text)
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


def _partial_tag_length(text: str, at: int) -> int:
    """How many characters at the end of `text`, from `at`, may be the beginning of a tag."""
    start = text.rfind("<", max(at, len(text) - _LONGEST_TAG + 1))
    if start < 0:
        return 0
    begun = text[start:].lower()
    return len(text) - start if any(name.startswith(begun) for name in _NAMES) else 0
