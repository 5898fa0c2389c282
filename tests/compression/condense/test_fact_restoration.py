"""What is put back: where, behind whose name, and how often."""

import pytest

from pandora_dagster.compression import compress
from pandora_dagster.compression.condense.attribution import Origin
from pandora_dagster.compression.condense.fact_restoration import restore_facts, snippet
from pandora_dagster.compression.judge.ledger import build_ledger
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.documents.token_counter import TokenCounter

CHAT = """Mara: we can't give 15 %. Offer 8 % and a free month, that's $1,150 less for us.
Ben: found it, the fix is in PR 4471 and costs 4 hours.
Mara: reviewed on 18 June.
Ben: done, pushed."""
CONTEXT = """## 0. User Query

Find a laptop under $900.

## 2. Gathered Context

The Acer costs $749 and weighs 2.1 kg.

## 4. Tool Results

The calculator says $150.
"""


def test_a_fact_stands_behind_the_name_of_who_said_it(counter: TokenCounter) -> None:
    """What one speaker said stands on one line, each sentence once."""
    made = restore_facts("Ben: done, pushed.", build_ledger(CHAT).facts, CHAT, 400, counter).split("\n")
    assert made[0] == "Ben: done, pushed."
    said = {line.removeprefix("also: ").partition(":")[0]: line for line in made[1:]}
    assert set(said) == {"Mara", "Ben"}
    assert "$1,150" in said["Mara"] and "18 June" in said["Mara"] and "4471" in said["Ben"]
    assert said["Mara"].count("8 %") == 1


def test_a_fact_stands_in_its_own_section(counter: TokenCounter) -> None:
    """What the second section said is not put below the fourth, and the query stays byte for byte."""
    body = CONTEXT.replace("The Acer costs $749 and weighs 2.1 kg.\n\n", "")
    lost = [f for f in build_ledger(CONTEXT).facts if "749" in f.text]
    made = restore_facts(body, lost, CONTEXT, 400, counter)
    assert made.startswith(CONTEXT.partition("## 2.")[0])
    assert made.index("## 2.") < made.index("$749") < made.index("## 4.")


def test_where_nothing_else_stands_nothing_is_marked(counter: TokenCounter) -> None:
    """The critical sentences alone are a text, not a supplement to one."""
    text = "The tenant must not keep dogs. " + "\n".join(f"It rained on day {n} of a very long month." for n in range(20))
    made = restore_facts("", build_ledger(text).critical, text, 40, counter)
    assert made == "The tenant must not keep dogs."


def test_a_value_inside_a_statement_that_is_put_back_is_not_said_again(counter: TokenCounter) -> None:
    """A limit stands once, with its amount."""
    text = "user: I must not pay more than $400 for the 2 rooms.\nassistant: Fine."
    made = restore_facts("assistant: Fine.", build_ledger(text).facts, text, 100, counter)
    assert made == "assistant: Fine.\nalso: user: I must not pay more than $400 for the 2 rooms."


def test_what_came_of_it_stands(counter: TokenCounter) -> None:
    """The code of a booking comes before the many values of the talk that led to it."""
    asked = "".join(
        f"User: What about room {n}? I heard it is in house{n}.\nAssistant: Room {n} costs {n}5 euros, I believe.\n" for n in range(1, 30)
    )
    text = f"{asked}User: Take room 7 please.\nAssistant: Booked. Your confirmation code is QX7RT2, total 75 euros."
    made = compress(CompressionRequest(text, target=counter.count(text) // 3), counter).text or ""
    assert "assistant: Booked. Your confirmation code is QX7RT2, total 75 euros." in made


_ORDERS = (
    "user: I want to see Dr. Amsel on 4 June about case B-771.\n"
    "assistant: Dr. Amsel is free on 9 June. The visit costs 310.50 euros and is paid at the desk, as always in this house.\n"
    "tool book: Error 502: desk not reached\n"
    "user: Then book 9 June, I pay the 310.50 euros by card. Call the desk first, but not at the number on the old letter.\n"
    "assistant: Done, the visit is booked. The desk will write to you about the papers that you have to bring along.\n"
)


@pytest.mark.parametrize("target", range(70, 120, 6))
def test_a_speaker_is_named_at_the_beginning_of_a_line_only(counter: TokenCounter, target: int) -> None:
    text = compress(CompressionRequest(_ORDERS, target=target), counter).text or ""
    for line in text.split("\n"):
        assert "user:" not in line.removeprefix("also: ").removeprefix("user:")
        assert "assistant:" not in line.removeprefix("also: ").removeprefix("assistant:")
        assert not line.startswith(("Amsel", "also: user: Amsel"))


def test_a_sum_that_a_person_names_too_is_put_back_behind_them(counter: TokenCounter) -> None:
    texts = [compress(CompressionRequest(_ORDERS, target=target), counter).text or "" for target in range(60, 120, 4)]
    put_back = [line for text in texts for line in text.split("\n") if line.startswith("also: ") and "310.50" in line]
    assert any("310.50" in text for text in texts)
    assert all(line.startswith("also: user: ") for line in put_back)


def test_what_a_person_asks_for_and_must_not_be_is_critical(counter: TokenCounter) -> None:
    made = compress(CompressionRequest(_ORDERS, target=110), counter)
    assert "not at the number on the old letter" in (made.text or "")


def test_a_tool_keeps_its_name(counter: TokenCounter) -> None:
    text = compress(CompressionRequest(_ORDERS, target=100), counter).text or ""
    assert "tool book: Error 502: desk not reached" in text


def test_what_is_denied_behind_a_fact_comes_with_its_denial(counter: TokenCounter) -> None:
    """`1.7 litres, not the white one` is not put back as `1.7 litres not`."""
    source = "user: I ordered the blue one, 1.7 litres, not the white one, as everybody at home had wished for."
    fact = next(f for f in build_ledger(source).facts if f.text == "1.7 litres")
    assert "not white one" in snippet(fact, Origin(source)).replace("the ", "")
