"""The store that the version before made, and every command that reads it, by the entry point that the package declares.

Nothing else of the repository is imported: `make_store.py` and `test_answers_of_the_version_before.py` load this file by its path.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = next((place for place in (HERE.parent / "data" / "store_before", HERE) if (place / "store.tar.xz").is_file()), HERE)
USERS = ("ann", "ben", "example", "gone", "nobody")
SEARCHES = (
    ("ann", "What did the sandstone cost?"),
    ("ann", "Q-3311"),
    ("ann", "claim of the missing tonnes"),
    ("ann", "what is my sister called"),
    ("ann", "lime dust allergy"),
    ("ben", "Zug nach Bergen"),
    ("ben", "the booking number of the train"),
    ("example", "Which chair did we order?"),
    ("example", "ORD-77120"),
    ("gone", "locker"),
)
SEARCH_OPTIONS = (
    ("--session", "wall"),
    ("--since", "2026-07-01"),
    ("--until", "2026-07-01"),
    ("--state", "archived"),
    ("--intent", "recall"),
    ("--budget-tokens", "60"),
)
LINEAGES = ("ann:turn_000001", "ann:turn_000002", "ann:turn_000006", "ben:turn_000001", "ben:turn_000003", "example:turn_000005")
SHOWN = (
    *(f"ann:turn_{n:06d}" for n in (1, 2, 3, 6, 7, 9, 15, 16, 17, 19, 21)),
    *(f"ben:turn_{n:06d}" for n in (1, 2, 3, 8, 9, 10)),
    *(f"example:turn_{n:06d}" for n in (5, 8)),
)
"""One turn and more of each kind: imported, live, batch, restored, pinned, pruned, halted and answered, abandoned, cut off."""
RECIPES = ("recipes", "list", "--json")
Answer = dict[str, Any]


def unpacked(archive: Path, place: Path) -> Path:
    """The store, as the version before left it."""
    root = place / "store"
    with tarfile.open(archive) as tar:
        tar.extractall(root, filter="data")
    return root


@contextlib.contextmanager
def _surroundings(root: Path) -> Iterator[None]:
    """Nothing of the caller's own settings; put back afterwards."""
    kept, folder, argv = dict(os.environ), Path.cwd(), sys.argv
    for name in [name for name in os.environ if name.startswith(("PANDORA_", "DAGSTER_"))]:
        del os.environ[name]
    os.environ |= {"PANDORA_ROOT": str(root), "COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    os.chdir(root.parent)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)
        os.chdir(folder)
        sys.argv = argv


def pandora(root: Path, *arguments: str, text: str = "") -> tuple[int, str]:
    """`pandora ARGUMENTS` inside this process, by the program's declared entry point: its exit code and stdout."""
    (program,) = entry_points(group="console_scripts", name="pandora")
    main: Callable[[], None] = program.load()
    out, code, stdin = io.StringIO(), 0, sys.stdin
    with _surroundings(root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        sys.argv, sys.stdin = ["pandora", *arguments], io.StringIO(text)
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            sys.stdin = stdin
    return code, out.getvalue()


_AGE = re.compile(r"\b\d+(?:\.\d+)? (?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)(?: ago)?\b")
_VOLATILE = {"age", "age_days", "age_hours", "age_s", "freshness", "duration_s", "took_s", "seconds", "now", "checked_at", "pid"}


def _steady(value: Any, root: Path) -> Any:
    """Without what is of this machine or this moment: the store's place, ages."""
    if isinstance(value, dict):
        return {name: "<moving>" if name in _VOLATILE else _steady(held, root) for name, held in value.items()}
    if isinstance(value, list):
        return [_steady(held, root) for held in value]
    if not isinstance(value, str):
        return value
    text = value.replace(str(root), "<root>").replace(str(root.parent), "<folder>")
    return text if len(text) <= 240 else f"{text[:120]}... {len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def read(root: Path, arguments: tuple[str, ...]) -> Answer:
    """What one command answers, as it is compared: JSON as JSON, lines as lines."""
    code, out = pandora(root, *arguments)
    try:
        held: Any = _steady(json.loads(out), root)
    except ValueError:
        held = [_AGE.sub("<age>", str(_steady(line.rstrip(), root))) for line in out.splitlines()]
    if arguments[0] == "doctor":
        held = _health(held)
    return {"exit": code, "out": held}


def _health(held: Any) -> Any:
    """Parts and whether they work: their sentences tell disks and processors."""
    parts = held.get("parts", held) if isinstance(held, dict) else held
    if isinstance(parts, list) and all(isinstance(part, dict) for part in parts):
        return [{name: part[name] for name in ("name", "part", "ok", "state", "works") if name in part} for part in parts]
    return held


def export(root: Path, user: str) -> Answer:
    """A user's conversations: the hash of each line, and how many messages it has."""
    code, out = pandora(root, "export", "--user", user)
    lines = [json.loads(line) for line in out.splitlines()]
    hashed = {
        str(line["id"]): {
            "messages": len(line["messages"]),
            "sha256": hashlib.sha256(json.dumps(line, sort_keys=True, ensure_ascii=False).encode()).hexdigest(),
        }
        for line in lines
    }
    return {"exit": code, "out": hashed}


def turn_ids(root: Path) -> list[str]:
    return [f"{path.parent.parent.name}:{path.name}" for path in sorted(root.glob("users/*/turns/turn_*")) if path.is_dir()]


def _plain_commands(root: Path) -> Iterable[tuple[str, ...]]:
    """Every command that reads, over everything that the store holds."""
    yield ("turns", "--json")
    for user in USERS:
        yield ("turns", "--user", user, "--json")
        yield ("memory", "list", "--user", user, "--json")
        yield ("memory", "facts", "--user", user, "--json")
        yield ("memory", "consent", "show", "--user", user, "--json")
        yield ("digest", "--user", user)
        yield ("forget", user, "--dry-run", "--json")
    for user in ("ann", "ben"):
        yield ("research", "list", "--user", user, "--json")
        yield ("visit", "list", "--user", user, "--json")
        yield ("calls", "--by", "recipe", "--user", user, "--json")
    for session in ("wall", "shed", "family"):
        yield ("memory", "facts", "--user", "ann", "--session", session, "--json")
        yield ("digest", "--user", "ann", "--session", session)
    for state in ("open", "halted", "clarify", "saved", "archived", "abandoned"):
        yield ("turns", "--state", state, "--json")
    for turn in SHOWN:
        yield ("show", turn, "--json")
    for user, query in SEARCHES:
        yield ("search", query, "--user", user, "--json")
    for options in SEARCH_OPTIONS:
        yield ("search", "sandstone for the wall", "--user", "ann", *options, "--json")
    yield ("search", "sandstone for the wall", "--user", "ann")
    for by in ("layer", "recipe", "day", "phase", "model", "user", "turn"):
        yield ("calls", "--by", by, "--json")
    yield ("research", "show", "garden.sandstone", "--user", "ann", "--json")
    yield ("visit", "show", "visit_quarry1", "--user", "ann", "--json")
    for turn in LINEAGES:
        yield ("lineage", turn, "--json")
    for document in ("ann:digest", "ben:digest", "ann:session/wall", "ann:turn_000006/context.md#5", "ann:turn_000006/summary"):
        yield ("lineage", document, "--depth", "1", "--json")
    yield ("lineage", "--verify", "--json")
    yield ("archive", "--date", "2026-09-09", "--dry-run", "--json")
    yield ("cold", "prune", "--older-than", "36000d", "--dry-run", "--json")
    yield ("index", "verify", "--json")
    yield ("doctor", "--json")
    yield ("interventions", "list", "--json")
    yield ("interventions", "list", "--all", "--json")
    for path in sorted(root.glob("interventions/int_*.json")):
        yield ("interventions", "show", path.stem, "--json")
    for recipe in ("reflection", "retrieval", "synthesizer_chat"):
        yield ("recipes", "history", recipe, "--json")
        yield ("recipes", "show", recipe, "--json")
        yield ("recipes", "scores", recipe, "--json")
        yield ("recipes", "lessons", recipe, "--json")
    for path in sorted(root.glob("recipes/pipeline/phase1_reflection/????????????.json")):
        yield ("recipes", "show", f"reflection@{path.stem}", "--json")
    yield RECIPES


def answers_of(archive: Path, place: Path) -> dict[str, Answer]:
    """What the program that is installed answers about the packed store, by command."""
    root = unpacked(archive, place)
    answers = {f"pandora {' '.join(command)}": read(root, command) for command in _plain_commands(root)}
    return answers | {f"pandora export --user {user}": export(root, user) for user in USERS}
