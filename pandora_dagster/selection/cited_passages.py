"""What a section says under a citation, and where that stands in the source it names. Knows words and lines; knows no documents. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence

from pandora_dagster.text.citations import REFERENCES_TITLE, cited_labels
from pandora_dagster.text.passages import passages

_PIECE = re.compile(r"\s*(?<!\\)\|\s*|;\s+|(?<=[.!?])\s+(?=[A-Z(\"'\d-])|\n")
_LABELS = re.compile(r"\s*\[\d{1,4}\]")
_OPENING = re.compile(r"^(?:[-*>#]+\s+|\d+\.\s+)?(?:\(\d{4}-\d\d-\d\d\)\s+)?")
_WORD = re.compile(r"[^\W_]{3,}|\d+")
_FEWEST_LETTERS, _FEWEST_WORDS, _SHARE, _MOST = 12, 3, 0.6, 16
Span = tuple[int, int]


def claims_of(body: str, labels: Iterable[str]) -> tuple[str, ...]:
    """The sentences and cells that stand in the lines which cite one of `labels`; the list of references says nothing itself."""
    wanted = set(labels)
    lines = (line for line in body.split(f"### {REFERENCES_TITLE}")[0].split("\n") if wanted & set(cited_labels(f" {line}")))
    found = (_OPENING.sub("", _LABELS.sub("", piece).strip()) for line in lines for piece in _PIECE.split(line) if piece)
    return tuple(dict.fromkeys(piece.replace("\\|", "|") for piece in found if len(piece) >= _FEWEST_LETTERS))


def cited_spans(claims: Sequence[str], source: str) -> tuple[Span, ...]:
    """Characters of `source` that the claims come from: the words themselves, else the one passage that has most of them."""
    if not claims:
        return ()
    parts = [(span, frozenset(_words(source[slice(*span)]))) for span in passages(source)]
    found = {span for claim in claims if (span := _verbatim(claim, source) or _likest(claim, parts))}
    return tuple(sorted(found))[:_MOST]


def _verbatim(claim: str, source: str) -> Span | None:
    pattern = r"\s+".join(re.escape(word) for word in claim.split())
    found = re.search(pattern, source) if pattern else None
    return found.span() if found else None


def _likest(claim: str, parts: Sequence[tuple[Span, frozenset[str]]]) -> Span | None:
    """The passage with most of the claim's words; None where none has enough of them, or two have the same."""
    wanted = frozenset(_words(claim))
    if len(wanted) < _FEWEST_WORDS:
        return None
    shares = sorted(((len(wanted & words), span) for span, words in parts), reverse=True)[:2]
    if not shares or shares[0][0] < _SHARE * len(wanted) or (len(shares) > 1 and shares[0][0] == shares[1][0]):
        return None
    return shares[0][1]


def _words(text: str) -> Iterator[str]:
    return (word.group().casefold() for word in _WORD.finditer(text))
