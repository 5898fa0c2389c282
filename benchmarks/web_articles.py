"""Prints how much of the article text of public pages `read_page` finds, and how much that is not article it adds, beside trafilatura.

    python -m benchmarks.web_articles FOLDER

FOLDER is a checkout of scrapinghub/article-extraction-benchmark, with `html/` and `ground-truth.json`. Texts are compared by groups of four
words, as its `evaluate.py` does: each page counts the same. Pages alternate by their key between the half that thresholds were chosen on
and the other. The article of a page is the text of its zones of text, lists and tables; trafilatura runs without comments. Exit code 1
where `read_page` is worse.
"""

import argparse
import gzip
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import trafilatura

from pandora_dagster.contracts.web.fetched import FetchedPage
from pandora_dagster.contracts.web.page_doc import MIN_CONFIDENCE, ZoneKind
from pandora_dagster.documents.webpages.page_reader import read_page

WORDS = 4
ARTICLE = frozenset({ZoneKind.MAIN_TEXT, ZoneKind.LIST, ZoneKind.TABLE, ZoneKind.PRODUCT_INFO, ZoneKind.PRICING})
_WORD = re.compile(r"\w+")


def shingles(text: str) -> Counter[tuple[str, ...]]:
    """The groups of four words of a text; one group for a shorter text."""
    words = _WORD.findall(text)
    groups = [tuple(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1)]
    return Counter(groups or ([tuple(words)] if words else []))


def shares(true: str, found: str) -> tuple[float, float, float]:
    """Groups that are found, added and missed, as shares of all."""
    wanted, given = shingles(true), shingles(found)
    both = (wanted & given).total()
    counts = (both, given.total() - both, wanted.total() - both)
    total = sum(counts)
    return (counts[0] / total, counts[1] / total, counts[2] / total) if total else (0.0, 0.0, 0.0)


def score(pages: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    """F1, precision and recall: means over the pages where they are defined, as `evaluate.py` takes them."""
    precision = [hit / (hit + added) for hit, added, _ in pages if hit + added]
    recall = [hit / (hit + missed) for hit, _, missed in pages if hit + missed]
    p, r = sum(precision) / len(precision), sum(recall) / len(recall)
    return 2 * p * r / (p + r) if p + r else 0.0, p, r


def article(url: str, body: bytes) -> str:
    """The text of the zones of an article."""
    doc = read_page(FetchedPage(url, url, 200, {"content-type": "text/html"}, body, datetime.now(UTC)))
    return "\n".join(zone.text for zone in doc.zones if zone.visible and zone.confidence >= MIN_CONFIDENCE and zone.kind in ARTICLE)


def main() -> int:
    """Print the scores of both halves and of all pages."""
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    ask.add_argument("folder", type=Path)
    folder: Path = ask.parse_args().folder
    truth = json.loads((folder / "ground-truth.json").read_text(encoding="utf-8"))
    ours: list[tuple[float, float, float]] = []
    theirs: list[tuple[float, float, float]] = []
    seconds = [0.0, 0.0]
    for key in sorted(truth):
        body = gzip.decompress((folder / "html" / f"{key}.html.gz").read_bytes())
        started = time.perf_counter()
        ours.append(shares(truth[key]["articleBody"], article(truth[key]["url"], body)))
        read = time.perf_counter()
        theirs.append(shares(truth[key]["articleBody"], trafilatura.extract(body, include_comments=False) or ""))
        seconds = [seconds[0] + read - started, seconds[1] + time.perf_counter() - read]
    print(f"{'':12} {'pages':>6} {'F1':>7} {'P':>7} {'R':>7}")
    for name, pages in (("read_page", ours), ("trafilatura", theirs)):
        for half, part in (("chosen on", pages[::2]), ("held back", pages[1::2]), ("all", pages)):
            print(f"{name:12} {half:10} {len(part):4} {' '.join(f'{figure:7.4f}' for figure in score(part))}")
    print(f"seconds: read_page {seconds[0]:.1f}, trafilatura {seconds[1]:.1f}")
    return 0 if score(ours)[0] >= score(theirs)[0] else 1


if __name__ == "__main__":
    sys.exit(main())
