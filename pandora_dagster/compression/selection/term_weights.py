"""What the units of a text say, as terms with weights, and which terms a talk has to keep before others.

A term is a kind and a key: `(VALUE, "9 €")`, `(WORD, "ferri")`. Its weight depends on its kind and on how many units have it: a word that
is said often is what the text is about, an exact value that is everywhere distinguishes nothing.
"""

import math
from collections import Counter

from pandora_dagster.compression.salience.text_reading import TextReading
from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.language.tokens import TokenKind

Term = tuple[TokenKind, str]
RECORD_KINDS = frozenset((UnitKind.ROW, UnitKind.LOG, UnitKind.CODE, UnitKind.HUNK, UnitKind.HEADER))
"""Kinds of units whose words are data: no speaker says them."""
EXACT_KINDS = frozenset((TokenKind.VALUE, TokenKind.CODE))
"""Kinds of tokens that are only right letter by letter."""
_BASE_WEIGHTS = {TokenKind.WORD: 0.5, TokenKind.NAME: 1.0, TokenKind.VALUE: 6.0, TokenKind.CODE: 2.0}
"""Chosen on labelled documents: by the share of the needed units in texts shortened to a sixth and to a third."""
_FREQUENCY_GAIN = 0.5
"""What a word or name gains, as a share of its weight, for each e-fold of the units that have it."""
_FREQUENCY_LOSS = 0.15
"""By how much each further unit raises the divisor of the weight of a value or code."""
_HALF_LIFE_MESSAGES = 6
"""Messages after which a mention weighs half: the record that is in hand comes before those of earlier requests."""
_OLDEST_MENTION, _ASSISTANT_MENTION = 0.05, 0.4
"""Weight of a mention that is long past, and of one by an assistant, where the newest one by a user or a call weighs 1."""
_BARE_RESULT_SHARE = 0.3
"""Weight of the values of a result without any word (`833.0`), which no message mentions yet; that of other texts of tools is 1."""
_NAME_SHARE = 0.7
"""Weight of a name in the row that has it, where that of a code is 1: a name is mentioned for more than its row."""
_SCOPED_KINDS = {TokenKind.CODE: 1.0, TokenKind.NAME: _NAME_SHARE}
"""Kinds of terms of a row by which a mention asks for the whole row: `HAT001`, `Daiki Li`."""


def weighted_terms(reading: TextReading) -> list[dict[Term, float]]:
    """For each unit, the terms that it says with their weights."""
    unit_terms = [sorted({(t.kind, t.key) for t in tokens}) for tokens in reading.tokens]
    holders = Counter(t for u, terms in zip(reading.units, unit_terms, strict=True) if u.kind is not UnitKind.SPEAKER for t in terms)
    weights = {term: _weight(term, count) for term, count in holders.items()}
    weighted = [{term: weights.get(term, 0.0) for term in terms} for terms in unit_terms]
    for unit, terms in zip(reading.units, weighted, strict=True):
        if unit.message and unit.kind is UnitKind.ROW:
            # no weight of its own: `mandatory_terms` gives it one
            terms |= {_row_scoped_term(term, unit): 0.0 for term in list(terms) if term[0] in _SCOPED_KINDS}
    return weighted


def _weight(term: Term, holders: int) -> float:
    base = _BASE_WEIGHTS[term[0]]
    if term[0] in EXACT_KINDS:
        return base / (1 + _FREQUENCY_LOSS * (holders - 1))
    return base * (1 + _FREQUENCY_GAIN * math.log(holders))


def mentions(reading: TextReading, *, by_users: bool = False) -> dict[str, float]:
    """The keys that people and calls mention, each with the weight of its newest mention, up to 1; tools and records mention nothing.

    `by_users`: only what users say."""
    newest: dict[str, float] = {}
    last_message = max((u.message for u in reading.units), default=0)
    for unit, tokens in zip(reading.units, reading.tokens, strict=True):
        if unit.kind in RECORD_KINDS or is_tool(unit) or (by_users and is_assistant(unit)):
            continue
        weight = _recency(unit, last_message) * (_ASSISTANT_MENTION if is_assistant(unit) and unit.kind is not UnitKind.CALL else 1.0)
        for token in tokens:
            newest[token.key] = max(newest.get(token.key, 0.0), weight)
    return newest


def _recency(unit: Unit, last_message: int) -> float:
    return _OLDEST_MENTION + (1 - _OLDEST_MENTION) * 0.5 ** ((last_message - unit.message) / _HALF_LIFE_MESSAGES)


def mandatory_terms(reading: TextReading) -> dict[Term, float]:
    """What a talk keeps before anything else, with its weight; {} for other texts.

    With results of tools: the values and codes of calls and results that people or calls mention, which the next call needs; rows with a
    code that is mentioned, or a name that a user says; the values of results that are no table (`833.0`, an error), newer ones with more
    weight; and the values, codes and names that a user says. Where that gives no term of a tool: all values, codes and names of the talk.
    """
    last_message = max((u.message for u in reading.units), default=0)
    if not last_message:
        return {}
    mentioned, said = mentions(reading), mentions(reading, by_users=True)
    row_counts = _row_counts(reading)
    speakers = {t.key for u, tokens in zip(reading.units, reading.tokens, strict=True) if u.kind is UnitKind.SPEAKER for t in tokens}
    of_tools: dict[Term, float] = {}
    of_users: dict[Term, float] = {}
    of_conversation: dict[Term, float] = {}
    for unit, tokens in zip(reading.units, reading.tokens, strict=True):
        terms = [(t.kind, t.key) for t in tokens if t.kind is not TokenKind.WORD and t.key not in speakers]
        of_conversation |= dict.fromkeys(terms, 1.0)
        is_row_or_call = unit.kind in (UnitKind.ROW, UnitKind.CALL)
        if is_row_or_call or is_tool(unit):
            share = 1.0 if any(t.kind is TokenKind.WORD for t in tokens) else _BARE_RESULT_SHARE
            own_weight = 0.0 if is_row_or_call else share * _recency(unit, last_message)
            weights = {t: max(own_weight, mentioned.get(t[1], 0.0)) for t in terms if t[0] in EXACT_KINDS}
            needed = {t: weight for t, weight in weights.items() if weight}
            of_tools |= needed
            if unit.kind is UnitKind.ROW:
                asked = needed | {t: said[t[1]] for t in terms if t[0] is TokenKind.NAME and t[1] in said}
                scoped = [(t, _SCOPED_KINDS[t[0]] * weight) for t, weight in asked.items() if t[0] in _SCOPED_KINDS]
                of_tools |= {_row_scoped_term(t, unit): weight / row_counts[t] for t, weight in scoped}
        elif not is_assistant(unit):
            of_users |= {t: mentioned[t[1]] for t in terms if t[1] in mentioned}
    return of_users | of_tools if of_tools else of_conversation


def _row_scoped_term(term: Term, row: Unit) -> Term:
    """A code or name in one of its rows, with the values that belong to it: more than the code somewhere. Equal rows are one."""
    return term[0], f"{term[1]} in {row.text}"


def _row_counts(reading: TextReading) -> dict[Term, int]:
    """The number of different rows that have each term."""
    rows: dict[Term, set[str]] = {}
    for unit, tokens in zip(reading.units, reading.tokens, strict=True):
        for token in tokens if unit.kind is UnitKind.ROW else ():
            rows.setdefault((token.kind, token.key), set()).add(unit.text)
    return {term: len(texts) for term, texts in rows.items()}


def is_tool(unit: Unit) -> bool:
    """Whether a unit is the result of a tool."""
    return unit.role in ("tool", "action", "function")


def is_assistant(unit: Unit) -> bool:
    """Whether an assistant says a unit."""
    return unit.role in ("assistant", "agent", "ai")


def has_tools(reading: TextReading) -> bool:
    """Whether a text is a talk with calls or results of tools."""
    return any(u.kind is UnitKind.CALL or is_tool(u) for u in reading.units)
