"""The lines of a condensed transcript beside its tables: objects without a row, single values, talk under its roles.

Knows drafts that were picked; knows nothing of weights or budgets.
"""

from collections.abc import Sequence

from pandora_dagster.compression.condense.transcript_units import Draft
from pandora_dagster.compression.read.json_rows import DATE
from pandora_dagster.compression.read.packed_text import ALSO_IN, ALSO_SEEN
from pandora_dagster.compression.read.transcript_messages import ANSWERS
from pandora_dagster.compression.words.normalization import KeyIndex, key, standing_in


def item_lines(items: Sequence[Draft], standing: str) -> list[str]:
    """Objects without a row, under the record they stand in; the first line of a name, and each with other members, tells what these
    are."""
    there = standing_in((draft.text for draft in items), standing)
    absent = [draft for draft in items if draft.text not in there]
    grouped: dict[tuple[str, str, str], dict[str, None]] = {}
    for draft in absent:
        longer = (d.layout for d in absent if d.label == draft.label and d.layout.startswith(draft.layout.removesuffix("]") + ","))
        grouped.setdefault((draft.label, draft.subject, max(longer, key=len, default=draft.layout)), {})[draft.text] = None
    lines: list[str] = []
    told: dict[str, str] = {}
    for (label, subject, form), found in grouped.items():
        form_here = "" if told.get(label) == form else form
        told[label] = form
        lines.append(f"{item_head(label, form_here, subject)}{'; '.join(found)}")
    return lines


def item_head(label: str, form: str, subject: str) -> str:
    """What stands before the objects of one name and one record; `form` are the names of their members."""
    return f"{ALSO_IN}{label}{form}{f' of {subject}' if subject else ''}: "


def loose_line(values: Sequence[Draft], standing: KeyIndex, room: int) -> str:
    """Single values: identities under their name (and date), all others under the identity they belong to. Of identities without
    a date stand as many as `room` characters hold: a long list of them tells nothing."""
    grouped: dict[str, dict[str, dict[str, None]]] = {}
    subjects = {draft.subject for draft in values if not standing.has(key(draft.text))}
    for draft in values:
        if not draft.subject and draft.text in subjects:
            continue
        has_date = bool(DATE.fullmatch(draft.subject.rsplit(" ", 1)[-1]))
        if not (has_date or draft.subject):
            room -= len(draft.text) + 1
        if (has_date or not standing.has(key(draft.text))) and (room >= 0 or has_date or draft.subject):
            grouped.setdefault(draft.subject, {}).setdefault(draft.label, {})[draft.text] = None
    parts: list[str] = []
    for subject, labels in grouped.items():
        named = [f"{label} {' '.join(found)}" for label, found in labels.items()]
        parts += [f"{subject}: {', '.join(named)}"] if subject else named
    return ALSO_SEEN + "; ".join(parts) if parts else ""


def talk_lines(drafts: Sequence[Draft]) -> list[str]:
    """Sentences under their role, neighbours of one message on one line; items are set off by a semicolon. What a call gave back
    in words stands behind the call."""
    lines: list[str] = []
    current: tuple[int, str] | None = None
    called: dict[int, int] = {}
    for draft in sorted(drafts, key=lambda d: (d.position, d.kind == "call")):
        call = called.pop(draft.position - 1, called.pop(draft.position, None)) if draft.label.split(" ")[0] == "tool" else None
        if draft.kind != "sentence":
            lines.append(draft.text)
            current = None
            if draft.kind == "call":
                called = {draft.position: len(lines) - 1}
        elif call is not None:
            lines[call] += ANSWERS + draft.text
            current = (draft.position, draft.label) if call == len(lines) - 1 else None
        elif (draft.position, draft.label) == current:
            is_list = draft.is_item and lines[-1][-1] not in ".!?:;"
            lines[-1] += ("; " if is_list else " ") + draft.text
        else:
            lines.append(f"{draft.label}: {draft.text}" if draft.label else draft.text)
            current = (draft.position, draft.label)
    return lines
