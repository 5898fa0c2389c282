"""A store that the version before made opens, and what that version answered about it is answered still.

`store.tar.xz` and `expected.json` were made by `make_store.py` with the last commit before the restructuring (3d5ad50). Only the command
line is used, by the entry point that the package declares; no module of it is named here.
"""

import contextlib
import difflib
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

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


def _read(root: Path, arguments: tuple[str, ...]) -> Answer:
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


def _export(root: Path, user: str) -> Answer:
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


def _turn_ids(root: Path) -> list[str]:
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
    answers = {f"pandora {' '.join(command)}": _read(root, command) for command in _plain_commands(root)}
    return answers | {f"pandora export --user {user}": _export(root, user) for user in USERS}


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


_CHANGED: dict[str, Answer] = {"pandora index verify --json": {"exit": 0, "out": {"differences": []}}}
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
    return {**fields, "format_version": 3, "metadata": {}} if fields.get("format_version") == 2 else fields


_ADDED = {"until": "", "key": "", "input_images": False}
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


def _comparable(command: str, answer: Answer) -> Answer:
    """What has to be the same.

    Of a digest: its items; sessions behind them were added. Of memory and recipes: all but the fields added since; the calibration of a
    recipe is that of its scores. Of a search: which messages are found, with their texts; scores, order, and the day above the first
    message of a day are the ranking's.
    Of the list of recipes: mode and total of those that there were.
    """
    out = answer["out"]
    if command.startswith("pandora digest "):
        return answer | {"out": _without_sessions(out)}
    if command.startswith("pandora memory list "):
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


def _shown(answer: Answer) -> list[str]:
    return json.dumps(answer, ensure_ascii=False, indent=1, sort_keys=True).splitlines()


def _difference(command: str, before: Answer | None, now: Answer | None) -> str:
    old, new = (_shown(answer) if answer else [] for answer in (before, now))
    return "\n".join([f"$ {command}", *list(difflib.unified_diff(old, new, "before", "now", lineterm="", n=2))[:40]])


def test_what_was_answered_is_answered_still(tmp_path: Path) -> None:
    """The exit code and everything on stdout, of every command that reads; all that differ are shown. One test: several processes that
    share the tests would each read the store."""
    now = {command: _comparable(command, answer) for command, answer in answers_of(DATA / "store.tar.xz", tmp_path).items()}
    before = {command: _comparable(command, answer) for command, answer in (EXPECTED | _CHANGED).items()}
    differ = sorted(command for command in {*before, *now} if before.get(command) != now.get(command))
    shown = "\n".join(_difference(one, before.get(one), now.get(one)) for one in differ)
    assert EXPECTED and not differ, f"{len(differ)} of {len(before)} differ\n{shown}"


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the version before, for tests that write: each adds, none takes away what another reads."""
    return unpacked(DATA / "store.tar.xz", tmp_path_factory.mktemp("lived-in"))


def test_reading_changes_no_document(tmp_path: Path) -> None:
    """After a reading each file of the old store has the bytes it had, but for what is made of the others: indexes, locks, metrics."""
    root = unpacked(DATA / "store.tar.xz", tmp_path)
    before = _documents(root)
    for command in (("turns", "--json"), ("show", "ann:turn_000001"), ("search", "sandstone", "--user", "ann"), ("lineage", "--verify")):
        pandora(root, *command)
    assert _documents(root) == before


def _documents(root: Path) -> dict[str, int]:
    return {
        str(path.relative_to(root)): zlib.crc32(path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in ("indexes", "dagster", "metrics") and not path.name.endswith(".lock")
    }


def test_a_new_turn_goes_on_from_the_old_ones(lived_in: Path) -> None:
    """The next number, in an old session, answered out of what the version before kept."""
    numbers = [int(turn[-6:]) for turn in _turn_ids(lived_in) if turn.startswith("ann:")]
    code, out = pandora(lived_in, "ask", "What did the sandstone of offer Q-3311 cost?", "--user", "ann", "--session", "wall", "--json")
    assert code == 0 and "846.00 euros" in json.loads(out)["response"]
    assert json.loads(out)["turn_id"] == f"turn_{max(numbers) + 1:06d}"


def test_an_old_archived_turn_comes_back_byte_for_byte(lived_in: Path) -> None:
    """Its export is the one that it was imported with."""
    (one, *_) = [one for one in EXPECTED["pandora turns --state archived --json"]["out"] if one["user_id"] == "example"]
    code, out = pandora(lived_in, "restore", f"example:{one['turn_id']}", "--json")
    assert code == 0, out
    assert _export(lived_in, "example") == EXPECTED["pandora export --user example"]


def test_an_old_halted_turn_is_ended(lived_in: Path) -> None:
    """The intervention that is open in the old store is retried by the recipes of today."""
    (open_one,) = EXPECTED["pandora interventions list --json"]["out"]
    code, _ = pandora(lived_in, "interventions", "resolve", open_one["id"], "--retry")
    assert code == 0 and json.loads(pandora(lived_in, "interventions", "list", "--json")[1]) == []


def test_indexes_made_anew_hold_the_same(tmp_path: Path) -> None:
    """From the documents alone: no old index is left, and verify finds no difference."""
    root = unpacked(DATA / "store.tar.xz", tmp_path)
    for path in (root / "indexes").glob("*.duckdb*"):
        path.unlink()
    assert pandora(root, "index", "rebuild")[0] == 0
    assert json.loads(pandora(root, "index", "verify", "--json")[1])["differences"] == []
    for command in (("turns",), ("search", "What did the sandstone cost?", "--user", "ann"), ("research", "list", "--user", "ann")):
        shown = f"pandora {' '.join((*command, '--json'))}"
        assert _comparable(shown, _read(root, (*command, "--json"))) == _comparable(shown, EXPECTED[shown]), command
