"""Prints what compression keeps, beside baselines computed on the same data in the same run. No model.

    python benchmarks/compression.py [--data ../shared/data] [--only tau_bench,domains,locomo,qmsum,again,speed]

A HALT counts as nothing kept; where an output is over its target or no condensed text, or a figure is missed, the exit code is 1.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from compression_tasks import domains, locomo, qmsum, speed, tau_bench  # noqa: E402
from compression_tasks.literal import Tokens  # noqa: E402

from pandora_dagster.compression.compressor import compress  # noqa: E402
from pandora_dagster.compression.verification.facts import Outcome  # noqa: E402
from pandora_dagster.compression.verification.summary_check import check_summary  # noqa: E402
from pandora_dagster.contracts.compression_results import CompressionRequest  # noqa: E402

PARTS = ("tau_bench", "domains", "locomo", "qmsum", "again", "speed")


@dataclass
class Run:
    """The compressor under test, and what its outputs were like."""

    tokens: Tokens
    outputs: int = 0
    halts: list[str] = field(default_factory=list)
    over: int = 0
    no_summaries: list[str] = field(default_factory=list)
    invented: int = 0

    def compress(self, text: str, target: int, query: str | None = None) -> str:
        result = compress(CompressionRequest(text, query=query or "", target=target), self.tokens)
        if result.text is None:
            self.halts.append(result.halted or "")
            return ""
        if result.text != text:
            self.outputs += 1
            self.over += self.tokens.count(result.text) > target
            self.no_summaries += check_summary(result.text, text, target, self.tokens)
            self.invented += sum(v.outcome in (Outcome.INVENTED, Outcome.MUTATED) for v in result.verification.verdicts)
        return result.text


@dataclass(frozen=True)
class Figure:
    """A row of the table."""

    task: str
    value: float
    least: float
    baseline: str
    unit: str = "%"

    @property
    def is_met(self) -> bool:
        """`least` is the most that may be where it is negative, and the very number where there is no unit."""
        if self.least < 0:
            return self.value <= -self.least
        return self.value == self.least if self.unit == "" else round(self.value, 1) >= self.least


def tau_figures(data: Path, run: Run) -> Iterator[Figure]:
    calls = tau_bench.write_calls(data)
    blind = run.tokens.head_and_tail
    for target, least_all, least_bound in ((1_000, 97.0, 90.0), (1_500, 99.0, 93.0)):
        value, base = tau_bench.all_there(calls, run.compress, target), tau_bench.all_there(calls, blind, target)
        yield Figure(f"tau-bench, all arguments there, {target} tokens", value, least_all, f"head+tail {base:.1f}")
        value = tau_bench.bound(calls, run.compress, target)
        base = tau_bench.bound(calls, blind, target, by_message=True)
        yield Figure(f"tau-bench, bound, {target} tokens", value, least_bound, f"head+tail {base:.1f}")
    yield Figure("tau-bench, rolling 1,500 -> 1,000", tau_bench.rolling(data, run.compress, run.tokens.count), 94.0, "")


def domain_figures(data: Path, run: Run) -> Iterator[Figure]:
    """What tools give back: identifiers of a result that stood before it, in domains made up here and in the airline talks."""
    count, blind = run.tokens.count, run.tokens.head_and_tail
    for name, cuts in (("five made-up domains", domains.cuts()), ("airline, before results", domains.airline_cuts(data))):
        value, base = (domains.all_there(cuts, how, 1_000, count) for how in (run.compress, blind))
        yield Figure(f"{name}: identifiers of a result, 1,000 tokens", value, 86.0, f"head+tail {base:.1f}")


def locomo_figures(data: Path, run: Run) -> Iterator[Figure]:
    count, tail = run.tokens.count, run.tokens.tail
    for ratio, least in ((5.8, 95.0), (10.0, 92.0)):
        value, base = (locomo.facts_kept(data, how, count, ratio) for how in (run.compress, tail))
        yield Figure(f"LoCoMo hard facts per session, {ratio}:1", value, least, f"tail {base:.1f}")
    words, near = locomo.answers_kept(data, run.compress, count)
    base_words, base_near = locomo.answers_kept(data, tail, count)
    yield Figure("LoCoMo answer words, 5.8:1", words, 68.0, f"tail {base_words:.1f}")
    yield Figure("LoCoMo answer words within 30 words, 5.8:1", near, 45.0, f"tail {base_near:.1f}")


def qmsum_figures(data: Path, run: Run) -> Iterator[Figure]:
    found = qmsum.meetings(data)
    count = run.tokens.count
    for (name, part), least in zip(qmsum.SHARES.items(), (64.0, 66.0, 71.0, 78.0), strict=True):
        value = qmsum.gold_kept(found, run.compress, count, part)
        windows = qmsum.gold_kept(found, lambda t, n, q: qmsum.bm25_windows(t, n, q, count), count, part)
        head = qmsum.gold_kept(found, lambda t, n, _: run.tokens.head(t, n), count, part)
        yield Figure(f"QMSum gold words, {name}", value, least, f"BM25 {windows:.1f}, head {head:.1f}")


def again_figures(data: Path, run: Run) -> Iterator[Figure]:
    """Facts lost by a second and a third pass at the same target."""
    texts = [(call.before, 1_000) for call in tau_bench.write_calls(data)[::4]]
    sessions = [locomo.as_text(s) for group in locomo.sessions(data).values() for s in group][::4]
    texts += [(text, int(run.tokens.count(text) / 5.8)) for text in sessions]
    for passes in (2, 3):
        yield Figure(f"facts lost by pass {passes}", float(sum(_lost(t, n, passes, run) for t, n in texts)), 0.0, "", unit="")


def _lost(text: str, target: int, passes: int, run: Run) -> int:
    """Facts of the first pass that a later pass over its own output at the same target loses."""
    first = compress(CompressionRequest(text, target=target), run.tokens)
    latest = first
    for _ in range(passes - 1):
        if latest.text is None:
            return 0
        latest = compress(CompressionRequest(latest.text, target=target), run.tokens, original_facts=first.original_facts)
    return len({f.text for f in latest.verification.lost} - {f.text for f in first.verification.lost})


def speed_figures(data: Path, run: Run) -> Iterator[Figure]:
    talk = "\n".join(locomo.as_text(s) for group in locomo.sessions(data).values() for s in group)
    text = speed.of_length(talk, 12_000, run.tokens)
    own = speed.seconds(lambda: compress(CompressionRequest(text, target=2_000), run.tokens))
    rank = speed.lexrank(text)
    times = speed.seconds(rank, times=1) / own if rank else float("nan")
    yield Figure(
        "12,000 tokens: times faster than LexRank", times, 10.0, "" if rank else f"sumy is not installed; own time {own:.2f} s", unit="x"
    )
    per_token: list[float] = []
    for tokens in (10_000, 100_000, 1_000_000):
        longer = speed.of_length(talk, tokens, run.tokens)
        per_token.append(
            1e6 * speed.seconds(lambda t=longer, n=tokens: compress(CompressionRequest(t, target=n // 6), run.tokens), times=1) / tokens
        )
    shown = " / ".join(f"{value:.0f}" for value in per_token)
    yield Figure("time per token at 1,000,000 over 10,000 tokens", per_token[-1] / per_token[0], -2.0, f"{shown} us a token", unit="x")
    fresh = lambda: Tokens(data / "tokenizer" / "cl100k_base.tiktoken")  # noqa: E731
    within, counting = fresh(), fresh()
    count_time = speed.seconds(lambda: counting.counter._encoding.encode_ordinary(text), times=30)
    same_time = speed.seconds(lambda: _uncached(within, text), times=30)
    yield Figure("within budget: time over its token count", same_time / count_time, -1.1, "comes back unchanged", unit="x")


class _Counting:
    """A counter that remembers nothing."""

    def __init__(self, tokens: Tokens) -> None:
        self._encode = tokens.counter._encoding.encode_ordinary

    def count(self, text: str) -> int:
        return len(self._encode(text))


def _uncached(tokens: Tokens, text: str) -> None:
    result = compress(CompressionRequest(text, target=1_000_000), _Counting(tokens))
    if result.text != text:
        raise SystemExit("a text within its budget was changed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    if not (options.data / "tokenizer").is_dir():
        print(f"{options.data}: no data there: expected the folders tau_bench, locomo, qmsum and tokenizer")
        return 2
    run = Run(Tokens(options.data / "tokenizer" / "cl100k_base.tiktoken"))
    parts: dict[str, Callable[[Path, Run], Iterator[Figure]]] = {
        "tau_bench": tau_figures, "domains": domain_figures, "locomo": locomo_figures, "qmsum": qmsum_figures, "again": again_figures, "speed": speed_figures,  # noqa: E501
    }  # fmt: skip
    missed: list[str] = []
    print(f"{'task':55} {'here':>8} {'wanted':>9}   baseline, same data, same run")
    for part in options.only.split(","):
        for figure in parts[part](options.data, run):
            _print(figure)
            missed += [] if figure.is_met else [figure.task]
    print(f"\n{run.outputs} outputs; over target {run.over}; no condensed text {len(run.no_summaries)}; halted {len(run.halts)}; "
          f"values invented or changed {run.invented}")  # fmt: skip
    for reason in (*run.halts, *run.no_summaries)[:5]:
        print(f"  {reason}")
    for task in missed:
        print(f"  missed: {task}")
    return 1 if run.over or run.no_summaries or missed else 0


def _print(figure: Figure) -> None:
    wanted = f"<= {-figure.least:g}" if figure.least < 0 else f"= {figure.least:g}" if figure.unit == "" else f">= {figure.least:g}"
    print(f"{figure.task:55} {figure.value:7.1f}{figure.unit:1} {wanted:>9}   {figure.baseline}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
