"""Units of texts: whole, in order, each at its place in the source."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandora_dagster.documents.units.unit import Unit, UnitKind
from pandora_dagster.documents.units.unit_reader import read_units

MAIL = "Hello Ann,\n\nthe boiler was repaired on 3 May. It costs 90 € a month.\n\n> When will it be repaired?\n\nRegards\nBob"
TALK = "user: Where is my order 4417?\nassistant: It was shipped on Monday. It arrives on Thursday.\nuser: Thanks!"
WRAPPED = (
    "An archived turn has a manifest, and a missing object without\na tombstone is reported. The next sentence is one that goes on\n"
    "in another line.\n"
)
LISTED = "Gifts\n=====\n\nForbidden:\n\n- tickets to a park\n- cash of any amount\n\nAllowed:\n\n1. a book\n2. a pen, if it is\n   cheap\n"
TABLE = "| name | price |\n|---|---|\n| chair | 90 € |\n| desk | 300 € |\n"
CSV = 'part,stock,price\nbolt,4,0.20\nnut,"1,200",0.10\nscrew,12"",0.05\nwasher,7,0.01\n'
RECORDS = '{"flights": [{"id": "HAT001", "seats": 4}, {"id": "HAT002", "seats": 0}], "note": "Do not rebook. Ask first."}'
LOG = "2024-05-01 10:00:01 INFO started\n2024-05-01 10:00:02 ERROR disk full\n  at store.write\n2024-05-01 10:00:03 INFO stopped\n"
DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n import os\n-limit = 5\n+limit = 6\n"
FENCE = "Run this:\n\n```sh\nmake install\nmake test\n```\n\nThen wait.\n"
TEXTS = [
    MAIL,
    TALK,
    WRAPPED,
    LISTED,
    TABLE,
    CSV,
    RECORDS,
    LOG,
    DIFF,
    FENCE,
    "\n\n".join((MAIL, LOG, "So it broke.", DIFF, RECORDS, "Why?")),
]


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"[^\W_]+", text))


def placed(text: str, units: tuple[Unit, ...]) -> None:
    """The words of each unit stand at its place; those of the text in the units."""
    for unit in units:
        assert 0 <= unit.start <= unit.end <= len(text)
        there = words(text[unit.start : unit.end])
        if unit.kind is not UnitKind.HEADER:
            assert words(unit.text) <= there, (unit, text[unit.start : unit.end])
        assert all(0 <= needed < len(units) and needed != unit.order for needed in unit.needs)
    assert [unit.order for unit in units] == list(range(len(units)))
    covered = bytearray(len(text))
    for unit in units:
        covered[unit.start : unit.end] = b"\x01" * (unit.end - unit.start)
    for fence in re.finditer(r"^[ >]*(```|~~~).*$", text, re.MULTILINE):
        covered[fence.start() : fence.end()] = b"\x01" * len(fence[0])
    lost = "".join(sign if not covered[i] else " " for i, sign in enumerate(text))
    assert not words(lost), lost


@pytest.mark.parametrize("text", TEXTS)
def test_every_word_is_in_a_unit_that_stands_at_its_place(text: str) -> None:
    placed(text, read_units(text))


PIECES = [
    *"\n\n\n  -*>#|`~=:;,.{}[]\"'+@1aAé会。\t\r\x00",
    *("word ", "user: ", "- ", "```\n", "\n> ", "2024-05-01 10:00:01 x\n", '{"a": 1}', '{"key": "value one"}', "Ann: ", "a,b,c\n", "===\n"),
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_no_text_raises_or_loses_a_word(text: str) -> None:
    units = read_units(text)
    placed(text, units)


def test_hard_wrapped_lines_are_sentences() -> None:
    assert [u.text for u in read_units(WRAPPED)] == [
        "An archived turn has a manifest, and a missing object without a tombstone is reported.",
        "The next sentence is one that goes on in another line.",
    ]


def test_items_need_the_line_that_introduces_them_and_their_heading() -> None:
    units = read_units(LISTED)
    by_text = {u.text: u for u in units}
    cash, book = by_text["- cash of any amount"], by_text["1. a book"]
    assert [units[n].text for n in cash.needs] == ["Gifts", "Forbidden:"]
    assert [units[n].text for n in book.needs] == ["Gifts", "Allowed:"]


def test_a_sentence_belongs_to_its_speaker() -> None:
    units = read_units(TALK)
    arrives = next(u for u in units if "Thursday" in u.text)
    assert (arrives.speaker, arrives.message, [units[n].kind for n in arrives.needs]) == ("assistant", 2, [UnitKind.SPEAKER])


def test_records_are_rows_under_one_header() -> None:
    units = read_units('[{"id": "HAT001", "seats": 4}, {"id": "HAT002", "seats": 0}]')
    assert [u.text for u in units] == ["# id | seats", "HAT001 | 4", "HAT002 | 0"]
    assert [u.needs for u in units] == [(), (0,), (0,)]


def test_pasted_logs_and_diffs_are_no_sentences() -> None:
    kinds = Counter(u.kind for u in read_units(TEXTS[-1]))
    assert kinds[UnitKind.LOG] == 3 and kinds[UnitKind.ERROR] == 1 and kinds[UnitKind.HUNK] == 1


@pytest.mark.parametrize("page", sorted((Path(__file__).parents[3] / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_real_pages_are_in_units(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    placed(text, read_units(text))


def test_a_quoted_mail_is_its_senders() -> None:
    units = read_units(
        "From: Ann <a@x.org>\nTo: Bob\nSubject: Roof\n\nThe new offer holds.\n\n> From: Bob\n> Date: 3 May\n>\n> It is 48 k.\n"
        ">> From: Ann\n>> Date: 1 May\n>>\n>> What is it?\n>\n> Without the lightning rod.\n"
    )
    speakers = {u.text: u.speaker for u in units}
    assert speakers["The new offer holds."] == "Ann"
    assert speakers["It is 48 k."] == speakers["Without the lightning rod."] == "Bob"
    assert speakers["What is it?"] == "Ann"


def test_a_transcript_with_times_has_speakers() -> None:
    units = read_units("[03/07, 18:02] Tomasz: ok so hut weekend.\n[03/07, 18:04] Ines: I'm in\nand Bo too\n[03/07, 18:05] Tomasz: good")
    assert [(u.text, u.speaker) for u in units if u.kind is UnitKind.SENTENCE][1:3] == [("I'm in", "Ines"), ("and Bo too", "Ines")]


def test_a_known_speaker_may_have_a_line_alone_or_a_link() -> None:
    """Other lines of that form are no labels: `Links:` and `Source: https://...` are content."""
    talk = "Ann: Which one is it?\nBob:\nThe blue one.\nAnn: Why?\nLinks:\nBob: https://blue.example/one\nAnn: Good.\nBob: Yes.\nBob: Go."
    speakers = {u.text: u.speaker for u in read_units(talk) if not u.is_context}
    assert speakers["The blue one."] == speakers["https://blue.example/one"] == "Bob"
    assert speakers["Links:"] == "Ann"


def test_dates_between_the_parts_of_a_talk_are_nobodys_words() -> None:
    """One date alone may be what somebody says."""
    talk = "2023-05-08\nAnn: Hello.\nBob: Hi there.\n2023-05-25, 14:10\nAnn: Back again.\nBob: Good.\nAnn: It is on\n8 June 2023.\nYes."
    speakers = {u.text: u.speaker for u in read_units(talk) if not u.is_context}
    assert (speakers["2023-05-08"], speakers["2023-05-25, 14:10"], speakers["8 June 2023."]) == ("", "", "Ann")
    once = {u.text: u.speaker for u in read_units("Ann: Hello.\nBob: When is it?\nAnn: It is on\n8 June 2023.\nBob: Good.")}
    assert once["8 June 2023."] == "Ann"


def test_a_list_with_emphasis_is_no_configuration() -> None:
    answer = "Here are your bookings:\n\n- **Booking A7**\n  - Cabin: Economy\n  - Date: May 3\n- **Booking B9**\n  - Cabin: Business\n"
    assert [u.kind for u in read_units(answer)][1:] == [UnitKind.ITEM] * 5


def test_a_paragraph_right_below_an_item_is_no_part_of_it() -> None:
    """`way` ends no sentence, but the next line introduces another list."""
    units = read_units("- The flight takes two hours or a bit less each way\nThese are the longest of all:\n- The one to Lund\n")
    assert [u.text for u in units] == [
        "- The flight takes two hours or a bit less each way",
        "These are the longest of all:",
        "- The one to Lund",
    ]
    assert units[2].needs == (1,)


def test_an_entry_of_a_configuration_needs_its_keys() -> None:
    units = read_units("route:\n  group_wait: 30s\n  routes:\n    - matchers:\n        - service=a\n      receiver: mails\n  limit: 5\n")
    entry = next(u for u in units if "receiver" in u.text)
    assert [units[n].text.strip() for n in entry.needs] == ["route:", "routes:", "- matchers:\n        - service=a"]


def test_a_label_and_its_value_are_one_unit() -> None:
    units = read_units("Pump AW-9\n\nPower: 9.1 kW. At -15 °C: 6.4 kW.\nNoise: 52 dB by day.\n")
    assert [u.text for u in units[1:]] == ["Power: 9.1 kW. At -15 °C: 6.4 kW.", "Noise: 52 dB by day."]


def test_underlined_titles_are_headings() -> None:
    units = read_units("Abstract\n========\n\nIt is a rule.\n\nScope\n-----\n\nAll of it::\n\n    x = 1\n")
    assert [(u.kind, u.level) for u in units if u.kind is UnitKind.HEADING] == [(UnitKind.HEADING, 1), (UnitKind.HEADING, 2)]
    assert [units[n].text for n in units[-1].needs] == ["Abstract", "Scope", "All of it::"]


def test_lettered_paragraphs_need_what_they_complete() -> None:
    units = read_units("## § 5\n\n(1) Leave of a twelfth has who\n\na)  joins late;\n\nb)  leaves early.\n")
    assert [[units[n].text for n in u.needs] for u in units[2:]] == [["## § 5", "(1) Leave of a twelfth has who"]] * 2


def test_speech_is_divided_where_a_clause_opens() -> None:
    units = read_units(
        "so the fee is forty two pounds a year for all of you " * 3 + "and it covers the insurance but not the theft of hives " * 4
    )
    assert len(units) > 2
    assert all(u.text.startswith(("so the", "and it", "but")) for u in units)


def test_orders_inside_a_record_are_units() -> None:
    long = "The gateway was moved. " * 10 + "Do not restart gateway GW-3."
    units = read_units('{"host": "gw", "note": "' + long + '"}')
    assert units[-1].text == "Do not restart gateway GW-3."
    assert units[units[-1].needs[0]].text == "note:"


def test_printed_columns_are_rows() -> None:
    units = read_units("Filesystem   Size  Used\n/dev/sda2     20G   19G\n/dev/md1     7.3T  4.1T\n")
    assert [u.kind for u in units] == [UnitKind.HEADER, UnitKind.ROW, UnitKind.ROW]


def test_a_pasted_trace_is_code_and_its_error() -> None:
    units = read_units(
        "user: why?\nTraceback (most recent call last):\n"
        '  File "/app/main.py", line 12, in run\n    data = json.loads(text)\n'
        "json.decoder.JSONDecodeError: Expecting value\nIt began yesterday.\nassistant: It is empty."
    )
    assert [u.kind.value for u in units][1:5] == ["sentence", "code", "error", "sentence"]


@pytest.mark.parametrize(
    "text",
    [
        "Q: When did you come?\nA: In 1962.\n\nQ: And then?\nA: We stayed.",
        "ann  10:02 AM\nWhen did you come?\nbob  10:05 AM\nIn 1962.\nann  10:30 AM\nAnd then?",
        "**Ann:** When did you come?\n\n**Bob:** In 1962.\n\n**Ann:** And then?\n\n**Bob:** We stayed.",
        "10:02 Ann: When did you come?\n10:05 Bob: In 1962.\n10:06 Ann: And then?",
    ],
)
def test_talks_of_several_forms_have_speakers(text: str) -> None:
    said = [u for u in read_units(text) if u.kind is UnitKind.SENTENCE]
    assert said[0].text == "When did you come?" and said[1].text == "In 1962."
    assert said[0].speaker == said[2].speaker != said[1].speaker != ""


def test_lines_below_an_item_need_it() -> None:
    units = read_units("Agenda\n  1. Budget\n     Ann presents the numbers.\n     Decision: cut travel by 10 %.\n  2. Other\n     None.\n")
    decision = next(u for u in units if "cut" in u.text)
    assert "1. Budget" in [units[n].text for n in decision.needs]


def test_a_mail_pasted_into_a_talk_is_the_users() -> None:
    units = read_units("user: What does he want?\nFrom: Bob\nTo: Ann\n\nPlease pay.\nassistant: Money.\nuser: ok")
    assert [u.speaker for u in units if u.text in ("Please pay.", "Money.")] == ["user", "assistant"]
    assert not any(u.speaker for u in read_units("From: 3 May\nTo: 5 May\nCost: 90 €"))


def test_the_arguments_of_a_call_are_columns_of_its_answer_alone() -> None:
    units = read_units(
        'assistant: Let me look. [{"name": "find_flights", "arguments": "{\\"date\\": \\"2024-05-20\\"}"}]\n'
        'tool find_flights: [{"id": "HAT001", "seats": 4}]\nuser: and this? {"id": "HAT002", "seats": 1}\n'
    )
    assert [u.text for u in units if u.kind is UnitKind.CALL] == ["find_flights(date=2024-05-20)"]
    assert [u.text for u in units if u.kind is UnitKind.ROW] == ["2024-05-20 | HAT001 | 4", "HAT002 | 1"]


def test_a_line_of_signs_below_an_empty_item_is_no_heading() -> None:
    assert [u.text for u in read_units("a\n\n- \t\n===\n")] == ["a"]


def test_numbered_cases_of_a_law_need_the_sentence_that_they_complete() -> None:
    """What follows at the margin is no part of the last case, though Markdown joins it to the list."""
    law = (
        "§ 12\n(2) Der Vertrag kann fristlos gekündigt werden, wenn\n1. die Miete nicht gezahlt wird,\n2. der Frieden gestört wird.\n"
        "Dies gilt nicht bei Garagen.\n(3) Die Frist verlängert sich\na) nach fünf Jahren,\nb) nach acht Jahren.\n"
    )
    found = {unit.text: unit for unit in read_units(law)}
    lead = found["(2) Der Vertrag kann fristlos gekündigt werden, wenn"].order
    assert all(lead in found[text].needs for text in ("1. die Miete nicht gezahlt wird,", "2. der Frieden gestört wird."))
    later = found["(3) Die Frist verlängert sich"]
    assert lead not in later.needs and found["2. der Frieden gestört wird."].order not in later.needs
    assert all(later.order in found[text].needs for text in ("a) nach fünf Jahren,", "b) nach acht Jahren."))


@pytest.mark.parametrize("text", [f"Prices:\n\n{TABLE}", "Rates::\n\n  low    1.0\n  middle    2.0\n  high    3.0\n"])
def test_a_table_needs_the_line_that_introduces_it(text: str) -> None:
    """A table of Markdown and printed columns alike."""
    units = read_units(text)
    assert units[0].text.endswith(":") and all(0 in unit.needs or unit.needs[-1] == 1 for unit in units[1:])


def test_the_number_of_a_footnote_is_no_unit() -> None:
    """`.. [4]` belongs to the title behind it."""
    text = ".. [4] `File names in pages\n   <https://files.example/names>`__\n"
    assert read_units(text)[0].text.startswith(".. [4] `File")


def test_columns_in_a_part_of_literal_text_are_no_table() -> None:
    """Lines of an indented block with narrower gaps belong to it as well."""
    text = (
        "These clauses match::\n\n    == 1.1        # Equal\n    == 1.1a1      # Not equal\n    == 1.1.post1  # Not equal\n\nThat is all.\n"
    )
    assert [(u.kind, u.text.count("\n")) for u in read_units(text)][1] == (UnitKind.CODE, 2)
