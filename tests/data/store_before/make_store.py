#!/usr/bin/env python3
"""Make the store of the version before: `make_store.py [--pandora PROGRAM] [--out FOLDER] [--keep FOLDER]`.

Run once, with the program of commit 3d5ad50 (`make setup` there, then its .venv/bin/python in its folder): it asks, imports, archives,
restores, corrects, halts, answers, prunes and erases through the command line alone, packs what lies in the store then as OUT/store.tar.xz,
and writes what that program answers about it as OUT/expected.json. The commands are those of store_before.py, which
lies beside this file or in tests/faults. Needs `faketime` (apt-get install faketime), so that the store has a past: months of its own, the
same in each run; ids that are drawn differ.
"""

import argparse
import importlib.util
import io
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEFT_OUT = ("dagster", "metrics")
"""Folders of the store that are not packed: Dagster's own storage (16 times the rest; a version that needs it makes it), and counters."""

CONVERSATIONS = [
    {
        "id": "garden-wall",
        "user_id": "ann",
        "created_at": "2026-06-02T09:00:00Z",
        "messages": [
            {"role": "system", "content": "You help with a small garden. Prices are in euros."},
            {"role": "user", "content": "The wall behind the pear tree is 6.40 metres long. My budget for rebuilding it is 1200 euros."},
            {"role": "assistant", "content": "Noted: 6.40 metres of wall, at most 1200 euros. Brick or dry stone?"},
            {"role": "user", "content": "Dry stone. Ask the quarry Steinbruch Ö. Kärnten for sandstone, please."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_wall_1",
                        "type": "function",
                        "function": {"name": "quarry_offer", "arguments": '{"stone": "sandstone", "tonnes": 4.5}'},
                    }
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "call_wall_1",
                "name": "quarry_offer",
                "content": '[{"offer": "Q-3311", "stone": "sandstone", "tonnes": 4.5, "price_eur": 846.0, "delivery": "2026-06-19"}]',
            },
            {
                "role": "assistant",
                "content": "The quarry offers 4.5 tonnes of sandstone for 846.00 euros, offer Q-3311, delivery on 19 June 2026.",
            },
            {"role": "user", "content": "Take it. And remember that I am allergic to lime dust."},
            {
                "role": "assistant",
                "content": "Ordered: sandstone, offer Q-3311, 846.00 euros, delivery on 19 June 2026. I will keep lime out of it.",
            },
        ],
    },
    {
        "id": "garden-wall-later",
        "user_id": "ann",
        "created_at": "2026-06-20T17:30:00Z",
        "messages": [
            {"role": "user", "content": "The stones came, but only 4.1 tonnes, and my budget is 1350 euros now."},
            {
                "role": "assistant",
                "content": "Then 0.4 tonnes of offer Q-3311 are missing. I note the new budget of 1350 euros. Shall I claim them?",
            },
            {"role": "user", "content": "Yes, claim 0.4 tonnes, until 3 July 2026 at the latest."},
            {"role": "assistant", "content": "Claimed: 0.4 tonnes of sandstone, claim C-907, to be delivered until 3 July 2026."},
        ],
    },
    {
        "id": "zug-nach-bergen",
        "user_id": "ben",
        "created_at": "2026-07-11T06:45:00Z",
        "messages": [
            {"role": "user", "content": "Ich will am 4. August mit dem Zug von Oslo nach Bergen. Was kostet das?"},
            {"role": "assistant", "content": "Der Zug um 08:25 kostet 799 Kronen, der um 12:03 kostet 649 Kronen. 🚆"},
            {"role": "user", "content": "Dann der um 12:03, Fensterplatz, bitte."},
            {"role": "assistant", "content": "Gebucht: 4. August, 12:03 ab Oslo, Platz 42 am Fenster, Buchung NSB-5567, 649 Kronen."},
        ],
    },
    {
        "id": "somebody-who-left",
        "user_id": "gone",
        "created_at": "2026-07-12T10:00:00Z",
        "messages": [
            {"role": "user", "content": "My locker has the number 5512."},
            {"role": "assistant", "content": "Noted: locker 5512."},
        ],
    },
]
RESEARCH = [
    {
        "topic": "garden.sandstone",
        "cache_key": "sandstone_suppliers",
        "created_at": "2026-05-28T13:15:00Z",
        "expires_at": "2026-05-29T13:15:00Z",
        "quality_score": 0.88,
        "summary": "Four quarries sell sandstone by the tonne; the cheapest asks 188 euros a tonne.",
        "claims": [{"claim": "Sandstone at 188 euros a tonne", "source": "quarry.example", "confidence": 0.92}],
        "webpage_cache": ["visit_quarry1"],
    },
    {
        "topic": "garden.pear_tree",
        "cache_key": "pear_tree_pruning",
        "created_at": "2026-05-30T08:00:00Z",
        "expires_at": "2026-06-30T08:00:00Z",
        "quality_score": 0.7,
        "summary": "Pear trees are pruned in February, before the sap rises.",
    },
]
VISITS = [
    {
        "visit_id": "visit_quarry1",
        "url": "https://quarry.example/sandstone",
        "visited_at": "2026-05-28T13:20:00Z",
        "page_type": "product",
        "extracted_data": {"title": "Sandstone", "price": "188.00 euros a tonne", "stock": {"tonnes": 31}},
        "extraction_quality": 0.95,
    }
]
NOTES = {
    "garden.md": "---\ntitle: Garden\ntags: [garden, wall]\nupdated: 2026-05-01\n---\n\n"
    "The key of the shed hangs behind the door. See [[Neighbours]].\n",
    "Neighbours.md": "# Neighbours\n\nMrs Holm next door lends her wheelbarrow on Saturdays. #wall\n",
}
QUERIES = [
    {"query": "Which offer of the quarry did we take?", "user": "ann", "session": "batch-1", "id": "q1"},
    {"query": "Which claim number has the missing sandstone?", "user": "ann", "session": "batch-1", "id": "q2"},
    {"query": "What is the booking number of the train to Bergen?", "user": "ben", "id": "q3"},
    {"question": "this line is no query"},
]
PACKS = {"PANDORA_KEEP_PACKS": "true"}
"""For the turns whose prompt packs and raw answers are kept; they are compressed already and would be most of the fixture."""
RETRIEVAL_BY_HAND = {"reasoning": "by hand", "relevant_turns": [], "turn_relevance": {}, "relevant_memory_keys": [], "confidence": 1.0}


class Shell:
    """The program, in a folder of its own, at a time that is reported."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program, self.folder, self.root = program, folder, folder / "store"
        self.at = "2026-09-08 08:00:00"
        self._last = ""

    def environment(self, **more: str) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("PANDORA_", "DAGSTER_"))}
        return {
            **plain,
            "PANDORA_ROOT": str(self.root),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
            "PANDORA_KEEP_PACKS": "false",
            **more,
        }

    def argv(self, *arguments: str) -> list[str]:
        """Each command begins two minutes after the one before it."""
        if self.at <= self._last:
            self.at = str(datetime.fromisoformat(self._last) + timedelta(minutes=2))
        self._last = self.at
        return ["faketime", "-f", f"@{self.at}", self.program, *arguments]

    def __call__(self, *arguments: str, text: str = "", may: tuple[int, ...] = (0,), **more: str) -> str:
        began = time.monotonic()
        done = subprocess.run(
            self.argv(*arguments), env=self.environment(**more), cwd=self.folder, input=text, capture_output=True, text=True
        )
        print(f"{time.monotonic() - began:5.1f} s  {self.at}  {done.returncode}  pandora {' '.join(arguments)[:100]}", flush=True)
        if done.returncode not in may:
            sys.exit(f"exit code {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def ask(self, query: str, user: str, session: str, **more: str) -> dict[str, object]:
        return json.loads(self("ask", query, "--user", user, "--session", session, "--json", may=(0, 1), **more))

    def cut_off(self, query: str, user: str, session: str) -> None:
        """A turn whose process is killed once its first phases are through."""
        before = set(self.root.glob(f"users/{user}/turns/turn_*"))
        process = subprocess.Popen(
            self.argv("ask", query, "--user", user, "--session", session),
            env=self.environment(),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while process.poll() is None:
            new = set(self.root.glob(f"users/{user}/turns/turn_*")) - before
            if any((turn / "reflection.json").exists() for turn in new):
                break
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        print(f"cut off: {query}", flush=True)


def recipes(folder: Path, name: str, recipe: str, old: str, new: str) -> str:
    """A copy of the shipped recipes in which one text is another."""
    place = folder / name
    shipped = Path(os.environ["PANDORA_SHIPPED"])
    for part in ("recipes", "prompts"):
        shutil.copytree(shipped / part, place / part)
    path = place / recipe
    text = path.read_text()
    assert old in text, f"{recipe}: {old!r} is not there"
    path.write_text(text.replace(old, new))
    return str(place)


def live(shell: Shell) -> None:
    """Everything that the command line can put into a store."""
    folder = shell.folder
    for name, records in (("conversations", CONVERSATIONS), ("queries", QUERIES)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    shell("demo")
    shell("import", "conversations.jsonl", "--json")
    for place, records in (("research", RESEARCH), ("visit", VISITS)):
        for number, record in enumerate(records):
            (folder / f"{place}{number}.json").write_text(json.dumps(record))
            shell(place, "add", f"{place}{number}.json", "--user", "ann")
    notes = shell.root / "users" / "ann" / "notes"
    notes.mkdir(parents=True)
    for name, text in NOTES.items():
        (notes / name).write_text(text)
    shell("memory", "consent", "on", "--user", "ann", "--json")
    shell("memory", "set", "budget", "1200 euros", "--user", "ann")
    shell("memory", "set", "budget", "1350 euros", "--user", "ann")
    shell("memory", "set", "birthday", "3 May", "--kind", "fact", "--user", "ann")
    shell("memory", "set", "seat", "window", "--user", "ben")

    shell.at = "2026-09-09 09:00:00"
    shell.ask("What did the sandstone cost, and when does it come?", "ann", "wall", **PACKS)
    shell.ask("I live in Graz and my sister is called Maja.", "ann", "wall")
    shell.ask("Remember that I prefer deliveries in the morning.", "ann", "wall")
    shell.at = "2026-09-10 18:20:00"
    shell.ask("Where does the key of the shed hang?", "ann", "shed")
    shell.ask("What does sandstone cost a tonne?", "ann", "shed")
    shell.ask("How about that one?", "ann", "shed")
    shell("chat", "--user", "ben", "--no-stream", text="Wann fährt mein Zug nach Bergen?\nI moved to Oslo last week.\nWas kostet er?\n")
    shell.at = "2026-09-11 07:00:00"
    shell.ask("What is my sister called?", "ann", "family")
    shell.ask("write a function that sums the tonnes of a list of offers", "ben", "code")
    shell("batch", "queries.jsonl", "--json", may=(0, 1))
    shell("correct", "ann:turn_000006", "it was 846 euros for 4.5 tonnes")

    shell.at = "2026-09-12 10:00:00"
    doubting = recipes(
        folder, "doubting", "recipes/pipeline/phase2_retrieval.yaml", "confidence_threshold: 0.7", "confidence_threshold: 0.99"
    )
    for query, user in (
        ("Which wheelbarrow may I borrow?", "ann"),
        ("Which seat did I book?", "ben"),
        ("Who lends the wheelbarrow?", "ann"),
        ("Which train is the cheaper one?", "ben"),
    ):
        shell.ask(query, user, "halted", PANDORA_RECIPES=doubting, **PACKS)
    found = json.loads(shell("interventions", "list", "--json"))
    assert len(found) == 4, found
    first, second, third, _ = sorted(one["id"] for one in found)
    (folder / "answer.json").write_text(json.dumps(RETRIEVAL_BY_HAND))
    shell("interventions", "resolve", first, "--answer", "answer.json", "--note", "nothing matters")
    shell("interventions", "resolve", second, "--retry", "--note", "mended")
    shell("interventions", "resolve", third, "--abandon")
    terse = recipes(
        folder,
        "terse",
        "recipes/pipeline/phase1_reflection.yaml",
        "Decide whether the turn can proceed",
        "Decide tersely whether the turn can proceed",
    )
    shell.ask("Which offer did we take?", "ann", "wall", PANDORA_RECIPES=terse)
    shell("recipes", "assign", "reflection", "NERVES", "--why", "tried", "--by", "maker")
    shell.ask("How long is the wall?", "ann", "wall")
    shell("recipes", "assign", "reflection", "own", "--why", "tried enough", "--by", "maker")
    shell("recipes", "rollback", "reflection", "--why", "was better", "--by", "maker")
    shell("recipes", "rollback", "reflection", "--to", "file", "--why", "the file again", "--by", "maker")
    shell("recipes", "rollback", "reflection", "--why", "stands over the file", "--by", "maker")
    shell("recipes", "assign", "validator", "VOICE", "--why", "stands", "--by", "maker")
    calls = [json.loads(line) for line in (shell.root / "users/ann/turns/turn_000006/calls.jsonl").read_text().splitlines()]
    answered = [str(call.get("call_id") or call.get("id")) for call in calls if call.get("recipe") == "synthesizer_chat"]
    shell("recipes", "lessons", "synthesizer_chat", "--to-tests", answered[-1], "--fact", "846", may=(0, 1, 2))

    shell.at = "2026-10-20 03:00:00"
    shell("pin", "ann:turn_000002")
    shell("archive", "--date", "2026-06-02", "--json")
    shell("archive", "--older-than", "60d", "--json")
    shell.at = "2026-10-21 08:00:00"
    shell("restore", "ann:turn_000003", "--json")
    shell("restore", "ben:turn_000001", "--json")
    shell("unpin", "ben:turn_000001")
    shell.at = "2026-10-28 08:00:00"
    shell("forget", "gone", "--yes", "--json")
    shell.ask("What did the sandstone cost, and what is claim C-907 about?", "ann", "autumn")
    shell.ask("Which train did I take to Bergen?", "ben", "autumn", **PACKS)
    shell.at = "2026-11-05 03:00:00"
    shell("archive", "--older-than", "30d", "--json", may=(0, 1))
    shell.at = "2026-11-15 08:00:00"
    shell("cold", "prune", "--older-than", "20d", "--yes", "--json", may=(0, 1))
    shell.ask("And the sandstone, where was it from?", "ann", "autumn")
    shell.cut_off("Which stones are missing?", "ann", "autumn")


def pack(root: Path, file: Path) -> None:
    """The store as one file: names sorted, one owner, whole seconds."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root)
            if name.parts[0] in LEFT_OUT or path.name.endswith(".lock"):
                continue
            if path.is_dir() and any(path.iterdir()):
                continue
            info = tar.gettarinfo(path, str(name))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = 1_796_000_000
            info.mode = 0o755 if path.is_dir() else 0o644
            with path.open("rb") if path.is_file() else io.BytesIO() as content:
                tar.addfile(info, content if path.is_file() else None)
    file.write_bytes(lzma.compress(raw.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{file}: {file.stat().st_size:,} bytes")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pandora", default=str(Path(sys.executable).parent / "pandora"), help="the program of the old commit")
    options.add_argument("--shipped", type=Path, default=Path.cwd(), help="the old commit's folder, with recipes/ and prompts/")
    options.add_argument("--out", type=Path, default=HERE)
    options.add_argument("--keep", type=Path, help="work here, and leave it there")
    options.add_argument("--expected-only", action="store_true", help="the store stays as it is; ask about it again")
    given = options.parse_args()
    os.environ["PANDORA_SHIPPED"] = str(given.shipped.resolve())
    if not given.expected_only:
        folder = given.keep or Path(tempfile.mkdtemp(prefix="store_before_"))
        folder.mkdir(parents=True, exist_ok=True)
        shell = Shell(given.pandora, folder.resolve())
        live(shell)
        pack(shell.root, given.out / "store.tar.xz")
        if not given.keep:
            shutil.rmtree(folder)
    name = "store_before.py"
    beside = HERE / name
    spec = importlib.util.spec_from_file_location("reading", beside if beside.is_file() else HERE.parents[1] / "faults" / name)
    assert spec and spec.loader
    reading = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reading)
    with tempfile.TemporaryDirectory() as place:
        answers = reading.answers_of(given.out / "store.tar.xz", Path(place))
    lines = (f"{json.dumps(command)}: {json.dumps(answers[command], ensure_ascii=False, sort_keys=True)}" for command in sorted(answers))
    (given.out / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(f"{len(answers)} answers")


if __name__ == "__main__":
    main()
