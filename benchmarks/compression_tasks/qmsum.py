"""QMSum: words of the gold spans that are kept, in runs of at least five, when a meeting is compressed with its query."""

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compression_tasks.literal import content_words, share

Compressor = Callable[[str, int, str], str]
RUN = 5
SHARES = {"1/6": 1 / 6, "1/5": 1 / 5, "1/4": 1 / 4, "1/3": 1 / 3}


@dataclass(frozen=True, slots=True)
class Meeting:
    turns: tuple[tuple[str, str], ...]
    questions: tuple[tuple[str, frozenset[int]], ...]

    @property
    def text(self) -> str:
        return "\n".join(f"{speaker}: {words}" for speaker, words in self.turns)


def meetings(data: Path) -> list[Meeting]:
    return [_meeting(json.loads(path.read_text(encoding="utf-8"))) for path in sorted((data / "qmsum").glob("*.json"))]


def _meeting(raw: dict) -> Meeting:
    turns = tuple((t["speaker"], " ".join(t["content"].split())) for t in raw["meeting_transcripts"])
    questions: list[tuple[str, frozenset[int]]] = []
    for question in raw["specific_query_list"]:
        gold = {i for a, b in question["relevant_text_span"] for i in range(int(a), min(int(b), len(turns) - 1) + 1)}
        if any(turns[i][1].split() for i in gold):
            questions.append((question["query"], frozenset(gold)))
    return Meeting(turns, tuple(questions))


def gold_kept(found: list[Meeting], compress: Compressor, count: Callable[[str], int], part: float) -> float:
    """Mean over the questions of the share of gold words kept."""
    shares: list[float] = []
    for meeting in found:
        text = meeting.text
        target = int(count(text) * part)
        for query, gold in meeting.questions:
            runs = _runs(compress(text, target, query).split())
            kept = all_ = 0
            for i in gold:
                words = meeting.turns[i][1].split()
                all_ += len(words)
                kept += _words_in_runs([meeting.turns[i][0].split()[-1] + ":", *words], runs)
            shares.append(share(kept, all_))
    return sum(shares) / len(shares)


def _runs(words: list[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(words[i : i + n]) for n in range(1, RUN + 1) for i in range(len(words) - n + 1))


def _words_in_runs(words: list[str], runs: frozenset[tuple[str, ...]]) -> int:
    """Words after the first (the speaker's mark) that stand in a kept run; a shorter turn is one run."""
    size = min(RUN, len(words))
    kept = bytearray(len(words))
    for i in range(len(words) - size + 1):
        if tuple(words[i : i + size]) in runs:
            kept[i : i + size] = b"\1" * size
    return sum(kept[1:])


def bm25_windows(text: str, target: int, query: str, count: Callable[[str], int], *, size: int = 8) -> str:
    """The baseline: windows of turns ranked by BM25, best first, in the order of the meeting."""
    lines = text.split("\n")
    windows = [lines[i : i + size] for i in range(0, len(lines), size)]
    terms = [Counter(content_words("\n".join(w))) for w in windows]
    mean = sum(t.total() for t in terms) / len(terms)
    asked = [(q, math.log(1 + (len(terms) - n + 0.5) / (n + 0.5))) for q in content_words(query) if (n := sum(q in t for t in terms))]
    scores = [sum(r * t[q] * 2.2 / (t[q] + 1.2 * (0.25 + 0.75 * t.total() / mean)) for q, r in asked) for t in terms]
    kept: list[int] = []
    left = target
    for i in sorted(range(len(windows)), key=lambda i: -scores[i]):
        if (cost := count("\n".join(windows[i]) + "\n")) <= left:
            kept.append(i)
            left -= cost
    return "\n".join(line for i in sorted(kept) for line in windows[i])
