"""The strict readers of YAML and JSON: hostile texts of the security review, each as a user could write it."""

import json
import math
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.documents.plain_json import PlainDataError, parse_json, parse_json_object
from pandora_dagster.documents.plain_yaml import parse_yaml, read_yaml, render_yaml
from pandora_dagster.errors import DocumentError

BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)), "date: *a8"])
YAML_FAULTS = {
    "an alias of nested aliases": (BOMB, "2", "an alias: expected the value itself"),
    "an empty integer": ("tags: !!int ''", "1", "tag int"),
    "an empty float": ("a: b\ntags: !!float ''", "2", "tag float"),
    "a time by its tag": ("tags: !!timestamp x", "1", "tag timestamp"),
    "a truth value that is none": ("tags: !!bool maybe", "1", "tag bool"),
    "an object of Python": ("a: !!python/object/apply:os.system [ls]", "1", "tag os.system"),
    "a long number": ("tags: " + "9" * 5_000, "1", "a number of 5,000 digits"),
    "an infinity": ("a: .inf", "1", "finite number"),
    "a float over all floats": ("a: 1.0e+999", "1", "finite number"),
    "a key twice": ("a: 1\nb: 2\na: 3", "3", "a: duplicate key: expected once (first in line 1)"),
    "deep": ("[" * 5_000, "1", "nested deeper than 64 levels"),
    "half a character": ('a: "\\ud800"', "1", "character"),
    "half a character, unescaped": ("a: \ud800", "1", "half of a surrogate pair"),
    "no character": ('a: "\\UFFFFFFFF"', "1", "character"),
    "a second document": ("a: 1\n---\nb: 2", "2", "a second document"),
    "a list as key": ("? [a]\n: b", "1", "expected a string as key"),
    "large": ("- a\n" * 60_000, "50000", "over 50,000 values"),
}


@pytest.mark.parametrize("case", YAML_FAULTS)
def test_hostile_yaml_is_one_error_with_its_line(case: str) -> None:
    text, line, says = YAML_FAULTS[case]
    with pytest.raises(DocumentError) as caught:
        parse_yaml(text, where="n.md")
    assert str(caught.value).startswith(f"n.md:{line}: ") and says in str(caught.value)


JSON_FAULTS = {
    "deep": ("[" * 5_000 + "]" * 5_000, "nested deeper than 64 levels"),
    "deeper than the interpreter": ("[" * 200_000, "nested deeper than 64 levels"),
    "just too deep": ("[" * 66 + "]" * 66, "nested deeper than 64 levels"),
    "a key twice": ('{"a": 1, "a": 2}', "duplicate key 'a'"),
    "no number": ('{"a": NaN}', "NaN is not a JSON number"),
    "a float over all floats": ("1e999", "1e999 is too large a number"),
    "a long number": ("9" * 5_000, "a number of 5,000 digits"),
    "half a character": ('"\\ud800"', "half of a surrogate pair"),
    "no UTF-8": (b'"\xff"', "not UTF-8 at byte 1"),
    "cut off": ('{"a": 1,\n', "not JSON: Expecting property name"),
    "empty": ("", "not JSON: Expecting value (line 1, column 1)"),
}


@pytest.mark.parametrize("case", JSON_FAULTS)
def test_hostile_json_is_one_error(case: str) -> None:
    text, says = JSON_FAULTS[case]
    with pytest.raises(PlainDataError) as caught:
        parse_json(text)
    assert says in str(caught.value)


def test_an_object_is_demanded_by_its_name() -> None:
    with pytest.raises(PlainDataError, match="a list instead of an object"):
        parse_json_object("[]")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN)
def test_what_is_written_is_read_back(value: object) -> None:
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text", ["611e54006458", "1e5", "0o14", "0x1f", "yes", "null", "2026-01-01", "1:30", "", "~", ".5", "1_000", "\u2028"]
)
def test_text_that_looks_like_another_type_stays_text(text: str) -> None:
    assert read_yaml(render_yaml({"a": text})).fields == {"a": text}


def test_numbers_are_read_as_json_writes_them() -> None:
    numbers = [1, -2, 0.5, 1e-07, 1e16, 1.5e300, 10**30]
    assert read_yaml(f"a: {json.dumps(numbers)}").fields == {"a": numbers} and math.isfinite(read_yaml("a: 1.").fields["a"])


@pytest.mark.parametrize("shape", ["[", "{", "- ", "a: ", "? ", '"\\', "'", "&a ", "*a ", "!a ", "\t", "#", "|\n ", "%"])
def test_reading_takes_time_linear_in_the_text(shape: str) -> None:
    started = process_time()
    read_yaml(shape * (250_000 // len(shape)))
    assert process_time() - started < 20
