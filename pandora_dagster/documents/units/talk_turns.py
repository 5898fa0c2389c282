"""Division of a talk into the turns of its speakers."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.documents.units.source_lines import Line

_ROLE = re.compile(
    r"(?:[-*] )?(\*\*|\[)?((?:user|assistant|system|tool|customer|agent|human|ai)(?: [\w.-]{1,80})?)(?:\*\*|\])? ?:(?:\*\*)?(?= |$)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(\*\*)?([^\W\d_][\w .'’-]{0,40}?)(?:\*\*)? ?:(?:\*\*)? +(?=\S)")
_LEAST_SHARE = 0.6
"""Share of the paragraphs that begin with a label that comes back, from which labels are speakers."""
_FENCES = ("```", "~~~")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker says; `label` is "" for what comes before the first one."""

    label: str
    start: int
    """Where the label begins in the source."""
    lines: list[Line]


def turns(lines: Sequence[Line]) -> list[Turn]:
    """The turns of a talk, by roles that everybody knows or labels that come back; empty where the text is no talk."""
    labels = [(_ROLE.match(line.text), _LABEL.match(line.text)) for line in lines]
    known = _speakers(lines, [label[2] for _, label in labels if label])
    if sum(role is not None for role, _ in labels) < 2 and not known:
        return []
    found = [Turn("", lines[0].start, [])]
    fenced = False
    for line, (role, label) in zip(lines, labels, strict=True):
        if line.text.lstrip().startswith(_FENCES):
            fenced = not fenced
        match = role or (label if label and label[2] in known else None)
        if match and not fenced:
            found.append(Turn(match[2], line.start, [line.after(match.end())]))
        else:
            found[-1].lines.append(line)
    return [turn for turn in found if turn.label or not all(line.is_blank for line in turn.lines)]


def _speakers(lines: Sequence[Line], labels: Sequence[str]) -> frozenset[str]:
    """Labels that come back and begin most paragraphs."""
    counts = Counter(labels)
    known = frozenset(label for label, count in counts.items() if count > 1)
    starts = sum(not line.is_blank and (not i or lines[i - 1].is_blank) for i, line in enumerate(lines))
    enough = _LEAST_SHARE * max(1, min(starts, sum(not line.is_blank for line in lines)))
    return known if len(known) > 1 and sum(counts[label] for label in known) >= enough else frozenset()
