"""What the weights of the message ranking are worth on conversations that they were not chosen on: leave one conversation out.

The weights are chosen on five of the six conversations of LoCoMo and reported on the sixth, for each of the six; beside them the shipped
ones, and the shipped ones without one signal or without windows, with the standard error of the difference.
Run: `python -m benchmarks.fit_search --data ../shared/data`. It chooses nothing by itself.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import cast

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.turns import FoundMessage
from pandora_dagster.retrieval.messages.document_numbers import document_number
from pandora_dagster.retrieval.messages.message_ranking import WEIGHTS, WINDOW, FloatArray, MessageUnits, fuse_signals, message_signals
from pandora_dagster.retrieval.messages.search_results import pack_messages
from pandora_dagster.settings import load_settings
from pandora_dagster.stores.search.message_search import MessageSearch
from pandora_dagster.stores.search.search_tables import user_base
from pandora_dagster.stores.search.turn_index import DuckTurnIndex

BUDGETS = (1_000, 3_000)
FIRST = 10
MEASURES = tuple((name, group) for name in (*map(str, BUDGETS), f"R@{FIRST}") for group in ("1-4", "multi-hop"))
GRID = {
    "date": (0.5, 1.0, 1.5),
    "session": (0.0, 0.1, 0.2, 0.3),
    "prefix": (0.0, 0.1, 0.2),
    "speaker": (0.2, 0.35, 0.5),
    "first_person": (0.0, 0.1, 0.2),
    "asks": (0.0, -0.1, -0.2),
}
Weights = Mapping[str, float]
Recalls = list[tuple[float, ...]]
"""For each question the recall of its evidence at each of `BUDGETS`, and in the first ten messages."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question with the signals of all messages near a match."""

    user: str
    category: str
    evidence: tuple[str, ...]
    named: tuple[str, ...]
    units: MessageUnits
    signals: Mapping[str, FloatArray]
    messages: Mapping[int, FoundMessage]


def cases(app: App, questions: Sequence[Mapping[str, object]], window: Mapping[int, float] = WINDOW) -> Iterator[Case]:
    index = cast("DuckTurnIndex", app.turn_index)
    messages = {user: _messages(app, user) for user in {str(q["user_id"]) for q in questions}}
    with index.search_file.reading() as db:
        for question in questions:
            user, evidence = str(question["user_id"]), tuple(map(str, question["evidence"]))  # type: ignore[call-overload]
            base = user_base(db, user) or 0
            found = MessageSearch(db, base, index.reader).gather(str(question["question"]))
            if found:
                signals = message_signals(found.question, found.units, found.matches, window=window)
                yield Case(user, str(question["category"]), evidence, found.question.named_speakers, found.units, signals, messages[user])


def _messages(app: App, user: str) -> dict[int, FoundMessage]:
    return {
        doc: FoundMessage(f"turn_{number:06d}", message.created_at, message.id, message.name, message.text, 0.0, doc)
        for number, messages in app.turn_index.messages_by_turn(user).items()
        for doc, message in ((document_number(number, place), message) for place, message in enumerate(messages, 1))
    }


class Trials:
    """Recalls of the cases by weights, each set of weights measured once."""

    def __init__(self, every: Sequence[Case], count: Callable[[str], int]) -> None:
        self.every, self._count = every, cache(count)
        self._known: dict[tuple[float, ...], Recalls] = {}

    def recalls(self, weights: Weights) -> Recalls:
        key = tuple(weights.values())
        if key not in self._known:
            self._known[key] = [self._recall(case, weights) for case in self.every]
        return self._known[key]

    def _recall(self, case: Case, weights: Weights) -> tuple[float, ...]:
        order = [case.messages[s.doc] for s in fuse_signals(case.units, case.signals, case.named, weights) if not s.is_turn]
        found = [*(pack_messages(order, budget, self._count) for budget in BUDGETS), order[:FIRST]]
        names = ({message.message_id for message in chosen} for chosen in found)
        return tuple(fmean(message in inside for message in case.evidence) if case.evidence else 0.0 for inside in names)

    def chosen(self, users: Sequence[str]) -> Weights:
        """The weights that one ascent over `GRID` finds for these users."""
        best, weights = self.objective(WEIGHTS, users), WEIGHTS
        for name, values in GRID.items():
            for value in values:
                tried = {**weights, name: value}
                if (reached := self.objective(tried, users)) > best + 1e-9:
                    best, weights = reached, tried
        return weights

    def objective(self, weights: Weights, users: Sequence[str]) -> float:
        return fmean(percents(self.every, self.recalls(weights), users))


def percents(every: Sequence[Case], recalls: Recalls, users: Sequence[str]) -> list[float]:
    """Percent of the evidence by `MEASURES`."""
    return [100 * fmean(values) for values in _columns(every, recalls, users)]


def _columns(every: Sequence[Case], recalls: Recalls, users: Sequence[str]) -> list[list[float]]:
    inside = [(case, found) for case, found in zip(every, recalls, strict=True) if case.user in users and case.category != "adversarial"]
    return [[f[place // 2] for case, f in inside if group in ("1-4", case.category)] for place, (_, group) in enumerate(MEASURES)]


def difference(every: Sequence[Case], before: Recalls, after: Recalls, users: Sequence[str]) -> str:
    """Points gained by `MEASURES`, each with its standard error."""
    changes = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in zip(before, after, strict=True)]
    return " | ".join(f"{100 * fmean(c):+.1f} ± {100 * stdev(c) / len(c) ** 0.5:.1f}" for c in _columns(every, changes, users))


def left_out(trials: Trials, users: Sequence[str]) -> Recalls:
    """Each conversation's recalls with the weights that were chosen on the others."""
    of = {user: trials.chosen([other for other in users if other != user]) for user in users}
    for user, weights in of.items():
        print(f"{user}: " + ", ".join(f"{name} {weights[name]:g}" for name in GRID))
    return [trials.recalls(of[case.user])[place] for place, case in enumerate(trials.every)]


def report(app: App, questions: Sequence[Mapping[str, object]]) -> None:
    count = app.dependencies.counter.count
    every = list(cases(app, questions))
    users = sorted({case.user for case in every})
    trials = Trials(every, count)
    shipped = trials.recalls(WEIGHTS)
    variants = {f"without {name}": trials.recalls({**WEIGHTS, name: 0.0}) for name in GRID}
    only = {name: weight if name in ("words", "speaker", "date") else 0.0 for name, weight in WEIGHTS.items()}
    variants["words, speaker and date only"] = trials.recalls(only)
    variants["without windows"] = Trials(list(cases(app, questions, {0: 1.0})), count).recalls(WEIGHTS)
    variants["weights of the other five"] = left_out(trials, users)
    heads = [", ".join(measure) for measure in MEASURES]
    print(
        "\n| weights | "
        + " | ".join(heads)
        + " | "
        + " | ".join(f"gain {head}" for head in heads)
        + " |"
        + "\n|---"
        + "|---" * 2 * len(heads)
        + "|"
    )
    print("| shipped | " + " | ".join(f"{value:.1f}" for value in percents(every, shipped, users)) + " |" + " |" * len(heads))
    for name, found in variants.items():
        values = " | ".join(f"{value:.1f}" for value in percents(every, found, users))
        print(f"| {name} | {values} | {difference(every, shipped, found, users)} |")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit_search", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that holds locomo/")
    parser.add_argument("--every", type=int, default=1, help="only every Nth question")
    asked = parser.parse_args(arguments)
    folder = asked.data / "locomo"
    if not folder.is_dir():
        print(f"{folder}: not there; expected conversations_*.jsonl and questions_*.jsonl", file=sys.stderr)
        return 2
    questions = [json.loads(line) for path in sorted(folder.glob("questions_*.jsonl")) for line in path.open(encoding="utf-8")]
    with tempfile.TemporaryDirectory() as root:
        app = open_app(load_settings({"PANDORA_ROOT": root, "PANDORA_EMBEDDINGS": "off"}))
        for path in sorted(folder.glob("conversations_*.jsonl")):
            with path.open("rb") as lines:
                app.transfer.import_conversations(lines, where=path.name)
        report(app, questions[:: asked.every])
        app.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
