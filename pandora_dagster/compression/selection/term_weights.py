"""Weights of the words, names, values and codes of each unit."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.language.tokens import Token, TokenKind

Term = tuple[TokenKind, str]
Slot = tuple[str, str]
RECORDS = frozenset((UnitKind.ROW, UnitKind.LOG, UnitKind.CODE, UnitKind.HUNK, UnitKind.HEADER))
"""Kinds whose words are data: no speaker says them."""
_HALF_LIFE = 6
"""Messages after which a mention weighs half: the record that is in hand comes before those of earlier requests."""
_OLDEST = 0.05
_HARD = frozenset((TokenKind.VALUE, TokenKind.CODE))


@dataclass(frozen=True, slots=True)
class TermWeights:
    """The constants of the coverage, chosen by `benchmarks/fit_salience.py` on labelled documents."""

    word: float = 0.5
    name: float = 1.0
    value: float = 6.0
    code: float = 2.0
    repeated: float = 0.5
    """What a word gains by being said often, for each e-fold."""
    mentioned: float = 0.8
    """Share of a record's value that depends on somebody mentioning it."""
    superseded: float = 0.4
    """Share that a value keeps where a later message gives another one for the same thing."""


def weighted_terms(reading: TextReading, weights: TermWeights) -> list[dict[Term, float]]:
    """For each unit, the terms that it says with what each is worth."""
    found = [frozenset((t.kind, t.key) for t in held) for held in reading.tokens]
    spoken = [u.kind is not UnitKind.SPEAKER for u in reading.units]
    holders = Counter(term for terms, counts in zip(found, spoken, strict=True) if counts for term in terms)
    worth = {term: _worth(term, count, weights) for term, count in holders.items()}
    said = mentions(reading)
    old = {place: weights.superseded for place in _superseded(reading)}
    result: list[dict[Term, float]] = []
    for unit, terms in zip(reading.units, found, strict=True):
        is_record = unit.kind in RECORDS and unit.kind is not UnitKind.HEADER
        own: dict[Term, float] = {}
        for term in sorted(terms):
            scale = old.get((unit.order, term), 1.0)
            if is_record and said and (term[0] in _HARD or unit.kind is UnitKind.ROW):
                scale *= 1 + 2 * weights.mentioned * said[term[1]] if term[1] in said else 1 - weights.mentioned
            own[term] = scale * worth.get(term, 0.0)
            if unit.message and unit.kind is UnitKind.ROW and term[0] is TokenKind.CODE:
                own[_in_record(term, unit)] = 0.0
        result.append(own)
    return result


def _worth(term: Term, count: int, weights: TermWeights) -> float:
    kind = term[0]
    if kind in _HARD:
        return (weights.value if kind is TokenKind.VALUE else weights.code) / (1 + 0.15 * (count - 1))
    base = weights.word if kind is TokenKind.WORD else weights.name
    return base * (1 + weights.repeated * math.log(count))


def mentions(reading: TextReading) -> dict[str, float]:
    """Keys that people and calls mention, with the weight of the latest mention, 0.03 to 1; tools mention nothing."""
    found: dict[str, float] = {}
    last = max((u.message for u in reading.units), default=0)
    for unit, held in zip(reading.units, reading.tokens, strict=True):
        if unit.kind in RECORDS or is_tool(unit):
            continue
        part = 1.0 if unit.kind is UnitKind.CALL or not is_assistant(unit) else 0.7
        for token in held:
            found[token.key] = max(found.get(token.key, 0.0), part * _recency(unit, last))
    return found


def _recency(unit: Unit, last: int) -> float:
    return _OLDEST + (1 - _OLDEST) * 0.5 ** ((last - unit.message) / _HALF_LIFE)


def first_terms(reading: TextReading) -> dict[Term, float]:
    """What a talk has to keep before anything else, with its weight: values and codes of calls and results that people or calls mention,
    which the next call needs, and what a user says; in a talk without tools all values, codes and names. {} for other texts."""
    if not any(u.message for u in reading.units):
        return {}
    said = mentions(reading)
    records: dict[Term, float] = {}
    asked: dict[Term, float] = {}
    spoken: dict[Term, float] = {}
    rows = _rows(reading)
    last = max(u.message for u in reading.units)
    speakers = {t.key for u, held in zip(reading.units, reading.tokens, strict=True) if u.kind is UnitKind.SPEAKER for t in held}
    for unit, held in zip(reading.units, reading.tokens, strict=True):
        hard = [(t.kind, t.key) for t in held if t.kind is not TokenKind.WORD and t.key not in speakers]
        spoken |= dict.fromkeys(hard, 1.0)
        if unit.message and (unit.kind in (UnitKind.ROW, UnitKind.CALL) or is_tool(unit)):
            own = 0.0 if unit.kind in (UnitKind.ROW, UnitKind.CALL) else _recency(unit, last)
            known = {t: max(own, said.get(t[1], 0.0)) for t in hard if t[0] in _HARD and (own or t[1] in said)}
            records |= known
            if unit.kind is UnitKind.ROW:
                codes = [(term, weight) for term, weight in known.items() if term[0] is TokenKind.CODE]
                records |= {_in_record(term, unit): weight / len(rows[term]) for term, weight in codes}
        elif not is_assistant(unit):
            asked |= {term: said[term[1]] for term in hard if term[1] in said}
    return asked | records if records else spoken


def _in_record(term: Term, unit: Unit) -> Term:
    """A code in one of its rows, with the values that belong to it: more than the code somewhere. Equal rows are one."""
    return term[0], f"{term[1]} in {unit.text}"


def _rows(reading: TextReading) -> dict[Term, set[str]]:
    """The different rows that hold each code."""
    rows: dict[Term, set[str]] = {}
    for unit, held in zip(reading.units, reading.tokens, strict=True):
        for token in held if unit.kind is UnitKind.ROW else ():
            rows.setdefault((token.kind, token.key), set()).add(unit.text)
    return rows


def is_tool(unit: Unit) -> bool:
    return unit.speaker.lower().startswith(("tool", "action", "function"))


def is_assistant(unit: Unit) -> bool:
    return unit.speaker.lower().startswith(("assistant", "agent", "ai"))


def _superseded(reading: TextReading) -> Iterator[tuple[int, Term]]:
    """Values of a talk that a later message replaces: the same word before it and the same unit, another number."""
    later: dict[Slot, tuple[int, frozenset[str]]] = {}
    for unit, held in zip(reversed(reading.units), reversed(reading.tokens), strict=True):
        if not unit.message or unit.kind in RECORDS:
            continue
        numbers: dict[Slot, set[str]] = {}
        for slot, number, term in _slots(held):
            if slot in later and later[slot][0] > unit.message and number not in later[slot][1]:
                yield unit.order, term
            numbers.setdefault(slot, set()).add(number)
        for slot, own in numbers.items():
            if slot not in later:
                later[slot] = (unit.message, frozenset(own))


def _slots(held: tuple[Token, ...]) -> Iterator[tuple[Slot, str, Term]]:
    """(what it is a value of, its unit), the number, its term: "voiture 8", "kept at 5 %"."""
    before = ""
    for token in held:
        if token.kind is TokenKind.VALUE:
            number, _, unit = token.key.partition(" ")
            yield (before or unit, "" if unit.startswith("(") else unit), number, (token.kind, token.key)
        elif token.kind in (TokenKind.WORD, TokenKind.NAME):
            before = token.key
