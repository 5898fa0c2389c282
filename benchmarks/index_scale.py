"""How the turn index grows: search, last turns and one turn's arrival from 1,000 to 1,000,000 turns, and a rebuild in its parts.

Text is made of a Zipf vocabulary. SQLite's FTS5 holds the same messages and answers the same questions. `--quick` stops at 10,000.
Each size has a row of times by the clock and one of processor time, which other processes do not lengthen. Exit code 1 where
something grows more than GROWTH allows.
"""

import argparse
import random
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from statistics import quantiles
from time import perf_counter, process_time

from benchmarks.index_rebuild_parts import rebuild_parts
from pandora_dagster.contracts.turns import IndexedMessage, TurnRow
from pandora_dagster.stores.disk.duckdb_file import DuckDBFile
from pandora_dagster.stores.search.turn_index import DuckTurnIndex
from pandora_dagster.stores.search.turn_tables import TURN_SCHEMA

VOCABULARY, EXPONENT = 200_000, 1.07
COMMONEST = 100
"""So many words stand for stop words: no question asks for them."""
QUERY_WORDS, ANSWER_WORDS = 20, 40
SESSION_TURNS = 20
SIZES = (1_000, 10_000, 100_000, 1_000_000)
BATCH = 4_000
MOST = 60
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
GROWTH = (("search", 95, 6.0), ("last 20", 50, 2.0), ("index one turn", 50, 2.0))
"""What may grow to how many times its processor time at 10,000 turns, at which percentile: the last two are flat but for the opening
of a file a hundred times as large."""
CLOCKS = {"by the clock": perf_counter, "processor": process_time}
Sentence = list[str]
Times = dict[str, list[float]]
"""Milliseconds by clock."""


class Writer:
    """Writes turns: the same ones for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.words = [_word(n) for n in range(VOCABULARY)]
        self.weights = list(accumulate(1 / n**EXPONENT for n in range(1, VOCABULARY + 1)))

    def random_words(self, count: int) -> Sentence:
        return self.random.choices(self.words, cum_weights=self.weights, k=count)

    def turn(self, number: int, user: str) -> TurnRow:
        created = f"20{10 + number // 400_000:02d}-{1 + number // 28 % 12:02d}-{1 + number % 28:02d}T10:00:00Z"
        texts = (("user", self.random_words(QUERY_WORDS)), ("assistant", self.random_words(ANSWER_WORDS)))
        messages = tuple(
            IndexedMessage(id=f"m{place}", role=role, text=" ".join(words), created_at=created) for place, (role, words) in enumerate(texts)
        )
        return TurnRow(
            user_id=user,
            turn_id=f"turn_{number:06d}",
            number=number,
            session_id=f"s{number // SESSION_TURNS}",
            state="saved",
            created_at=created,
            last_activity=created,
            recorded=True,
            messages=messages,
        )


def _word(number: int) -> str:
    parts: list[str] = []
    number += len(_SYLLABLES)
    while number:
        number, rest = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[rest])
    return "".join(parts)


def questions(writer: Writer, rows: list[TurnRow], count: int) -> list[tuple[str, str]]:
    """(user, 3 to 6 words of one of the user's turns), the commonest words left out."""
    common = set(writer.words[:COMMONEST])
    made: list[tuple[str, str]] = []
    while len(made) < count:
        row = writer.random.choice(rows)
        words = [w for m in row.messages for w in m.text.split() if w not in common]
        if len(words) > 6:
            made.append((row.user_id, " ".join(writer.random.sample(words, writer.random.randint(3, 6)))))
    return made


def timed(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return 1e3 * (perf_counter() - started)


def times_of(runs: Iterable[Callable[[], object]]) -> Times:
    """What each run took, by every clock."""
    found: Times = {name: [] for name in CLOCKS}
    for run in runs:
        started = [clock() for clock in CLOCKS.values()]
        run()
        for (name, clock), begin in zip(CLOCKS.items(), started, strict=True):
            found[name].append(1e3 * (clock() - begin))
    return found


def spread(times: list[float]) -> str:
    return f"{p(times, 50):.1f} / {p(times, 95):.1f}"


def p(times: list[float], percent: int) -> float:
    return quantiles(times, n=100)[percent - 1]


class Fts5:
    """The same messages in SQLite."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path)
        self.db.execute("CREATE VIRTUAL TABLE said USING fts5(user UNINDEXED, text, tokenize='porter')")

    def put(self, rows: list[TurnRow]) -> None:
        with self.db:
            self.db.executemany("INSERT INTO said VALUES (?, ?)", [(r.user_id, m.text) for r in rows for m in r.messages])

    def search(self, user: str, query: str) -> list[tuple[str]]:
        match = " OR ".join(f'"{word}"' for word in query.split())
        return self.db.execute(
            "SELECT text FROM said WHERE said MATCH ? AND user = ? ORDER BY rank LIMIT ?", (match, user, MOST)
        ).fetchall()


def grown(folder: Path, users: int, sizes: tuple[int, ...], asked: int) -> Iterator[tuple[int, dict[str, Times], float]]:
    """(size, milliseconds by what was done, seconds of filling) after each size."""
    writer, index, other = Writer(), DuckTurnIndex(DuckDBFile(folder / f"{users}.duckdb", TURN_SCHEMA)), Fts5(folder / f"{users}.sqlite")
    number, sample, filling = 0, list[TurnRow](), 0.0
    for size in sizes:
        while number < size:
            rows = [writer.turn(n // users + 1, f"user{n % users}") for n in range(number, min(size, number + BATCH))]
            filling += timed(lambda rows=rows: index.put(rows)) / 1e3
            other.put(rows)
            number += len(rows)
            sample = [*sample[-20_000:], *writer.random.sample(rows, min(200, len(rows)))]
        asked_for = questions(writer, sample, asked)
        yield size, _measured(writer, index, other, asked_for, number, users), filling
        number += asked
    other.db.close()


def _measured(writer: Writer, index: DuckTurnIndex, other: Fts5, asked: list[tuple[str, str]], number: int, users: int) -> dict[str, Times]:
    new = [writer.turn((number + i) // users + 1, f"user{(number + i) % users}") for i in range(len(asked))]
    for user, query in asked[:3]:
        index.messages(user, query, limit=MOST)
    return {
        "search": times_of((lambda u=u, q=q: index.messages(u, q, limit=MOST)) for u, q in asked),
        "FTS5 search": times_of((lambda u=u, q=q: other.search(u, q)) for u, q in asked),
        "last 20": times_of((lambda u=u: index.rows(u, limit=20)) for u, _ in asked),
        "index one turn": times_of((lambda row=row: index.put([row])) for row in new),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index_scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="stop at 10,000 turns")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="stop at this many turns")
    parser.add_argument("--searches", type=int, default=100, help="timed runs of each kind at each size")
    parser.add_argument("--users", type=int, nargs="*", default=[1, 1_000], help="spread over so many users, one table each")
    asked = parser.parse_args(arguments)
    sizes = tuple(s for s in SIZES if s <= (10_000 if asked.quick else asked.largest))
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for users in asked.users:
            columns = "turns | | search | FTS5 search | last 20 | index one turn | search over FTS5, p95 | MB | filled, s"
            print(f"\n{users} user(s), milliseconds p50 / p95\n| {columns} |")
            print("|---|---|---|---|---|---|---|---|---|", flush=True)
            found: dict[int, dict[str, Times]] = {}
            for size, times, filling in grown(Path(folder), users, sizes, asked.searches):
                megabytes = sum(file.stat().st_size for file in Path(folder).glob(f"{users}.duckdb*")) / 1e6
                for clock in CLOCKS:
                    cells = " | ".join(spread(v[clock]) for v in times.values())
                    ratio = p(times["search"][clock], 95) / p(times["FTS5 search"][clock], 95)
                    print(f"| {size:,} | {clock} | {cells} | {ratio:.1f} | {megabytes:.0f} | {filling:.0f} |", flush=True)
                found[size] = times
            base, largest = min(10_000, sizes[-1]), sizes[-1]
            for what, at, most in GROWTH:
                grew = p(found[largest][what]["processor"], at) / p(found[base][what]["processor"], at)
                print(f"processor time of {what}, p{at}: at {largest:,} turns {grew:.1f} times that at {base:,}; expected at most {most:g}")
                missed |= grew > most
        rebuild_parts(Path(folder) / "store", 1_000 if asked.quick else 10_000)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
