"""What is put back: where, behind whose name, and how often."""

from pandora_dagster.compression import compress
from pandora_dagster.compression.ledger import take_ledger
from pandora_dagster.compression.restoring import restored
from pandora_dagster.text.tokens import TokenCounter

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
    made = restored("Ben: done, pushed.", take_ledger(CHAT).facts, CHAT, 400, counter).split("\n")
    assert made[0] == "Ben: done, pushed."
    said = {line.removeprefix("also: ").partition(":")[0]: line for line in made[1:]}
    assert set(said) == {"Mara", "Ben"}
    assert "$1,150" in said["Mara"] and "18 June" in said["Mara"] and "4471" in said["Ben"]
    assert said["Mara"].count("8 %") == 1


def test_a_fact_stands_in_its_own_section(counter: TokenCounter) -> None:
    """What the second section said is not put below the fourth, and the query stays byte for byte."""
    body = CONTEXT.replace("The Acer costs $749 and weighs 2.1 kg.\n\n", "")
    lost = [f for f in take_ledger(CONTEXT).facts if "749" in f.text]
    made = restored(body, lost, CONTEXT, 400, counter)
    assert made.startswith(CONTEXT.partition("## 2.")[0])
    assert made.index("## 2.") < made.index("$749") < made.index("## 4.")


def test_where_nothing_else_stands_nothing_is_marked(counter: TokenCounter) -> None:
    """The critical sentences alone are a text, not a supplement to one."""
    text = "The tenant must not keep dogs. " + "\n".join(f"It rained on day {n} of a very long month." for n in range(20))
    made = restored("", take_ledger(text).critical, text, 40, counter)
    assert made == "The tenant must not keep dogs."


def test_a_value_inside_a_statement_that_is_put_back_is_not_said_again(counter: TokenCounter) -> None:
    """A limit stands once, with its amount."""
    text = "user: I must not pay more than $400 for the 2 rooms.\nassistant: Fine."
    made = restored("assistant: Fine.", take_ledger(text).facts, text, 100, counter)
    assert made == "assistant: Fine.\nalso: user: I must not pay more than $400 for the 2 rooms."


def test_what_came_of_it_stands(counter: TokenCounter) -> None:
    """The code of a booking comes before the many values of the talk that led to it."""
    asked = "".join(
        f"User: What about room {n}? I heard it is in house{n}.\nAssistant: Room {n} costs {n}5 euros, I believe.\n" for n in range(1, 30)
    )
    text = f"{asked}User: Take room 7 please.\nAssistant: Booked. Your confirmation code is QX7RT2, total 75 euros."
    made = compress(text, target_tokens=counter.count(text) // 3, counter=counter).text or ""
    assert "assistant: Booked. Your confirmation code is QX7RT2, total 75 euros." in made
