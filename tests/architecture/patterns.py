"""The regular expressions of the package, and hostile texts that are made from each.

A text is the shortest one that a pattern matches up to a repetition, then that repetition many times, then an end that the pattern refuses.
"""

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from re import _constants as op  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser  # pyright: ignore[reportAttributeAccessIssue]
from time import process_time
from types import MappingProxyType, ModuleType
from typing import Any

import pandora_dagster
from tests.architecture.sources import Source

AnyPattern = re.Pattern[Any]
_ANCHORED = frozenset({"match", "fullmatch"})
_MANY = 200
"""A repetition of at most so many rounds is a constant."""
_PARTS = (" ", "\n", "a", "1", "# ", "a\n", "```a\n", "[", '"', "a ", "-", ".", "A", "a.", "1,", "|")
ENDS = ("\0", "", "\n\0")


@dataclass(frozen=True)
class Found:
    """A pattern of the package: where it is, and the methods that match it at one place of a text, none if it is searched."""

    where: str
    pattern: AnyPattern
    anchored: frozenset[str]

    def seconds(self, text: str) -> float:
        """The processor time of the pattern for a text."""
        subject: Any = text if isinstance(self.pattern.pattern, str) else text.encode()
        started = process_time()
        if self.anchored:
            for method in self.anchored:
                getattr(self.pattern, method)(subject)
        else:
            for _ in self.pattern.finditer(subject):
                pass
        return process_time() - started


def package_patterns(sources: tuple[Source, ...]) -> list[Found]:
    """The patterns that modules hold, by themselves, in a collection or in a value, and those in the text of a function."""
    uses = _uses(sources)
    found: dict[AnyPattern, Found] = {}
    for module in _modules():
        for name, value in vars(module).items():
            for pattern, direct in _held(value, set()):
                used = uses[_scope(module.__name__.partition(".")[2], name)]
                anchored = frozenset(used) if direct and used <= _ANCHORED else frozenset[str]()
                where = f"{module.__name__}.{name}"
                if pattern in found and found[pattern].anchored != anchored:
                    anchored = frozenset()
                found[pattern] = Found(where, pattern, anchored)
    for source in sources:
        for call in source.nodes(ast.Call):
            method = _method_of_re(call)
            if method and call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, (str, bytes)):
                pattern = re.compile(call.args[0].value, _flags(call))
                found.setdefault(pattern, Found(f"{source.name}:{call.lineno}", pattern, _ANCHORED & {method}))
    return list(found.values())


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(pandora_dagster.__path__, "pandora_dagster."):
        yield importlib.import_module(module.name)


def _held(value: object, seen: set[int]) -> Iterator[tuple[AnyPattern, bool]]:
    """The patterns in a value, and whether the value is the pattern itself."""
    if isinstance(value, re.Pattern):
        yield value, True
        return
    if id(value) in seen or isinstance(value, (str, bytes, int, type, ModuleType)):
        return
    seen.add(id(value))
    parts: list[object] = []
    if type(value) in (dict, MappingProxyType):
        parts = [*value, *value.values()]
    elif type(value) in (tuple, list, set, frozenset):
        parts = list(value)
    elif is_dataclass(value):
        parts = [getattr(value, field.name, None) for field in fields(value)]
    elif isinstance(owner := getattr(value, "__self__", None), re.Pattern):
        parts = [owner]
    for part in parts:
        yield from ((pattern, False) for pattern, _ in _held(part, seen))


def _uses(sources: tuple[Source, ...]) -> dict[str, set[str]]:
    """Name -> the attributes of it that the package uses; `*` for any other use."""
    uses: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        named: set[ast.AST] = set()
        for attribute in source.nodes(ast.Attribute):
            if isinstance(attribute.value, ast.Name):
                named.add(attribute.value)
                uses[_scope(source.name, attribute.value.id)].add(attribute.attr)
        for name in source.nodes(ast.Name):
            if isinstance(name.ctx, ast.Load) and name not in named:
                uses[_scope(source.name, name.id)].add("*")
    return uses


def _scope(module: str, name: str) -> str:
    """A private name is one of its module, any other is one of the package."""
    return f"{module}.{name}" if name.startswith("_") else name


def _method_of_re(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        return function.attr if hasattr(re.Pattern, function.attr) or function.attr == "compile" else ""
    return ""


def _flags(call: ast.Call) -> int:
    arguments = (*call.args[1:], *(keyword.value for keyword in call.keywords))
    names = {node.attr for argument in arguments for node in ast.walk(argument) if isinstance(node, ast.Attribute)}
    return sum(int(flag) for name, flag in re.RegexFlag.__members__.items() if name in names)


def hostile_texts(pattern: AnyPattern, ends: tuple[str, ...] = ENDS) -> Iterator[tuple[str, str, str]]:
    """Beginning, repeated part and end of hostile texts for a pattern."""
    written = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = _parser.parse(written, pattern.flags & ~re.UNICODE)
    seen: set[tuple[str, str]] = set()
    for begin, part in [*_repeats(tree, ""), ("", _sample(tree)), *(("", part) for part in _PARTS)]:
        for start, repeated in ((begin, part), ("", begin + part), ("", begin)):
            if repeated and (start, repeated) not in seen:
                seen.add((start, repeated))
                yield from ((start, repeated, end) for end in ends)


def _repeats(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """What precedes each unbounded repetition, and one round of it."""
    for code, value in tree:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            low, high, body = value
            if high > _MANY:
                yield before, _sample(body) or "a"
            yield from _repeats(body, before)
            before += _sample(body) * min(low, 5)
        elif code is op.SUBPATTERN:
            yield from _repeats(value[3], before)
            before += _sample(value[3])
        elif code is op.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch, before)
            before += _sample(value[1][0])
        elif code is op.ATOMIC_GROUP:
            yield from _repeats(value, before)
            before += _sample(value)
        elif code in (op.ASSERT, op.ASSERT_NOT):
            yield from _repeats(value[1], before)
        else:
            before += _sample([(code, value)])


_CATEGORY = {op.CATEGORY_DIGIT: "1", op.CATEGORY_SPACE: " ", op.CATEGORY_WORD: "a"}


def _sample(tree: Any) -> str:
    """A short text that the tree matches."""
    text = ""
    for code, value in tree:
        if code is op.LITERAL:
            text += chr(value)
        elif code is op.NOT_LITERAL:
            text += "a" if value != ord("a") else "b"
        elif code is op.ANY:
            text += "a"
        elif code is op.IN:
            text += _member(value)
        elif code is op.BRANCH:
            text += _sample(value[1][0])
        elif code is op.SUBPATTERN:
            text += _sample(value[3])
        elif code is op.ATOMIC_GROUP:
            text += _sample(value)
        elif code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            text += _sample(value[2]) * min(max(value[0], 1), 5)
    return text


def _member(choices: Any) -> str:
    """A character of a set, if need be one that is none of its exceptions."""
    if choices[0][0] is op.NEGATE:
        refused = re.compile("[" + "".join(_written(choice) for choice in choices[1:]) + "]")
        return next((c for c in "a1 \n-#`\"'.,:" if not refused.match(c)), "\u4e00")
    code, value = choices[0]
    return chr(value) if code is op.LITERAL else chr(value[0]) if code is op.RANGE else _CATEGORY.get(value, "-")


def _written(choice: Any) -> str:
    code, value = choice
    if code is op.LITERAL:
        return re.escape(chr(value))
    if code is op.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(value).rsplit("_", 1)[1]]
    return f"\\{letter.upper() if '_NOT_' in str(value) else letter}"


def slow_text(found: Found, size: int, *, at_most: float, ends: tuple[str, ...] = ENDS) -> str:
    """The first hostile text for which four times the length takes more than eight times as long, "" for none.

    Only where `size` characters take more than `at_most` seconds: below that the clock decides, not the pattern.
    """
    for begin, part, end in hostile_texts(found.pattern, ends):
        whole, quarter = (begin + part * (length // len(part)) + end for length in (size, size // 4))
        if found.seconds(whole) > at_most:
            ratios = [found.seconds(whole) / max(found.seconds(quarter), 1e-6) for _ in range(3)]
            if min(ratios) > 8:
                return f"{begin!r} + {part!r} * {size // len(part)} + {end!r}: {found.seconds(whole):.2f} s"
    return ""
