"""Sentences without what earlier ones say word for word: `Order 7 costs $9.50 …`.

Knows runs of words; a run that holds a value, a negation or a binding word stays. Linear in the text.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from pandora_dagster.compression.facts.fact_statements import FORCE
from pandora_dagster.compression.facts.value_finder import find_values
from pandora_dagster.compression.words.word_classes import is_negation

_WORD = re.compile(r"\S+")
_RUN = 8
"""Words that must stand together in an earlier sentence; shorter runs are how a language speaks."""
_BEFORE_VALUE = 3
"""Words that stay before a value in a run."""
_LEFT = 2
"""Words of its own that a sentence needs to be worth shortening."""
_GAP = "…"


def shortened(texts: Sequence[str]) -> Iterator[str]:
    """For each text the same without its repeated runs, "" where it has none or hardly anything else."""
    seen: set[int] = set()
    for text in texts:
        found = list(_WORD.finditer(text))
        runs = [hash(tuple(w.group() for w in found[at : at + _RUN])) for at in range(len(found) - _RUN + 1)]
        repeated = {at + n for at, run in enumerate(runs) if run in seen for n in range(_RUN)}
        seen.update(runs)
        yield _without(text, found, repeated) if 0 < len(repeated) < len(found) else ""


def _without(text: str, found: Sequence[re.Match[str]], repeated: Collection[int]) -> str:
    values = list(find_values(text, is_redacted=True))
    kept: list[str] = []
    at = 0
    while at < len(found):
        end = at
        while end in repeated:
            end += 1
        span = (found[at].start(), found[end - 1].end()) if end > at else (0, 0)
        held = next((v for v in values if v.start < span[1] and span[0] < v.end), None)
        if held:
            end = max(at, next(n for n in range(at, end) if found[n].end() > held.start) - _BEFORE_VALUE)
            span = (found[at].start(), found[end - 1].end()) if end > at else (0, 0)
        if end - at >= _RUN and not FORCE.form(text).search(text, *span) and not any(is_negation(w.group()) for w in found[at:end]):
            kept.append(_GAP)
            at = end
        else:
            stop = max(end, at + 1)
            kept += [w.group() for w in found[at:stop]]
            at = stop
    own = sum(word != _GAP for word in kept)
    return " ".join(kept) if _LEFT <= own < len(found) else ""
