"""What units need beside their context: an exception its rule and the rule its exception, a yes or no its question."""

import re
from collections.abc import Sequence
from dataclasses import replace

from pandora_dagster.documents.units.unit import Unit, UnitKind

_SPOKEN = frozenset({UnitKind.SENTENCE, UnitKind.QUOTE, UnitKind.ITEM})
_EXCEPTION = re.compile(
    r"\W*(?:(?:except(?:ions?)?|unless|(?:this|that) does not apply|not (?:included|applicable)|ausnahmen?|ausgenommen|außer|es sei denn|"
    r"(?:dies|das) gilt nicht|sauf|exceptions?|excepté|à moins|salvo|excepto|excepción|behalve|tenzij|uitzondering|wyjątek|wyjątki|oprócz|"
    r"chyba że|z wyjątkiem|exceto|exceção|tranne|eccetto|eccezione|dit geldt niet)(?!\w)|ただし|但し)",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"\W*(?:but|however|instead|otherwise|therefore|so|aber|jedoch|sondern|sonst|deshalb|mais|cependant|sinon|donc|pero|sin embargo|maar|"
    r"echter|anders|ale|jednak|mas|porém|ma|però|しかし)(?!\w)",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"\W*(?:yes|yeah|yep|no|nope|none|ja|nein|doch|oui|non|si|sí|nee|sim|não|tak|nie|ok|okay|はい|いいえ|да|нет)(?!\w)", re.IGNORECASE
)
_LONGEST_EXCEPTION, _LONGEST_ANSWER = 240, 80


def linked(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The units with the links added; a rule and its exception need each other, so that `needs` may name a later unit too."""
    found = list(units)
    last_said: dict[int, int] = {}
    for unit in units:
        if unit.kind not in _SPOKEN:
            continue
        before = found[unit.order - 1] if unit.order else None
        beside = before if before and before.kind in _SPOKEN and (before.block, before.message) == (unit.block, unit.message) else None
        if beside and _EXCEPTION.match(unit.text) and len(unit.text) <= _LONGEST_EXCEPTION:
            _add(found, unit.order, beside.order)
            _add(found, beside.order, unit.order)
        elif beside and unit.kind is not UnitKind.ITEM and _CONTRAST.match(unit.text):
            _add(found, unit.order, beside.order)
        first = unit.message and unit.message not in last_said
        question = last_said.get(unit.message - 1)
        if (
            first
            and question is not None
            and len(unit.text) <= _LONGEST_ANSWER
            and _ANSWER.match(unit.text)
            and "?" in found[question].text
        ):
            _add(found, unit.order, question)
        last_said[unit.message] = unit.order
    return tuple(found)


def _add(units: list[Unit], order: int, needed: int) -> None:
    units[order] = replace(units[order], needs=tuple(sorted({*units[order].needs, needed})))
