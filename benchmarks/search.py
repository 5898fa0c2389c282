"""Recall of evidence within a token budget, against a plain BM25 packer on the same data in the same run: `make bench-search`.

Knows conversations whose questions name the messages that answer them (LoCoMo). They come in through the real import into a
temporary store, and every question goes through the real search. Exit code 1 where a target is missed.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, quantiles
from time import perf_counter

from benchmarks.asking import DRAW, LEAST, MET, Outcome, asked_all, drawn
from benchmarks.plain_bm25 import PlainBm25
from pandora_dagster.app import App, open_app
from pandora_dagster.app.search_service import max_fetched_messages
from pandora_dagster.retrieval.messages.message_relevance import relevant_messages
from pandora_dagster.retrieval.messages.search_results import search_results
from pandora_dagster.settings import load_settings

BUDGETS = (500, 1_000, 1_500, 3_000)
GROUPS = ("all", "1-4", "multi-hop", "temporal", "single-hop", "open-domain", "adversarial")
OUTSIDE = "adversarial"
"""The category that does not count among 1 to 4."""
TARGETS = {
    ("1000", "1-4"): 87.0,
    ("1000", "multi-hop"): 63.0,
    ("3000", "1-4"): 93.0,
    ("3000", "multi-hop"): 79.0,
    ("3000", "temporal"): 95.0,
    ("message R@10", "all"): 80.0,
    ("session R@10", "all"): 95.0,
}
"""(measure, group) -> percent of evidence recalled, words alone."""
ABOVE_WORDS, WITH_VECTORS = ("1000", "1-4", 1.0), ("message R@10", "all", 82.5)
"""What vectors must add in points, and what must be reached with them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question answered: ids of messages, best first, and for each budget the ids that were packed and their tokens."""

    order: tuple[str, ...]
    packed: dict[int, tuple[tuple[str, ...], int]]


Searches = Callable[[str, str], Answer]
"""(user, question) -> what was found and packed."""


@dataclass(slots=True)
class Score:
    """Recalls by (measure, group) and, at 1,000 tokens, by conversation."""

    values: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    conversations: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds: list[float] = field(default_factory=list[float])
    over_count: int = 0

    def add(self, measure: str, question: dict[str, object], recall: float) -> None:
        category = str(question["category"])
        for group in ("all", category, *(() if category == OUTSIDE else ("1-4",))):
            self.values[measure, group].append(recall)
        if measure == "1000" and category != OUTSIDE:
            self.conversations[str(question["user_id"])].append(recall)

    def percent(self, measure: str, group: str) -> float:
        found = self.values.get((measure, group))
        return 100 * fmean(found) if found else float("nan")


def scored(questions: Sequence[dict[str, object]], search: Searches, sessions: dict[str, dict[str, str]]) -> Score:
    score = Score()
    for question in questions:
        user, words, evidence = str(question["user_id"]), str(question["question"]), list(map(str, question["evidence"]))  # type: ignore[call-overload]
        started = perf_counter()
        answer = search(user, words)
        score.seconds.append(perf_counter() - started)
        for budget, (ids, tokens) in answer.packed.items():
            score.over_count += tokens > budget
            score.add(str(budget), question, _recall(evidence, ids))
        order = answer.order
        score.add("message R@10", question, _recall(evidence, order[:10]))
        seen = list(dict.fromkeys(sessions[user][i] for i in order))[:10]
        wanted = sorted({sessions[user][e] for e in evidence if e in sessions[user]})
        score.add("session R@10", question, _recall(wanted, seen))
    return score


def _recall(wanted: Sequence[str], found: Sequence[str]) -> float:
    return sum(w in set(found) for w in wanted) / len(wanted) if wanted else 0.0


def ours(app: App, *, vectors: bool = False) -> Searches:
    """One search a question, packed into each budget as `pandora search` packs it."""
    count = app.dependencies.counter.count
    index = app.turn_index if vectors else replace(app.turn_index, vectors=None)

    def search(user: str, question: str) -> Answer:
        found = index.messages(user, question, limit=max_fetched_messages(max(BUDGETS)))
        packed: dict[int, tuple[tuple[str, ...], int]] = {}
        for budget in BUDGETS:
            kept = relevant_messages(question, found[: max_fetched_messages(budget)], index.reader)
            results = search_results(question, kept, budget=budget, count=count)
            together = count("\n".join(r.text for r in results.results))
            ids = tuple(i for r in results.results for i in r.message_ids)
            packed[budget] = ids, max(together, results.tokens, count(results.text))
        return Answer(tuple(m.message_id for m in found), packed)

    return search


def plain(conversations: Sequence[dict[str, object]], count: Callable[[str], int]) -> Searches:
    packers: dict[str, PlainBm25] = {}
    for conversation in conversations:
        packers.setdefault(str(conversation["user_id"]), PlainBm25(count)).add(conversation)

    def search(user: str, question: str) -> Answer:
        packed: dict[int, tuple[tuple[str, ...], int]] = {}
        for budget in BUDGETS:
            ids, text = packers[user].packed(question, budget)
            packed[budget] = ids, count(text)
        return Answer(packers[user].order(question), packed)

    return search


def table(name: str, score: Score) -> None:
    print(f"\n{name}\n| recall, % | " + " | ".join(GROUPS) + " |\n|---" * 1 + "|---" * len(GROUPS) + "|")
    for measure in (*map(str, BUDGETS), "message R@10", "session R@10"):
        print(f"| {measure} | " + " | ".join(f"{score.percent(measure, g):.1f}" for g in GROUPS) + " |")
    p50, p95 = quantiles(score.seconds, n=100)[49], quantiles(score.seconds, n=100)[94]
    print(f"packed over the budget: {score.over_count}; one question, found and packed: p50 {p50 * 1e3:.1f} ms, p95 {p95 * 1e3:.1f} ms")


def by_conversation(mine: Score, other: Score, names: str = "plain BM25 | ours") -> None:
    print(f"\n| conversation, 1,000 tokens, categories 1-4 | {names} | gain |\n|---|---|---|---|")
    for user, found in mine.conversations.items():
        a, b = 100 * fmean(other.conversations[user]), 100 * fmean(found)
        print(f"| {user} | {a:.1f} | {b:.1f} | {b - a:+.1f} |")


def gains(mine: Score, other: Score) -> dict[str, float]:
    """Conversation -> points of recall that `mine` has above `other`, at 1,000 tokens, categories 1 to 4."""
    return {user: 100 * (fmean(found) - fmean(other.conversations[user])) for user, found in mine.conversations.items()}


def verdicts(score: Score, baseline: Score, outcomes: Sequence[Outcome]) -> int:
    """How many targets are missed: a recall, the share of answers, a conversation without a gain over the baseline, a budget."""
    print("\n| target | at least | measured | |\n|---|---|---|---|")
    missed = 0
    for (measure, group), target in TARGETS.items():
        value = score.percent(measure, group)
        missed += value < target
        print(f"| {measure}, {group} | {target:g} | {value:.1f} | {'met' if value >= target else 'MISSED'} |")
    without = [user for user, gain in gains(score, baseline).items() if gain <= 0]
    missed += len(without)
    print(f"| gain over plain BM25 in each conversation | > 0 | {', '.join(without) or 'in each'} | {'MISSED' if without else 'met'} |")
    if outcomes:
        share = 100 * fmean(outcome.where == MET for outcome in outcomes)
        missed += share < LEAST
        print(f"| `pandora ask`, {len(outcomes)} questions | {LEAST:g} | {share:.0f} | {'met' if share >= LEAST else 'MISSED'} |")
    return missed + score.over_count


def vector_verdicts(mine: Score, words: Score) -> int:
    """How many targets with vectors are missed, a conversation that loses by them among these."""
    print("\n| target with vectors | at least | measured | |\n|---|---|---|---|")
    missed = mine.over_count
    for (measure, group, least), above in ((ABOVE_WORDS, words.percent(*ABOVE_WORDS[:2])), (WITH_VECTORS, 0.0)):
        target, value = above + least, mine.percent(measure, group)
        missed += value < target
        print(f"| {measure}, {group} | {target:.1f} | {value:.1f} | {'met' if value >= target else 'MISSED'} |")
    losing = [user for user, gain in gains(mine, words).items() if gain < 0]
    print(f"| no conversation loses | 0 | {', '.join(losing) or 'none'} | {'MISSED' if losing else 'met'} |")
    return missed + len(losing)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that holds locomo/")
    parser.add_argument("--answers", type=int, default=DRAW, help="questions that are put to `pandora ask`, 0 for none")
    parser.add_argument("--every", type=int, default=1, help="only every Nth question")
    parser.add_argument("--embeddings", choices=("local", "runtime"), default="off", nargs="?", const="local", help="measure vectors too")
    asked = parser.parse_args(arguments)
    folder = asked.data / "locomo"
    if not folder.is_dir():
        print(f"{folder}: not there; expected conversations_*.jsonl and questions_*.jsonl", file=sys.stderr)
        return 2
    questions = [q for path in sorted(folder.glob("questions_*.jsonl")) for q in _lines(path)][:: asked.every]
    files = sorted(folder.glob("conversations_*.jsonl"))
    conversations = [c for path in files for c in _lines(path)]
    sessions: dict[str, dict[str, str]] = defaultdict(dict)
    for c in conversations:
        sessions[str(c["user_id"])] |= {m["id"]: str(c["id"]) for m in c["messages"]}  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as root:
        app = open_app(load_settings({**_servers(), "PANDORA_ROOT": root, "PANDORA_EMBEDDINGS": asked.embeddings}))
        for path in files:
            started = perf_counter()
            with path.open("rb") as lines:
                report = app.transfer.import_conversations(lines, where=path.name)
            counts = f"{report.conversations} conversations, {report.turns} turns imported, {len(report.faults)} faults"
            print(f"{path.name}: {counts}, {perf_counter() - started:.0f} s")
        baseline = scored(questions, plain(conversations, app.dependencies.counter.count), sessions)
        mine = scored(questions, ours(app), sessions)
        table(f"Plain BM25 packer, {len(questions)} questions", baseline)
        table("This index", mine)
        by_conversation(mine, baseline)
        missed = 0
        if asked.embeddings != "off":
            meant = scored(questions, ours(app, vectors=True), sessions)
            table(f"This index with vectors of {app.vectors.name if app.vectors else ''}", meant)
            by_conversation(meant, mine, "words alone | with vectors")
            missed = vector_verdicts(meant, mine)
        outcomes = [outcome for _, outcome in asked_all(app, drawn(asked.data, asked.answers), given=False)] if asked.answers else []
        app.close()
    return 1 if verdicts(mine, baseline, outcomes) + missed else 0


def _servers() -> dict[str, str]:
    """The runtime file of the environment, for vectors of a server; the store and the rest are the benchmark's own."""
    return {name: value for name, value in os.environ.items() if name == "PANDORA_RUNTIME_FILE"}


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
