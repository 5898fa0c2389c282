"""What counts as still there, word for word, and the blind baselines. Independent of the code that is measured."""

import re
from collections.abc import Iterator
from pathlib import Path

import tiktoken

from pandora_dagster.runtime.token_counter import TokenCounter

_OTHER = re.compile(r"[^a-z0-9$%]+")
_STOPS = (
    "a an the of to in on at for and or is are was were be been do does did what when where who whom which how why has have had with by "
    "from as that this it its his her their he she they i you my your me we us our so if not no"
)
_STOP = frozenset(_STOPS.split())


def literal(text: object) -> str:
    """Lower-cased, every run of characters other than a-z, 0-9, $ and % one space."""
    return _OTHER.sub(" ", str(text).lower()).strip()


def stands(value: object, text: str) -> bool:
    """Whether a value stands in a text, compared on word borders."""
    return f" {literal(value)} " in f" {literal(text)} "


def content_words(text: str) -> list[str]:
    """Letters and digits, stop words dropped, light stemming."""
    return [_stem(w) for w in re.findall(r"[a-z0-9]+", text.lower()) if w not in _STOP]


def _stem(word: str) -> str:
    for suffix in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def share(kept: int, all_: int) -> float:
    """Per cent."""
    return 100.0 * kept / all_ if all_ else 0.0


class Tokens:
    """cl100k: counts, and cuts blindly for the baselines."""

    def __init__(self, vocabulary: Path) -> None:
        self.counter = TokenCounter(vocabulary)
        self._encoding: tiktoken.Encoding = self.counter._encoding  # pyright: ignore

    def count(self, text: str) -> int:
        return self.counter.count(text)

    def head_and_tail(self, text: str, target: int) -> str:
        codes = self._encoding.encode_ordinary(text)
        if len(codes) <= target:
            return text
        return self._encoding.decode(codes[: target // 2]) + self._encoding.decode(codes[-(target // 2) :])

    def head(self, text: str, target: int) -> str:
        return self._encoding.decode(self._encoding.encode_ordinary(text)[:target])

    def tail(self, text: str, target: int) -> str:
        return self._encoding.decode(self._encoding.encode_ordinary(text)[-target:])


def plain_values(value: object) -> Iterator[object]:
    """Leaves of a JSON value that are no booleans and have at least two characters."""
    if isinstance(value, dict):
        for item in value.values():
            yield from plain_values(item)
    elif isinstance(value, list):
        for item in value:
            yield from plain_values(item)
    elif not isinstance(value, bool) and value is not None and len(str(value)) >= 2:
        yield value
