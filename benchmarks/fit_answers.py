"""Fits the weights by which the embedded runtime ranks passages, and prints how often the answer is first on documents left out of the fit.

    python -m benchmarks.fit_answers [--data ../shared/data/documents]

Every document is imported as a conversation of one user; the index offers turns for each question. A conditional logit with ridge is
fitted: the probability that a passage is the one that holds all that the question's answer needs. Six folds of whole documents.
"""

import argparse
import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pandora_dagster.app import App, open_app
from pandora_dagster.contracts.ids import user_id
from pandora_dagster.retrieval.turn_excerpts import full_excerpt
from pandora_dagster.runtime.extractive.evidence.citation_labels import Labels
from pandora_dagster.runtime.extractive.evidence.passage_ranking import WEIGHTS, passage_features
from pandora_dagster.runtime.extractive.evidence.questions import read_question
from pandora_dagster.runtime.extractive.evidence.source_passages import PassageReader
from pandora_dagster.runtime.extractive.queries.empty_texts import is_question_or_request, repeats_question
from pandora_dagster.settings import load_settings

FOLDS, RIDGE, STEPS, RATE = 6, 5.0, 150, 0.05
NAMES = tuple(WEIGHTS)
USER = user_id("reader")
OFFERED, LEAST_MATCH = 20, 0.1


@dataclass(frozen=True, slots=True)
class Case:
    """A question's passages as rows of features in the order of `NAMES`, and which of them hold the answer."""

    document: str
    rows: tuple[tuple[float, ...], ...]
    right: tuple[bool, ...]


def imported(app: App, documents: Sequence[dict[str, Any]]) -> None:
    """Every document as a conversation; what is no talk is given by the user."""
    lines: list[bytes] = []
    for n, x in enumerate(documents):
        said = x.get("messages") or [{"role": "user", "content": x["text"]}, {"role": "assistant", "content": "Noted."}]
        day = f"2023-{1 + n // 28:02d}-{1 + n % 28:02d}T09:00:00+00:00"
        lines.append(json.dumps({"id": x["id"], "user_id": USER, "created_at": day, "messages": said}).encode())
    app.transfer.import_conversations(lines, where="documents")


def holds(asked: dict[str, Any], text: str) -> bool:
    """Whether an alternative of every group is in the text, beginning where a word begins."""
    plain = " ".join(text.lower().split())
    return all(any(re.search(rf"(?<!\w){re.escape(' '.join(one.lower().split()))}", plain) for one in group) for group in asked["all_of"])


def cases(app: App, questions: Sequence[dict[str, Any]]) -> list[Case]:
    """The passages of the turns that the index offers for each answerable question."""
    reader, found = PassageReader(Labels(())), list[Case]()
    turns = {key.number: app.turns.load(key) for key in app.turns.keys(USER)}
    read = {n: reader.turn(full_excerpt(turn), turn=n, label="", date=turn.manifest.created_at[:10]) for n, turn in turns.items()}
    for asked in (q for q in questions if q["all_of"]):
        offered = app.dependencies.index.candidates(USER, asked["question"], limit=OFFERED, before=max(turns) + 1)
        best = max((c.score for c in offered), default=0.0) or 1.0
        chosen = [c.row.number for c in sorted(offered, key=lambda c: -c.score) if c.score >= LEAST_MATCH * best]
        passages = [replace(p, rank=rank) for rank, n in enumerate(chosen) for p in read[n]]
        kept = [p for p in passages if not (is_question_or_request(p.text) or repeats_question(p.text, asked["question"]))]
        known = passage_features(kept, read_question(asked["question"]))
        rows = tuple(tuple(f.values[name] for name in NAMES) for f in known)
        own = {n for n, turn in turns.items() if turn.manifest.session_id == asked["document"]}
        found.append(Case(asked["document"], rows, tuple(f.passage.turn in own and holds(asked, f.passage.text) for f in known)))
    return found


def fitted(train: Sequence[Case], scale: Sequence[float]) -> list[float]:
    """The weights, for features as they are."""
    used = [([[v / s for v, s in zip(row, scale, strict=True)] for row in c.rows], c.right) for c in train if any(c.right)]
    weights, mean, square = ([0.0] * len(NAMES) for _ in range(3))
    for step in range(1, STEPS):
        slope = [RIDGE * w / len(used) for w in weights]
        for rows, right in used:
            scores = [sum(map(float.__mul__, row, weights)) for row in rows]
            top = max(scores)
            odds = [math.exp(s - top) for s in scores]
            whole, held = sum(odds), sum(o for o, is_right in zip(odds, right, strict=True) if is_right)
            for row, o, is_right in zip(rows, odds, right, strict=True):
                pull = (o / whole - (o / held if is_right else 0.0)) / len(used)
                if abs(pull) > 1e-6:
                    slope = [g + pull * v for g, v in zip(slope, row, strict=True)]
        for k, g in enumerate(slope):
            mean[k], square[k] = 0.9 * mean[k] + 0.1 * g, 0.99 * square[k] + 0.01 * g * g
            weights[k] -= RATE * (mean[k] / (1 - 0.9**step)) / (math.sqrt(square[k] / (1 - 0.99**step)) + 1e-8)
    return [w / s for w, s in zip(weights, scale, strict=True)]


def places(tested: Sequence[Case], weights: Sequence[float]) -> Counter[int]:
    """In how many cases the answer is among the first 1, 3, 5 and 10."""
    counts: Counter[int] = Counter()
    for c in tested:
        order = sorted(range(len(c.rows)), key=lambda n: -sum(map(float.__mul__, c.rows[n], weights)))
        place = next((n for n, at in enumerate(order) if c.right[at]), None)
        counts.update(most for most in (1, 3, 5, 10) if place is not None and place < most)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "documents")
    folder = parser.parse_args().data
    documents, questions = (
        [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for name in ("documents.jsonl", "questions.jsonl")
    )
    with tempfile.TemporaryDirectory() as root:
        app = open_app(load_settings({"PANDORA_ROOT": root}))
        imported(app, documents)
        every = cases(app, questions)
        app.close()
    columns = list(zip(*(row for c in every for row in c.rows), strict=True))
    means = [sum(column) / len(column) for column in columns]
    scale = [math.sqrt(sum((v - m) ** 2 for v in column) / len(column)) or 1.0 for column, m in zip(columns, means, strict=True)]
    named = sorted({c.document for c in every})
    left_out: Counter[int] = Counter()
    for fold in range(FOLDS):
        tested = set(named[fold::FOLDS])
        weights = fitted([c for c in every if c.document not in tested], scale)
        left_out += places([c for c in every if c.document in tested], weights)
    print(f"shipped weights: {dict(places(every, list(WEIGHTS.values())))} of {len(every)}")
    print(f"documents left out of the fit: {dict(left_out)}")
    print("fitted on all: " + ", ".join(f'"{name}": {w:.2f}' for name, w in zip(NAMES, fitted(every, scale), strict=True)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
