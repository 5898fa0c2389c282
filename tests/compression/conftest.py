"""What the tests of this room share: one token counter, and a small transcript with every kind of message."""

import json
from pathlib import Path

import pytest

from pandora_dagster.runtime.token_counter import TokenCounter

VOCABULARY = Path(__file__).parents[2] / "data" / "tokenizer" / "cl100k_base.tiktoken"


@pytest.fixture(scope="session")
def counter() -> TokenCounter:
    return TokenCounter(VOCABULARY)


@pytest.fixture(scope="session")
def transcript() -> str:
    """A person, an assistant, calls and results, in which trains stand in an object and in a list."""
    trains = [
        {"train_id": f"TR{n}", "from": "Oslo", "to": "Bergen", "departs": f"{n % 24:02d}:15:00", "price": 40 + n, "seats": n % 7}
        for n in range(60)
    ]
    call = [{"name": "search_trains", "arguments": json.dumps({"from": "Oslo", "to": "Bergen", "date": "2026-03-14"})}]
    booking = {
        "booking_id": "QX81Z",
        "travellers": [{"name": "Ada Berg", "born": "1990-01-02"}, {"name": "Ivo Lund", "born": "1988-07-30"}],
        "payment": [{"card_id": "card_5512", "amount": 82}],
    }
    return "\n".join(
        (
            "user: I need two seats from Oslo to Bergen on March 14, 2026. I must not pay more than $90.",
            f"assistant: Let me look. {json.dumps(call)}",
            f"tool search_trains: {json.dumps(trains)}",
            "assistant: TR1 leaves at 01:15 and costs $41. Shall I book it?",
            "user: Yes, please take TR1 and pay with card_5512.",
            f"tool get_booking: {json.dumps(booking)}",
            "tool book: Error: payment declined for card_5512",
        )
    )
