"""Codes that found no place are named behind their subject; never bare, never more than the room for them."""

from pandora_dagster.compression.salience.text_reading import read_text
from pandora_dagster.compression.selection.term_weights import has_tools, mandatory_terms
from pandora_dagster.compression.selection.unnamed_codes import UnnamedCode, last_line, unnamed_codes

TALK = "\n".join(
    [
        "user: Find my orders, please.",
        'assistant: [{"name": "find", "arguments": {"id": "A12"}}]',
        'tool find: [{"id": "A12", "order": "K-771"}, {"id": "A12", "order": "K-882"}]',
        "user: Cancel K-882.",
    ]
)


def _words(text: str) -> int:
    return len(text.split())


def test_a_code_has_its_tool_and_those_that_are_mentioned_come_first() -> None:
    """A user asks for K-882."""
    reading = read_text(TALK)
    codes = unnamed_codes(reading, (), mandatory_terms(reading))
    assert [code.text for code in codes][-1] == "K-771"
    assert UnnamedCode("find", "K-771") in codes
    assert last_line(codes, 30, _words).startswith("Also named: ")


def test_what_a_kept_unit_has_is_not_named_again() -> None:
    """Nor is anything where all is kept."""
    reading = read_text(TALK)
    assert unnamed_codes(reading, {u.order for u in reading.units}, {}) == []


def test_a_line_that_is_too_long_names_what_fits() -> None:
    """In the order of the codes, or none."""
    codes = [UnnamedCode("find", "K-771"), UnnamedCode("find", "K-882"), UnnamedCode("user", "A12")]
    assert last_line(codes, 5, _words) == "Also named: find: K-771, K-882"
    assert last_line(codes, 2, _words) == ""


def test_calls_and_results_make_a_talk_with_tools() -> None:
    """A talk of people has none."""
    assert has_tools(read_text(TALK))
    assert not has_tools(read_text("Ann: My dog ate 3 shoes.\nBob: Oh no.\nAnn: He is fine."))
