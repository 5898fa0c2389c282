"""Where an answer ends for its client."""

from typing import Any

import pytest

from pandora_dagster.api.answer_delivery import AnswerDelivery
from pandora_dagster.api.turn_request import AnswerLimits
from pandora_dagster.contracts.enums import TurnState
from pandora_dagster.contracts.ids import TurnKey, user_id
from pandora_dagster.phases.flow.turn_answer import TurnAnswer

PROSE = "The desk is oak. It cost $ 742. Nordhaus made it."
LIST = "Ordered:\n\n- a desk of oak\n- a chair of ash\n- a lamp\n\nAll were paid."
CODE = "Run this:\n\n```sh\nmake build\nmake test\n```\n\nThen wait for it."


def answer(text: str, *labels: str) -> TurnAnswer:
    cited: tuple[dict[str, Any], ...] = tuple({"label": label, "turn_id": "turn_000001"} for label in labels)
    return TurnAnswer(TurnKey(user_id("ann"), 1), TurnState.SAVED, text, cited, None)


def delivery(*stop: str, words: int | None = None) -> AnswerDelivery:
    return AnswerDelivery(AnswerLimits(stop, words), lambda text: len(text.split()))


def streamed(made: AnswerDelivery, text: str, step: int) -> tuple[str, str]:
    """What a stream of pieces of `step` characters delivers, and how it finishes."""
    pieces = [made.add(text[at : at + step]) for at in range(0, len(text), step)]
    last, delivered = made.finish(answer(text))
    assert "".join(pieces) + last == delivered.text == made.delivered
    return delivered.text, delivered.finish


@pytest.mark.parametrize("step", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "stop", "words", "expected", "finish"),
    [
        (PROSE, (), None, PROSE, "stop"),
        (PROSE, ("$",), None, "The desk is oak. It cost ", "stop"),
        (PROSE, ("Nordhaus", "It cost"), None, "The desk is oak. ", "stop"),
        (PROSE, ("made it for",), None, PROSE, "stop"),
        (PROSE, (), 11, PROSE, "stop"),
        (PROSE, (), 9, "The desk is oak. It cost $ 742.", "length"),
        (PROSE, (), 7, "The desk is oak.", "length"),
        (PROSE, (), 3, "", "length"),
        (LIST, (), 11, "Ordered:\n\n- a desk of oak\n- a chair of ash", "length"),
        (CODE, (), 3, "Run this:", "length"),
        (CODE, (), 8, "Run this:\n\n```sh\nmake build\nmake test\n```", "length"),
        (PROSE, ("Nordhaus",), 4, "The desk is oak.", "length"),
    ],
)
def test_an_answer_ends_between_units(step: int, text: str, stop: tuple[str, ...], words: int | None, expected: str, finish: str) -> None:
    """Whole and streamed alike, whatever the pieces: no sentence, item or block of code is cut, and the client is informed."""
    whole = delivery(*stop, words=words).whole(answer(text))
    assert (whole.text, whole.finish) == (expected, finish)
    assert streamed(delivery(*stop, words=words), text, step) == (expected, finish)


def test_a_stop_sequence_ends_the_list_of_sources_too() -> None:
    assert delivery().whole(answer(PROSE, "1")).text == f"{PROSE}\n\n[1] turn_000001"
    assert delivery("made").whole(answer(PROSE, "1")).text == "The desk is oak. It cost $ 742. Nordhaus "


def test_pieces_that_cannot_change_are_sent_at_once() -> None:
    """Nothing waits without limits; with a stop sequence only what may be its beginning; with a number of tokens whole lines."""
    assert delivery().add("The de") == "The de"
    stops = delivery("END")
    assert [stops.add(piece) for piece in ("All EN", "ough. E", "ND more", " words")] == ["All ", "ENough. ", "", ""]
    limited = delivery(words=50)
    assert limited.add("First one. Second one.\n\nThird") == "First one. Second one."


def test_a_withdrawn_draft_is_followed_by_its_replacement() -> None:
    """The notice stands between them; what replaces it ends by the same limits."""
    made = delivery("STOP")
    assert made.withdraw("nothing was sent") == ""
    assert made.add("It was ash.") == "It was ash."
    assert "withdrawn: wrong wood" in made.withdraw("wrong wood")
    last, delivered = made.finish(answer("It was oak. STOP and more"))
    assert last == "It was oak. " and delivered.text.startswith("It was ash.\n\n---") and delivered.text.endswith("oak. ")
