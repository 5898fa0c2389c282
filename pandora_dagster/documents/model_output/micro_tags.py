"""002's response protocol (section 2): `<thinking>`, `<draft>` and `<dispatch>` before and among plain text, read piece by piece.

| tag | what stands in it | who gets it |
|---|---|---|
| `<thinking>` | how the model goes about it | the call's record |
| `<draft>` | a text made for the person: an invitation, a statement | the person, and the caller |
| `<dispatch>` | one action, as a word or a JSON object | the caller |

A tag of the protocol never reaches the person. A block counts where it is whole: what follows an opening tag without its closing one, or
holds no action, is text like any other. A block holds whatever stands up to its closing tag. Other tags are text.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

LONGEST_DISPATCH = 4_000
"""Characters; what goes on beyond them is no action, and is not kept from the person any longer."""
_TAG = re.compile(r"<(/?)(thinking|draft|dispatch)>", re.IGNORECASE | re.ASCII)
_NAMES = ("<thinking>", "</thinking>", "<draft>", "</draft>", "<dispatch>", "</dispatch>")
_LONGEST_TAG = max(map(len, _NAMES))
_ACTION = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_CLOSING = {name: re.compile(f"</{name}>", re.IGNORECASE | re.ASCII) for name in ("thinking", "dispatch")}


@dataclass(frozen=True, slots=True)
class TaggedAnswer:
    """An answer taken apart. `text` is the person's, drafts included; `draft` the first whole one; "" and None where there is none."""

    text: str
    thinking: str = ""
    draft: str = ""
    dispatch: Mapping[str, Any] | None = None

    def as_parsed(self) -> dict[str, Any]:
        """As gates and callers read it."""
        return {"text": self.text, "thinking": self.thinking, "draft": self.draft, "dispatch": self.dispatch}


def read_tagged(text: str) -> TaggedAnswer:
    """A whole answer."""
    reading = TaggedAnswerReader()
    told = reading.feed(text)
    return reading.result(told + reading.finish())


@dataclass(slots=True)
class TaggedAnswerReader:
    """One answer as it comes: `take` gives what of it may be told now, `rest` what was still held at its end."""

    thoughts: list[str] = field(default_factory=list[str])
    drafts: list[str] = field(default_factory=list[str])
    actions: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    _held: str = ""
    _at: int = 0
    """How far `_held` is read."""
    _inside: str = ""
    """The block that begins there: thinking, dispatch, or none."""
    _searched: int = 0
    """How far the block was searched for its end."""
    _drafting: list[str] | None = None
    _unclosed: set[str] = field(default_factory=set[str])
    """Tags of which it is known, at the end, that they are not closed any more."""

    def feed(self, piece: str) -> str:
        """What may be told to the person once `piece` has come."""
        self._held += piece
        return self._read(ended=False)

    def finish(self) -> str:
        """What is left for the person when nothing more comes."""
        return self._read(ended=True)

    def result(self, text: str) -> TaggedAnswer:
        """The whole, where `text` is all that was told."""
        dispatch = self.actions[0] if self.actions else None
        return TaggedAnswer(text.strip(), "\n\n".join(self.thoughts), next((d for d in self.drafts if d), ""), dispatch)

    def _read(self, *, ended: bool) -> str:
        told: list[str] = []
        while not self._inside or self._close_block(ended=ended):
            tag = _TAG.search(self._held, self._at)
            end = tag.start() if tag else len(self._held) - (0 if ended else _partial_tag_length(self._held, self._at))
            told.append(self._emit(self._held[self._at : end]))
            self._at = tag.end() if tag else end
            if tag is None:
                break
            self._handle_tag(tag[2].lower(), opens=not tag[1])
        self._held, self._searched, self._at = self._held[self._at :], self._searched - self._at, 0
        return "".join(told)

    def _handle_tag(self, name: str, *, opens: bool) -> None:
        """A tag outside of thinking and dispatch. One that closes nothing, or will never be closed, is passed over."""
        if name == "draft":
            if not opens and self._drafting is not None:
                self.drafts.append("".join(self._drafting).strip())
            self._drafting = [] if opens else None
        elif opens and name not in self._unclosed:
            self._inside, self._searched = name, self._at

    def _close_block(self, *, ended: bool) -> bool:
        """Leaves the block that is open where that can be told; False where more has to come."""
        name, length = self._inside, len(self._held) - self._at
        longest = LONGEST_DISPATCH if name == "dispatch" else length
        close = _CLOSING[name].search(self._held, self._searched, self._at + longest + _LONGEST_TAG)
        if close is None and not ended and length <= longest + _LONGEST_TAG:
            self._searched = max(self._at, len(self._held) - _LONGEST_TAG)
            return False
        if close is None and name == "thinking":
            self._unclosed.add(name)
        if close and close.start() - self._at <= longest and self._record_block(name, self._held[self._at : close.start()].strip()):
            self._at = close.end()
        self._inside = ""
        return True

    def _record_block(self, name: str, content: str) -> bool:
        """Whether the block is whole and taken in."""
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
    """What a dispatch asks for: a JSON object as it stands, a word as `{"action": word}`; None for anything else."""
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
