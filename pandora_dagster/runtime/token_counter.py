"""Counting of cl100k tokens (specification 000, section 21.1), by the vocabulary file that the caller names."""

from binascii import a2b_base64
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import tiktoken

from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.errors import ConfigurationError

VOCABULARY_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_SPLIT_PATTERN = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
_MAX_CACHED_TEXTS = 4_096
_MIN_CACHED_CHARACTERS = 24


@dataclass(frozen=True, slots=True)
class TokenBreakdown:
    """Tokens of a document: `total`, and per section name (`section_0` ...) for context.md."""

    total: int
    by_section: dict[str, int]


class TokenCounter:
    """Counts tokens, with a cache of recently counted texts."""

    def __init__(self, vocabulary: Path) -> None:
        self._vocabulary = vocabulary
        self._encoding = _encoding(vocabulary)
        self._cache: OrderedDict[tuple[int, int], int] = OrderedDict()

    def __reduce__(self) -> tuple[type["TokenCounter"], tuple[Path]]:
        """Pickle only the path: another process reads the vocabulary itself."""
        return TokenCounter, (self._vocabulary,)

    def count(self, text: str) -> int:
        """Tokens in `text`. Special tokens count as the plain text they are."""
        if len(text) < _MIN_CACHED_CHARACTERS:
            return len(self._encoding.encode_ordinary(text))
        key = (hash(text), len(text))
        tokens = self._cache.get(key)
        if tokens is None:
            tokens = len(self._encoding.encode_ordinary(text))
            self._cache[key] = tokens
            if len(self._cache) > _MAX_CACHED_TEXTS:
                self._cache.popitem(last=False)
        return tokens

    def count_document(self, text: str) -> TokenBreakdown:
        """Tokens of context.md per section; unchanged sections are read from the cache."""
        parts = {f"section_{s.number}": self.count(s.text) for s in ContextDocument.parse(text).sections}
        return TokenBreakdown(self.count(text), parts)


def _encoding(vocabulary: Path) -> tiktoken.Encoding:
    try:
        data = vocabulary.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{vocabulary}: cannot read the token vocabulary: {error.strerror}") from error
    if sha256(data).hexdigest() != VOCABULARY_SHA256:
        raise ConfigurationError(f"{vocabulary}: not the cl100k vocabulary (sha256 differs)")
    fields = data.split()  # token and rank in turn
    ranks = dict(zip(map(a2b_base64, fields[::2]), map(int, fields[1::2]), strict=True))
    return tiktoken.Encoding(name="cl100k_base", pat_str=_SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens={})
