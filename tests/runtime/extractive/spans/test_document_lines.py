"""What somebody said, as one line."""

import pytest

from pandora_dagster.runtime.extractive.spans.citation_labels import Labels
from pandora_dagster.runtime.extractive.spans.document_lines import Quote, quote, read_quote, split_quotes
from pandora_dagster.runtime.extractive.spans.document_spans import SpanReader
from tests.runtime.extractive.packs import context, section2, source

SAID = (
    "Speakers: Ida, Ben Ali\n\n0. User Query: Ida: The ferry is late. We took the train. It was full.\n\n"
    "5. Synthesis: Ben Ali: Note: bring a coat.\n\nPrice: 4 crowns"
)


def read(text: str = SAID):
    return SpanReader(Labels([source("1", 7)]), None).read(text, label="1", quoted=True, date="2025-03-01")


def test_a_quoted_turn_tells_who_said_what() -> None:
    """A name counts where the first line lists it; another word before a colon is none."""
    assert [(s.speaker, s.date, s.text) for s in read()] == [
        ("Ida", "2025-03-01", "The ferry is late."),
        ("Ida", "2025-03-01", "We took the train."),
        ("Ida", "2025-03-01", "It was full."),
        ("Ben Ali", "2025-03-01", "Note: bring a coat."),
        ("", "2025-03-01", "Price: 4 crowns"),
    ]


def test_a_quote_has_its_own_order_and_shows_its_gaps() -> None:
    """Sentences stand as they were said, whichever is the best; what is read back is what was written."""
    first, _, last, *_ = read()
    line = quote([last, first])
    assert line == "(2025-03-01) Ida: The ferry is late. … It was full."
    assert read_quote(line) == Quote("2025-03-01", "Ida", ("The ferry is late.", "It was full."))
    assert read_quote("booking_id: QX7, price: 4") is None


@pytest.mark.parametrize(
    ("cell", "facts"),
    [
        ("(2025-03-01) Ida: I came; I saw; (2025-03-01) Ben: Good", ["(2025-03-01) Ida: I came; I saw", "(2025-03-01) Ben: Good"]),
        ("It is green; It costs $4", ["It is green", "It costs $4"]),
    ],
)
def test_a_semicolon_inside_a_quote_parts_nothing(cell: str, facts: list[str]) -> None:
    """No words of one person become another's."""
    assert split_quotes(cell) == facts


ROWS = section2(
    (7, "1", "(2025-03-01) Ida: The blue kayak leaks. … I mended it with tar", "(2025-03-01) Ben: Whose kayak is that, Ida?"),
    (9, "2", "(2025-04-02) Ben: Ida, my kayak is red.", "(2025-04-02) Ida: Wow, Ben!"),
)


def test_an_answer_says_who_said_it_and_when(ask) -> None:
    """The speaker whom the question names leads; what was said to her, bare calls and questions back do not fill the answer."""
    query = "What colour is the kayak that Ida mended?"
    answer = ask("synthesizer", query, {"context.md": context(query, s2=ROWS)}, sources=[source("1", 7), source("2", 9)])
    assert answer.splitlines()[0] == "- (2025-03-01) Ida: The blue kayak leaks. … I mended it with tar. [1]"
    assert "Whose" not in answer and "Wow" not in answer and len(answer.split()) <= 100


def test_section_2_tells_passages_with_date_and_name(ask) -> None:
    """One passage a paragraph, dated; where one fact of a turn bears the date, each does."""
    prior = f"===== PRIOR TURN 7 (2025-03-01) [1] =====\n{SAID}\n\nThe train to Voss costs 40 crowns.\n"
    found = ask("context_synthesis", "Did Ida take the train or the ferry?", {"prior_turns": prior}, sources=[source("1", 7)])
    (turn,) = found["prior_turns"]
    assert turn["summary"].startswith("(2025-03-01) Ida: The ferry is late. We took the train.")
    assert all(fact.startswith("(2025-03-01) ") for fact in turn["key_facts"])


def test_a_reply_is_found_by_the_question_before_it(ask) -> None:
    """The answer shares no word with the query; the question to which it replies does."""
    prior = "".join(
        f"===== PRIOR TURN {n} (2025-03-0{n}) [{n}] =====\nSpeakers: Ida, Ben\n\n"
        f"0. User Query: Ida: {asked}\n\n5. Synthesis: Ben: {told}\n\n"
        for n, asked, told in (
            (7, "Who played the organ at the wedding?", "Matt Patterson, my cousin!"),
            (8, "I baked bread.", "Lovely crust!"),
        )
    )
    found = ask("context_synthesis", "Who played at the wedding?", {"prior_turns": prior}, sources=[source("7", 7), source("8", 8)])
    assert "Matt Patterson" in str(found["prior_turns"]) and "crust" not in str(found["prior_turns"])
