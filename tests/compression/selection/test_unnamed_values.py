"""Values that found no place are named behind their subject; never bare, never more than the room for them."""

from pandora_dagster.compression.salience.text_reading import read_text
from pandora_dagster.compression.selection.term_weights import first_terms
from pandora_dagster.compression.selection.unnamed_values import has_tools, last_line, unnamed_values

TALK = "Ann: We flew to Lisbon with Matt Patterson in 4 hours.\nBob: My dog ate 3 shoes.\nAnn: Oh no.\nBob: He is fine."


def _words(text: str) -> int:
    return len(text.split())


def test_a_value_has_its_speaker_and_its_unit() -> None:
    """A name of two words is one."""
    reading = read_text(TALK)
    values = unnamed_values(reading, (), first_terms(reading))
    line = last_line(values, 30, _words, is_whole=True)
    assert line.startswith("Also named: Ann: ")
    assert "Matt Patterson" in line and "4 hours" in line and "Bob: 3 shoes" in line


def test_what_a_kept_unit_has_is_not_named_again() -> None:
    """Nor is anything where all is kept."""
    reading = read_text(TALK)
    assert unnamed_values(reading, {u.order for u in reading.units}, first_terms(reading)) == []


def test_a_line_that_is_too_long_is_none_or_shorter() -> None:
    """A talk of people names all or nothing; with tools it names what fits."""
    reading = read_text(TALK)
    values = unnamed_values(reading, (), first_terms(reading))
    assert last_line(values, 5, _words, is_whole=True) == ""
    assert 0 < _words(last_line(values, 5, _words, is_whole=False)) <= 5


def test_calls_and_results_make_a_talk_with_tools() -> None:
    """A talk of people has none."""
    assert has_tools(
        read_text('user: find it\nassistant: [{"name": "find", "arguments": {"id": "A12"}}]\ntool find: {"id": "A12", "n": 4}')
    )
    assert not has_tools(read_text(TALK))
