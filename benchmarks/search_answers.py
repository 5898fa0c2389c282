"""How often `pandora ask` answers a question of one fact: all content words of the answer in the response's first 100 words.

Knows questions with answers and a house whose history holds them. The draw is fixed; every question is a session of its own.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pandora_dagster.text.words import TermReader
from pandora_dagster.wiring import House

ASKED = 100
FIRST_WORDS = 100
CATEGORY = "single-hop"
_SEED = 5


@dataclass(frozen=True, slots=True)
class Reply:
    """One question, what should be said, and what was said; `right` where all of it was."""

    user: str
    question: str
    wanted: str
    said: str
    right: bool


def replies(house: House, questions: Sequence[dict[str, object]], *, count: int = ASKED) -> tuple[Reply, ...]:
    """Ask a fixed draw of the questions of one fact that have an answer."""
    single = [q for q in questions if q["category"] == CATEGORY and str(q.get("answer", "")).strip()]
    drawn = random.Random(_SEED).sample(single, min(count, len(single)))
    reader = TermReader()
    return tuple(_asked(house, q, f"asked-{number}", reader) for number, q in enumerate(drawn))


def _asked(house: House, question: dict[str, object], session: str, reader: TermReader) -> Reply:
    user, words, wanted = str(question["user_id"]), str(question["question"]), str(question["answer"])
    key = house.start(words, user=user, session=session)
    house.run_turn(key, on_report=lambda report: None)
    said = house.answered(key).response
    first = set(reader.terms(" ".join(said.split()[:FIRST_WORDS])))
    return Reply(user, words, wanted, said, set(reader.terms(wanted)) <= first)
