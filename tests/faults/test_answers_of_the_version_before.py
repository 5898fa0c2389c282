"""What commands that write print with `--json` has the fields, of the kinds, that the version before printed.

`written.json` holds the shapes of the last commit before the restructuring (3d5ad50); run as a program, this file records them anew from
the program that is installed: `python test_answers_of_the_version_before.py written.json`.
"""

import importlib.util
import json
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
RECORDED = HERE.parent / "data" / "store_before" / "written.json"
EXAMPLE = HERE.parents[1] / "data" / "example" / "conversations.jsonl"
FILES = {
    "queries.jsonl": '{"query": "Which desk did we order?", "user": "example", "session": "b", "id": "q1"}\n',
    "talk.txt": "user: I must not pay more than $480.\nassistant: SK1470 leaves on May 20, 2026 at 07:40 and costs $455.\nuser: Take it.\n",
    "research.json": json.dumps(
        {
            "topic": "garden.stone",
            "cache_key": "walls",
            "created_at": "2026-01-04T13:15:00Z",
            "expires_at": "2099-01-04T13:15:00Z",
            "quality_score": 0.9,
            "summary": "Two quarries deliver.",
        }
    ),
    "visit.json": json.dumps(
        {
            "visit_id": "visit_quarry1",
            "url": "https://quarry.example/offer",
            "visited_at": "2026-01-04T13:20:00Z",
            "page_type": "product",
            "extracted_data": {"price": "846 euros"},
            "extraction_quality": 0.9,
        }
    ),
}
COMMANDS = (
    ("ask", "Which chair did we order?", "--user", "example"),
    ("batch", "queries.jsonl"),
    ("compress", "talk.txt", "--target-tokens", "40"),
    ("research", "add", "research.json", "--user", "example"),
    ("visit", "add", "visit.json", "--user", "example"),
    ("memory", "consent", "on", "--user", "example"),
    ("memory", "set", "seat", "window", "--user", "example"),
    ("memory", "list", "--user", "example"),
    ("memory", "forget", "seat", "--user", "example"),
    ("memory", "erase", "--user", "example"),
    ("recipes", "list"),
    ("recipes", "test", "reflection"),
    ("recipes", "scores", "reflection"),
    ("calls", "--by", "recipe"),
    ("archive", "--older-than", "1d"),
    ("show", "example:turn_000001"),
    ("digest", "--user", "example"),
    ("lineage", "example:turn_000001"),
    ("restore", "example:turn_000001"),
    ("cold", "prune", "--older-than", "36000d"),
    ("index", "verify"),
    ("forget", "example", "--yes"),
)
"""In this order, in one store that begins with the shipped example; each with `--json`."""


_VERSION = re.compile(r"\b[0-9a-f]{12}\b")
"""A recipe's version, the hash of its text: where it is the name of a field, the name is data."""


def _of_the_store_before() -> ModuleType:
    """The module beside this one, which calls the program as a user does."""
    known = importlib.util.spec_from_file_location("store_before", HERE / "store_before.py")
    assert known and known.loader
    module = importlib.util.module_from_spec(known)
    known.loader.exec_module(module)
    return module


def shape(value: Any) -> Any:
    """The fields of a JSON value and their kinds; the entries of a list together."""
    if isinstance(value, dict):
        return {_VERSION.sub("a version", name): shape(one) for name, one in value.items()}
    if isinstance(value, list):
        entries = [shape(one) for one in value]
        together: dict[str, Any] = {}
        for one in entries:
            together |= one if isinstance(one, dict) else {"": one}
        return [together] if together else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def lacking(before: Any, now: Any, at: str = "") -> list[str]:
    """The paths of `before` that are missing in `now`, or of another kind there; more fields are no fault, nor is null."""
    if before in ("NoneType", []) or now in ("NoneType", []):
        return []
    if type(before) is not type(now) or (isinstance(before, str) and before != now):
        return [
            f"{at}: {now if isinstance(now, str) else type(now).__name__}: expected {before if isinstance(before, str) else 'its kind'}"
        ]
    if isinstance(before, list):
        return lacking(before[0], now[0], f"{at}[]")
    if not isinstance(before, dict):
        return []
    gone = [f"{at}.{name}: missing" for name in before if name not in now]
    return gone + [fault for name in before if name in now for fault in lacking(before[name], now[name], f"{at}.{name}")]


def shapes(place: Path) -> dict[str, dict[str, Any]]:
    """The exit code and the shape of the answer of each command."""
    program, root = _of_the_store_before(), place / "store"
    for name, text in FILES.items():
        (place / name).write_text(text)
    answers = {}
    for command in (("import", str(EXAMPLE)), *COMMANDS):
        code, out = program.pandora(root, *command, "--json")
        answers[" ".join(command[:2] if command[0] != "import" else command[:1])] = {"exit": code, "out": shape(json.loads(out))}
    return answers


def test_every_field_is_printed_still(tmp_path: Path) -> None:
    """With the exit code that the version before had; what CHANGELOG names as renamed is renamed here too."""
    text = RECORDED.read_text("utf-8").replace('"facts_preserved"', '"no_fact_changed"')
    before, now = json.loads(_VERSION.sub("a version", text)), shapes(tmp_path)
    faults = [f"{command}{fault}" for command in before for fault in lacking(before[command], now[command])]
    assert not faults, "\n".join(faults)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(sys.argv[1]).write_text(json.dumps(shapes(Path(folder)), indent=1, sort_keys=True) + "\n", encoding="utf-8")
