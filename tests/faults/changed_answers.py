"""What the version before answered about its store, in the form of today: answers that are meant to differ, and what is compared of each.

Every difference is one that CHANGELOG lists. `expected.json` itself is never edited.
"""

import json
import re
from typing import Any

from tests.faults.store_before import DATA, RECIPES, Answer

_ANSWERS = DATA / "expected.json"
_RENAMED = {
    '"facts_preserved"': '"no_fact_changed"',
    "Write the answer for the person, each claim with its source": "Write the answer for the user, each claim with its source",
}
"""Names and wordings in answers that CHANGELOG lists as changed since."""
_REWORDED = {
    "pandora recipes show retrieval --json": ("aa4861f626a8", "e1100ac2c4ca"),
    "pandora recipes show synthesizer_chat --json": ("3a651255f613", "de06d302fe9d"),
}
"""Recipes whose wording CHANGELOG lists as changed: the hash of the text before, and of the text now."""


CHANGED: dict[str, Answer] = {"pandora index verify --json": {"exit": 0, "out": {"differences": []}}}
"""Answers that are meant to differ: the turn index has another schema and is rebuilt when it is opened, so that nothing differs in it."""
_DAY = re.compile(r"^\d{1,2} [A-Z][a-z]+ \d{4}\n")


_ANSWERED_BY = {
    "b806e14b2a66": {"extractive": 5},
    "d2bafb9b8442": {"extractive": 19},
    "7dfc5b24d126": {"extractive": 4},
    "aa4861f626a8": {"extractive": 21, "person": 1},
    "3a651255f613": {"extractive": 22},
}
"""Version of a recipe -> what answered its calls, and how often."""


def _expected() -> dict[str, Answer]:
    """What the version before answered, with the names of today. The file itself is never edited."""
    text = _ANSWERS.read_text("utf-8") if _ANSWERS.is_file() else "{}"
    for old, new in _RENAMED.items():
        text = text.replace(old, new)
    answers = json.loads(text)
    hashes = {command: json.loads(json.dumps(answers[command]).replace(*pair)) for command, pair in _REWORDED.items() if answers}
    answers |= hashes
    answers |= {command: _with_answerers(answer) for command, answer in answers.items() if command.startswith("pandora recipes scores ")}
    if health := answers.get("pandora doctor --json"):  # compares the rows of turns since
        place = health["out"].index({"ok": True, "part": "indexes"}) + 1
        health["out"].insert(place, {"ok": True, "part": "index of turns"})
        health["out"].append({"ok": True, "part": "runs"})  # its live turns have no run: the store has no folder of Dagster
    return answers | {command: _migrated(answer) for command, answer in answers.items() if _MIGRATED.match(command)}


_MIGRATED = re.compile(r"pandora (?:show|interventions show|recipes show) ")


def _migrated(value: Any) -> Any:
    """What is shown, as CHANGELOG lists it since: a manifest of format 2 in format 3, which adds the metadata of a client (none in an older
    turn); a call record without `thinking`, a recipe's compression without `model_layer` and `tool_errors`, which had no effect."""
    if isinstance(value, list):
        return [_migrated(held) for held in value]
    if not isinstance(value, dict):
        return value
    removed = {"thinking": "", **({"model_layer": "NERVES"} if "preserve" in value else {})}
    fields = {name: _migrated(held) for name, held in value.items() if name not in removed or held != removed[name]}
    if "preserve" in fields:
        fields["preserve"] = [name for name in fields["preserve"] if name != "tool_errors"]
    return {**fields, "format_version": 3, "metadata": {}, "tool_run": None} if fields.get("format_version") == 2 else fields


_ADDED = {"until": "", "key": "", "input_images": False, "unfinished_calls": []}
"""Fields that CHANGELOG lists as added since, with the value that they have in an older store."""
_SESSIONS_OF_ITEM = re.compile(r"  \[session [^\]]+\]$")


def _without_added(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_added(held) for held in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_added(held) for name, held in value.items() if name not in _ADDED or held != _ADDED[name]}


def _without_sessions(lines: list[str]) -> list[str]:
    """A digest's lines without the sessions that support each item, and with its state of affairs on the line of the heading, as it was."""
    text = "\n".join(_SESSIONS_OF_ITEM.sub("", line) for line in lines)
    return text.replace("So far:\n- ", "So far: ").split("\n")


def comparable(command: str, answer: Answer) -> Answer:
    """What has to be the same.

    Of a digest: its items; sessions behind them were added. Of memory, turns and recipes: all but the fields added since; the calibration
    of a recipe is that of its scores. Of a search: which messages are found, with their texts; scores, order, and the day above the first
    message of a day are the ranking's.
    Of the list of recipes: mode and total of those that there were.
    """
    out = answer["out"]
    if command.startswith("pandora digest "):
        return answer | {"out": _without_sessions(out)}
    if command.startswith(("pandora memory list ", "pandora show ")):
        return answer | {"out": _without_added(out)}
    if command.startswith("pandora recipes show ") and isinstance(out, dict):
        return answer | {"out": _without_added({name: held for name, held in out.items() if name != "calibration"})}
    if command.startswith("pandora search ") and isinstance(out, dict) and "results" in out:
        found = [(hit["turn_id"], hit["message_ids"], hit["created_at"], _DAY.sub("", hit["text"])) for hit in out["results"]]
        return answer | {"out": sorted(found)}
    if command == f"pandora {' '.join(RECIPES)}":
        old = {row["recipe"] for row in EXPECTED[command]["out"]}
        return answer | {"out": {row["recipe"]: (row["mode"], row["total"]) for row in out if row["recipe"] in old}}
    return answer


def _with_answerers(value: Any) -> Any:
    """Scores with what answered by version, which was added since."""
    if isinstance(value, list):
        return [_with_answerers(held) for held in value]
    if not isinstance(value, dict):
        return value
    added = {version: {"answered_by": by} for version, by in _ANSWERED_BY.items()}
    return {name: {**_with_answerers(held), **added[name]} if name in added else _with_answerers(held) for name, held in value.items()}


EXPECTED = _expected()
