"""Lines of a file of queries: what is one, and what is told of what is none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandora_dagster.contracts.batches import RejectedLine
from pandora_dagster.transfer.batch_file import MAX_LINE_BYTES, QueryLine, read_batch_lines


def only(line: bytes) -> tuple[int, QueryLine] | RejectedLine:
    (found,) = read_batch_lines(line)
    return found


def test_a_line_says_what_it_wants_and_the_rest_is_filled_in() -> None:
    """All fields, or the query alone; blank lines and a carriage return are no matter, and numbers are those of the file."""
    told = {"query": "What?", "user": "ann", "session": "s1", "mode": "code", "id": "x-1"}
    first, second = read_batch_lines(b"\n" + json.dumps(told).encode() + b"\r\n   \n" + b'{"query": " a "}')
    assert isinstance(first, tuple) and (first[0], first[1].model_dump()) == (2, told)
    assert isinstance(second, tuple) and second[0] == 4
    assert second[1].model_dump() == {"query": " a ", "user": None, "session": None, "mode": "chat", "id": ""}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "column 2: not JSON: Expecting property name enclosed in double quotes: expected a JSON object"),
        (b"[1]", "a list instead of an object: expected a JSON object"),
        (b'"q"', "a string instead of an object: expected a JSON object"),
        (b'{"query": "  "}', "query: empty: expected the words"),
        (b'{"query": 7}', "query: Input should be a valid string"),
        (b'{"user": "ann"}', "query: missing: expected the words"),
        (b'{"query": "a", "user": "../b"}', "user: user id '../b': expected 1 to 100 letters"),
        (b'{"query": "a", "session": "a/b"}', "session: session id 'a/b': expected 1 to 100 letters"),
        (b'{"query": "a", "mode": "fast"}', "mode: Input should be 'chat' or 'code'"),
        (b'{"query": "a", "temperature": 1}', "temperature: unknown: expected query, user, session, mode, id"),
        (b'{"query": "a", "query": "b"}', "duplicate key 'query': expected a JSON object"),
        (b'{"query": "a\xff"}', "byte 12: not UTF-8: expected UTF-8 text"),
        (b'{"query": "' + b"a" * MAX_LINE_BYTES + b'"}', "1,000,013 bytes: expected at most 1,000,000"),
        (b"[" * 100_000, "expected a JSON object"),
    ],
)
def test_what_is_no_query_is_told(line: bytes, reason: str) -> None:
    """Each fault names its field or place, and what was expected; the line goes with it, the longest shortened."""
    found = only(line)
    assert isinstance(found, RejectedLine) and found.line == 1 and reason in found.reason
    assert line.startswith(found.text.encode()[:10]) and len(found.text) <= max(2_000, len(line))


def test_a_lone_surrogate_is_no_text() -> None:
    """It could not be stored."""
    found = only(b'{"query": "a\\ud800"}')
    assert isinstance(found, RejectedLine)


def test_a_name_is_given_once() -> None:
    """Two lines of one id could not be told apart; the first keeps it, and lines without one do not count."""
    lines = list(read_batch_lines(b'{"query": "a", "id": "x"}\n{"query": "b"}\n{"query": "c", "id": "x"}\n{"query": "d"}\n'))
    assert [type(line) for line in lines] == [tuple, tuple, RejectedLine, tuple]
    assert isinstance(lines[2], RejectedLine) and lines[2].reason == "id: 'x' is the id of line 1: expected a unique one"


@given(st.lists(st.one_of(st.binary(max_size=40).filter(lambda b: b"\n" not in b), st.sampled_from([b'{"query": "a"}', b"", b"{}"]))))
def test_every_line_that_is_not_blank_comes_back_once(lines: list[bytes]) -> None:
    """Whatever the bytes: a query or a rejection for each line, in order, and nothing raises."""
    found = list(read_batch_lines(b"\n".join(lines)))
    numbers = [line.line if isinstance(line, RejectedLine) else line[0] for line in found]
    assert numbers == [n for n, line in enumerate(lines, 1) if line.strip()]
