"""Fits the table of salience on labelled documents and prints how well it orders the units of documents that it has not seen.

    python benchmarks/fit_salience.py [--data ../shared/data/salience] [--power 1.25] [--write]

Needs numpy and scikit-learn, which the product does not. AUC: the share of pairs inside a document that are in the right order; `same
length`: of pairs of about the same number of tokens. The weight of a unit's terms and its length are fitted as controls and left out of the
table, since the coverage of the selection counts them already. `--power` is the contrast of the scores: at 2, more
units that are labelled as needed are kept, and fewer facts of the documents benchmark. `--write` replaces the table of the package.
"""

import argparse
import datetime
import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pandora_dagster.compression.salience.salience import LinearModel, SalienceTable, reading_salience  # noqa: E402
from pandora_dagster.compression.salience.text_reading import TextReading, tokenized  # noqa: E402
from pandora_dagster.compression.salience.unit_features import LENGTH_FEATURES, unit_features  # noqa: E402
from pandora_dagster.compression.selection.coverage import Candidates, CoverageChoice  # noqa: E402
from pandora_dagster.compression.selection.term_weights import weighted_terms  # noqa: E402
from pandora_dagster.documents.units.unit import Unit, UnitKind  # noqa: E402
from pandora_dagster.language.detection import language_of  # noqa: E402
from pandora_dagster.runtime.token_counter import TokenCounter  # noqa: E402

TABLE = ROOT / "pandora_dagster" / "compression" / "salience" / "salience_table.json"
REGULARIZATION = 0.02
POWERS = (1.0, 1.25, 1.5, 2.0)
POWER_REASON = "facts that the documents benchmark keeps; the labels alone prefer more"
KINDS = {"message": UnitKind.SENTENCE, "quote": UnitKind.SENTENCE, "record": UnitKind.ROW, "header": UnitKind.HEADING}
OWN = ("_own_", "/own/")


@dataclass
class Document:
    """A labelled document, its features centred, and its labels."""

    kind: str
    language: str
    is_public: bool
    reading: TextReading
    names: list[str]
    features: np.ndarray
    controls: np.ndarray
    tokens: np.ndarray
    need: np.ndarray
    own: np.ndarray
    """Whether a unit is no context."""


def units_of(labelled: Sequence[dict[str, Any]]) -> tuple[Unit, ...]:
    """The labelled units; the heading above is what a unit needs."""
    units: list[Unit] = []
    head: int | None = None
    message = block = 0
    speaker = ""
    for i, one in enumerate(labelled):
        kind = KINDS.get(one["kind"]) or (UnitKind(one["kind"]) if one["kind"] in set(UnitKind) else UnitKind.SENTENCE)
        label = one.get("speaker") or ""
        message += bool(label) and (label != speaker or not message)
        block += kind is UnitKind.HEADING or label != speaker or (i > 0 and labelled[i - 1]["kind"] != one["kind"])
        speaker = label
        head = i if kind is UnitKind.HEADING else head
        text = (one["text"].removeprefix(f"{label}:").strip() if label else "") or one["text"]
        needs = (head,) if head is not None and head != i else ()
        units.append(Unit(i, kind, text, 0, 0, needs, message if label else 0, label, block, 0))
    return tuple(units)


def load(folder: Path, counter: TokenCounter) -> list[Document]:
    found: list[Document] = []
    for line in (x for path in sorted(folder.glob("part_*.jsonl")) for x in path.read_text(encoding="utf-8").splitlines()):
        raw = json.loads(line)
        if len(raw["units"]) < 6 or not any(u.get("need") for u in raw["units"]):
            continue
        units = units_of(raw["units"])
        reading = tokenized(units, language_of("\n".join(u.text for u in units)))
        rows = unit_features(reading)
        names = [n for n in rows[0] if n not in LENGTH_FEATURES]
        own = np.array([not u.is_context for u in units])
        tokens = np.array([counter.count(u.text) + 1 for u in units])
        gain = np.array([sum(terms.values()) for terms in weighted_terms(reading)])
        controls = np.column_stack([np.log(gain + 1), np.log(tokens)])
        public = not (str(raw["origin"]).lower().startswith("own") or any(mark in raw["id"] for mark in OWN))
        found.append(
            Document(
                raw["kind"], raw["language"], public, reading, names, np.array([[r[n] for n in names] for r in rows]),
                controls - controls[own].mean(0), tokens, np.array([u.get("need", 0) for u in raw["units"]]), own,
            )
        )  # fmt: skip
    return found


def fit(documents: Sequence[Document], power: float = 1.0) -> SalienceTable:
    """Both models, each document with the weight of the root of its size."""
    x = np.vstack([np.hstack([d.features, d.controls])[d.own] for d in documents])
    weight = np.concatenate([np.full(d.own.sum(), 1 / math.sqrt(d.own.sum())) for d in documents])
    need = np.concatenate([d.need[d.own] for d in documents])
    scale = x.std(0) + 1e-9
    models: list[LinearModel] = []
    for least in (1, 2):
        made = LogisticRegression(C=REGULARIZATION, max_iter=2000).fit(x / scale, need >= least, sample_weight=weight / weight.mean())
        names = documents[0].names
        weights = (made.coef_[0] / scale)[: len(names)]
        rounded = {name: round(float(w), 4) for name, w in zip(names, weights, strict=True)}
        models.append(LinearModel(bias=round(float(made.intercept_[0]), 4), weights=rounded))
    return SalienceTable(needed=models[0], needed_most=models[1], power=power)


def auc(documents: Sequence[Document], table: SalienceTable) -> dict[str, list[float]]:
    """For each document: AUC of `needed` and `needed_most`, over all pairs and over those of the same length."""
    found: dict[str, list[float]] = defaultdict(list)
    for d in documents:
        rows = [dict(zip(d.names, row, strict=True)) for row in d.features[d.own]]
        for least, model in ((1, table.needed), (2, table.needed_most)):
            score = np.array([model.probability(r) for r in rows])
            wanted, tokens = d.need[d.own] >= least, d.tokens[d.own]
            if 0 < wanted.sum() < len(wanted):
                found[f"AUC >= {least}"].append(float(roc_auc_score(wanted, score)))
                alike = np.abs(np.log(tokens[wanted][:, None] / tokens[~wanted][None, :])) < 0.3
                order = np.sign(score[wanted][:, None] - score[~wanted][None, :]) / 2 + 0.5
                if alike.sum() >= 10:
                    found[f"same length >= {least}"].append(float(order[alike].mean()))
    return found


def selected(documents: Sequence[Document], table: SalienceTable | None) -> dict[str, list[float]]:
    """Share of the needed units (by the root of their tokens) that the selection holds; None: coverage alone."""
    found: dict[str, list[float]] = defaultdict(list)
    for d in documents:
        terms = weighted_terms(d.reading)
        factors = reading_salience(d.reading, table) if table else [1.0] * len(d.need)
        for name, part, least in (("most at 1/6", 6, 2), ("most at 1/3", 3, 2), ("needed at 1/3", 3, 1)):
            choice = CoverageChoice(Candidates(d.reading.units, terms, [int(t) for t in d.tokens], factors))
            kept = [i for needs in choice.fill(int(d.tokens.sum() / part)) for i in needs]
            worth = np.sqrt(d.tokens) * d.own * (d.need >= least)
            if worth.sum():
                found[name].append(float(worth[list(set(kept))].sum() / worth.sum()))
    return found


def crossed(documents: Sequence[Document], parts: Sequence[Sequence[Document]], power: float) -> dict[str, list[float]]:
    """Figures of each part by a table fitted on the others."""
    found: dict[str, list[float]] = defaultdict(list)
    for part in parts:
        inside = {id(d) for d in part}
        table = fit([d for d in documents if id(d) not in inside], power)
        for measured in (auc(part, table), selected(part, table)):
            for name, values in measured.items():
                found[name] += values
    return found


def groups(documents: Sequence[Document], key: Callable[[Document], str]) -> list[list[Document]]:
    by: dict[str, list[Document]] = defaultdict(list)
    for d in documents:
        by[key(d)].append(d)
    return list(by.values())


def _print(name: str, found: dict[str, list[float]]) -> dict[str, float]:
    means = {k: round(float(np.mean(v)), 3) for k, v in found.items()}
    print(f"{name:28}", "  ".join(f"{k} {v:.3f}" for k, v in means.items()), flush=True)
    return means


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "salience")
    parser.add_argument("--power", type=float, default=1.25)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"{options.data}: no data there: expected labelled documents, part_*.jsonl")
        return 2
    documents = load(options.data, TokenCounter(ROOT / "data" / "tokenizer" / "cl100k_base.tiktoken"))
    units = sum(int(d.own.sum()) for d in documents)
    print(f"{len(documents)} documents, {units} units, {len(documents[0].names)} features, {dict(Counter(d.language for d in documents))}")
    _print("coverage alone", selected(documents, None))
    mixed = random.Random(1).sample(documents, len(documents))
    folds = [mixed[i::5] for i in range(5)]
    power = options.power
    by_power = {p: _print(f"five folds, power {p}", crossed(documents, folds, p)) for p in sorted({*POWERS, power})}
    print(f"power {power}: chosen by {POWER_REASON}")
    _print("a kind left out", crossed(documents, groups(documents, lambda d: d.kind), power))
    _print("a language left out", crossed(documents, groups(documents, lambda d: d.language), power))
    _print("public, fitted on own", crossed(documents, [[d for d in documents if d.is_public]], power))
    _print("own, fitted on public", crossed(documents, [[d for d in documents if not d.is_public]], power))
    if options.write:
        table = fit(documents, power)
        provenance = {
            "script": "benchmarks/fit_salience.py", "date": datetime.date.today().isoformat(), "documents": len(documents), "units": units,
            "labels": "needed at one third, needed at one sixth, by reading whole documents",
            "five_folds": by_power[power], "power_chosen_by": POWER_REASON,
        }  # fmt: skip
        models = {k: {"bias": m.bias, "weights": m.weights} for k, m in (("needed", table.needed), ("needed_most", table.needed_most))}
        TABLE.write_text(json.dumps({"provenance": provenance, "power": power, **models}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
