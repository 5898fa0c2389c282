"""What the search is compared with: BM25 over single messages with stop words, stems and dates as text, packed hit by hit.

Knows one user's messages in memory. A hit goes in with its two neighbours in the session, as `docs` describe the baseline.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from math import log

from pandora_dagster.language.dates import display_date
from pandora_dagster.language.terms import TermReader

K1, B = 1.2, 0.75


@dataclass(slots=True)
class PlainBm25:
    """`count` gives the tokens of a text."""

    count: Callable[[str], int]
    reader: TermReader = field(default_factory=TermReader)
    costs: list[int] = field(default_factory=list[int])
    lines: list[str] = field(default_factory=list[str])
    ids: list[str] = field(default_factory=list[str])
    sessions: list[str] = field(default_factory=list[str])
    lengths: list[int] = field(default_factory=list[int])
    postings: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, conversation: dict[str, object]) -> None:
        day = display_date(str(conversation["created_at"]))
        for message in conversation["messages"]:  # type: ignore[attr-defined]
            line = f"{day} {message['name']}: {message['content']}"
            terms = Counter(self.reader.terms(line))
            for term, count in terms.items():
                self.postings[term][len(self.lines)] = count
            self.lines.append(line)
            self.costs.append(self.count(line + "\n"))
            self.ids.append(message["id"])
            self.sessions.append(str(conversation["id"]))
            self.lengths.append(sum(terms.values()))

    def packed(self, question: str, budget: int) -> tuple[tuple[str, ...], str]:
        """Ids, best first, and the packed text."""
        room, chosen = budget, list[int]()
        for best in self._order(question):
            for place in (best, best - 1, best + 1):
                if place in chosen or not 0 <= place < len(self.lines) or self.sessions[place] != self.sessions[best]:
                    continue
                if self.costs[place] <= room:
                    room -= self.costs[place]
                    chosen.append(place)
            if room < budget * 0.02:
                break
        return tuple(self.ids[i] for i in chosen), "\n".join(self.lines[i] for i in sorted(chosen))

    def order(self, question: str) -> tuple[str, ...]:
        """Ids of all messages that share a term with the question, best first."""
        return tuple(self.ids[place] for place in self._order(question))

    def _order(self, question: str) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        mean = sum(self.lengths) / len(self.lengths)
        for term in set(self.reader.terms(question)):
            found = self.postings.get(term, {})
            rarity = log(1 + (len(self.lines) - len(found) + 0.5) / (len(found) + 0.5))
            for place, count in found.items():
                scores[place] += rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * self.lengths[place] / mean))
        return heapq.nsmallest(len(scores), scores, key=lambda i: (-scores[i], i))
