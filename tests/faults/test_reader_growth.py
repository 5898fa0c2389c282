"""The time of every reader of outside text grows as the text does, whatever stands in it."""

from collections.abc import Callable
from contextlib import suppress
from time import process_time

import pytest

from pandora_dagster.contracts.enums import OutputFormat
from pandora_dagster.documents.meta import read_meta, subsection_metas
from pandora_dagster.documents.passages import passages
from pandora_dagster.documents.pasted_blocks import own_words
from pandora_dagster.documents.plain_json import parse_json
from pandora_dagster.documents.plain_yaml import read_yaml
from pandora_dagster.documents.redaction.credentials import redact
from pandora_dagster.documents.units.unit_reader import read_units
from pandora_dagster.errors import PandoraError
from pandora_dagster.execution.call.answer_parser import read_answer
from pandora_dagster.execution.fit.text_stretches import section_stretches, text_stretches
from pandora_dagster.language.tokens import tokens
from pandora_dagster.stores.user.memory_files import page_entries
from pandora_dagster.stores.user.note_files import read_note
from tests.fakes.hostile_texts import SHAPES

_RATIO, _NOTHING = 6.0, 0.05


def _seconds(text: str) -> float:
    started = process_time()
    read_units(text)
    return process_time() - started


@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_the_text_takes_less_than_six_times_as_long(shape: str) -> None:
    """Twice the text is measured on the way: a step from linear to quadratic shows in either half."""
    base = SHAPES[shape]
    for _ in range(3):
        small, middle, large = (_seconds(base * (size // len(base))) for size in (15_000, 30_000, 60_000))
        if large < _RATIO * max(small, _NOTHING) and large < _RATIO / 2 * max(middle, _NOTHING):
            return
    pytest.fail(f"{small:.2f} s, {middle:.2f} s and {large:.2f} s for n, 2n and 4n")


READERS: dict[str, Callable[[str], object]] = {
    "note": lambda text: read_note(text, name="n.md", where="n.md"),
    "front matter": lambda text: read_note(f"---\n{text}", name="n.md", where="n.md"),
    "_meta": read_meta,
    "subsections": subsection_metas,
    "memory page": lambda text: page_entries(text, kind="fact", where="f.md"),
    "answer in JSON": lambda text: read_answer(text, OutputFormat.JSON),
    "answer in YAML": lambda text: read_answer(text, OutputFormat.YAML),
    "query": own_words,
    "stretches": text_stretches,
    "stretches of a section": section_stretches,
    "YAML": read_yaml,
    "JSON": parse_json,
}
HOSTILE = {
    "titles": "# ",
    "a title of blanks": "# a" + " " * 40,
    "open fences": "```a\n",
    "tildes": "~~~a\n",
    "open _meta blocks": "```yaml\n_meta:\n",
    "open memory blocks": "```yaml\na: b\n",
    "subsections": "### a" + " " * 40 + "\n",
    "blanks": " ",
    "empty lines": " \n",
    "backticks": "`",
    "brackets": "[{",
    "indented fences": "  ```json\n{\n",
    "rules": "---\n",
    "quotes": '"\\',
}


@pytest.mark.parametrize("shape", HOSTILE)
@pytest.mark.parametrize("reader", READERS)
def test_a_hostile_text_of_120_kb_is_read_or_refused_in_two_seconds(reader: str, shape: str) -> None:
    """Each of these shapes took 4 to 37 seconds for 16 to 60 kB in one of the readers, and grew with the square of the text."""
    text = HOSTILE[shape] * (120_000 // len(HOSTILE[shape]))
    started = process_time()
    with suppress(PandoraError, ValueError):
        READERS[reader](text)
    assert process_time() - started < 2


def test_backticks_of_rising_length_are_read_in_two_seconds() -> None:
    text = "".join("`" * length + "a\n" for length in range(3, 480))
    started = process_time()
    for read in READERS.values():
        with suppress(PandoraError, ValueError):
            read(text)
    assert process_time() - started < 4


ONE_LINE: dict[str, Callable[[str], object]] = {
    **READERS,
    "units": read_units,
    "passages": passages,
    "credentials": redact,
    "tokens": lambda text: sum(1 for _ in tokens(text, "en")),
}
_LINE = "the oak desk costs 429 euros and was ordered on Monday by Anna Lee in Berlin "


@pytest.mark.parametrize("reader", ONE_LINE)
def test_one_line_of_megabytes_takes_time_as_it_grows(reader: str) -> None:
    """The passages of a line of 2.5 MB took seven times as long as those of a quarter of it."""

    def seconds(characters: int) -> float:
        text = _LINE * (characters // len(_LINE))
        started = process_time()
        with suppress(PandoraError, ValueError):
            ONE_LINE[reader](text)
        return process_time() - started

    assert any(seconds(2_400_000) < _RATIO * max(seconds(600_000), _NOTHING) for _ in range(3))
