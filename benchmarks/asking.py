"""Prints how often `pandora ask` says the answer of a LoCoMo single-hop question in the first 100 words, and where the others were lost.

    python -m benchmarks.asking [--data ../shared/data] [--questions 100] [--given-evidence] [--show]

Every conversation is imported as a user's history, every question asked as a new session of that user, all phases, no Dagster.
A question is met where all content words of its gold answer stand among the first 100 words of the response. The draw is fixed
and spread over the conversations. `--given-evidence` offers RETRIEVAL the evidence's turns alone: what the answering itself can do.
Exit code 1 where less than the required share is met (without `--given-evidence`, on the whole draw).
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.compression_tasks.literal import content_words, share
from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.ids import TurnKey, UserId, user_id
from pandora_dagster.contracts.phase_outputs import RetrievalPlan
from pandora_dagster.contracts.ports.turn_storage import TurnIndex
from pandora_dagster.documents.sections import ContextDocument
from pandora_dagster.settings import load_settings

DRAW, LEAST = 100, 40.0
WORDS = 100
MET = "said within the first 100 words"
LOSSES = (
    "said after word 100",
    "in section 2, not in the response",
    "the evidence's turn loaded, the words not in section 2",
    "the evidence's turn offered, not chosen",
    "the evidence's turn not offered",
    "the evidence itself does not hold the words",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the words its answer must say, and the ids of the messages that hold it."""

    user: UserId
    text: str
    wanted: frozenset[str]
    evidence: tuple[str, ...]


class Offers:
    """A turn index that remembers what it offered; offers the turns of the evidence alone where `given` names them."""

    def __init__(self, index: TurnIndex) -> None:
        self._index = index
        self.given: frozenset[int] = frozenset()
        self.numbers: frozenset[int] = frozenset()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    def candidates(self, user: UserId, query: str, **asked: Any) -> Any:
        found = self._index.candidates(user, query, **asked)
        if self.given:
            rows = [r for r in self._index.rows(user, before=asked["before"], limit=100_000) if r.number in self.given]
            found = [replace(found[0], row=row) for row in rows] if found else []
        self.numbers = frozenset(c.row.number for c in found)
        return found


def drawn(data: Path, count: int) -> list[Asked]:
    """Single-hop questions in a fixed order, one of each conversation in turn."""
    groups: dict[str, list[Asked]] = {}
    lines = (line for path in sorted((data / "locomo").glob("questions_*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines())
    for q in map(json.loads, lines):
        wanted = frozenset(content_words(str(q.get("answer", ""))))
        if q["category"] == "single-hop" and wanted:
            groups.setdefault(q["user_id"], []).append(Asked(user_id(q["user_id"]), q["question"], wanted, tuple(q["evidence"])))
    for user, group in sorted(groups.items()):
        random.Random(user).shuffle(group)
    rows = [group[place] for place in range(max(map(len, groups.values()))) for _, group in sorted(groups.items()) if place < len(group)]
    return rows[:count]


def messages(app: App, user: UserId) -> Iterator[tuple[str, int, str]]:
    """Id, turn and text of every imported message of a user."""
    for key in app.turns.keys(user):
        turn = app.turns.load(key)
        for line in turn.files.get("messages.jsonl", "").splitlines():
            message = json.loads(line)
            yield message["id"], key.number, f"{turn.manifest.created_at[:10]} {message.get('name', '')} {message['content']}"


@dataclass(frozen=True, slots=True)
class Outcome:
    where: str
    response: str


def outcome(app: App, asked: Asked, key: TurnKey, known: Mapping[str, tuple[int, str]], offered: frozenset[int]) -> Outcome:
    """How far the words of the answer came."""
    held = [known[e] for e in asked.evidence if e in known]
    response = app.answer_of(key).response
    turn = app.turns.load(key)
    plan = turn.files.get("retrieval_plan.json")
    chosen = frozenset(RetrievalPlan.model_validate_json(plan).relevant_turns) if plan else frozenset[int]()
    needed = frozenset(number for number, _ in held)
    steps = (
        (MET, asked.wanted <= set(content_words(" ".join(response.split()[:WORDS])))),
        (LOSSES[0], asked.wanted <= set(content_words(response))),
        (LOSSES[5], not asked.wanted <= set(content_words(" ".join(text for _, text in held)))),
        (LOSSES[1], asked.wanted <= set(content_words(ContextDocument.parse(turn.context).body(2)))),
        (LOSSES[2], needed <= chosen),
        (LOSSES[3], needed <= offered),
    )
    return Outcome(next((name for name, holds in steps if holds), LOSSES[4]), response)


def asked_all(app: App, questions: Sequence[Asked], *, given: bool) -> Iterator[tuple[Asked, Outcome]]:
    """Every question as a new session of its user."""
    offers = Offers(app.dependencies.index)
    app = replace(app, dependencies=replace(app.dependencies, index=offers))
    known = {user: {m: (n, text) for m, n, text in messages(app, user)} for user in {q.user for q in questions}}
    for number, q in enumerate(questions):
        offers.given = frozenset(known[q.user][e][0] for e in q.evidence if e in known[q.user]) if given else frozenset()
        key = app.start(q.text, user=q.user, session=f"question-{number}")
        app.run_turn(key, on_report=lambda _: None)
        yield q, outcome(app, q, key, known[q.user], offers.numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--questions", type=int, default=DRAW)
    parser.add_argument("--given-evidence", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    questions = drawn(options.data, options.questions)
    with tempfile.TemporaryDirectory() as folder:
        app = open_app(load_settings({"PANDORA_ROOT": folder}))
        for file in sorted((options.data / "locomo").glob("conversations_*.jsonl")):
            with file.open("rb") as lines:
                app.transfer.import_conversations(lines, where=file.name)
        counts: Counter[str] = Counter()
        met: Counter[str] = Counter()
        for q, how in asked_all(app, questions, given=options.given_evidence):
            counts[how.where] += 1
            met[q.user] += how.where == MET
            if options.show:
                print(
                    f"\n## {q.user}: {q.text}\nwanted: {' '.join(sorted(q.wanted))} ({' '.join(q.evidence)}): {how.where}\n{how.response}"
                )
        app.close()
    for name in (MET, *LOSSES):
        print(f"{counts[name]:4}  {name}")
    asked = Counter(q.user for q in questions)
    print("by conversation: " + ", ".join(f"{user} {met[user]}/{asked[user]}" for user in sorted(asked)))
    value = share(counts[MET], len(questions))
    print(f"{value:.1f} % of {len(questions)} questions; at least {LEAST:.0f}")
    return int(value < LEAST and not options.given_evidence and len(questions) >= DRAW)


if __name__ == "__main__":
    sys.exit(main())
