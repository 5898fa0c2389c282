"""No credential gets into a fact, a verdict, or a condensed text; the sentence around it may stay."""

import pytest

from pandora_dagster.compression.compressor import compress
from pandora_dagster.compression.verification.summary_check import check_summary
from pandora_dagster.compression.verification.text_facts import find_facts
from pandora_dagster.compression.verification.verifier import verify
from pandora_dagster.contracts.compression_results import CompressionRequest
from pandora_dagster.documents.redaction.credentials import credential_spans, redact
from pandora_dagster.runtime.token_counter import TokenCounter

SECRET = "tr0ub4dor" + "3xyz"
SAID = f"user: my password is {SECRET} and I must not pay more than $40 for ticket TX-881."
TEXT = SAID + "\nassistant: I have noted that. " + "There is more to say about the weather of the week. " * 60


@pytest.mark.parametrize("query", [None, "what is the password?"])
def test_a_condensed_text_leaves_it_out(counter: TokenCounter, query: str | None) -> None:
    """What was said around it stays, also where it is asked for."""
    made = compress(CompressionRequest(TEXT, query=query or "", target=90), counter)
    assert made.text
    assert "[redacted]" in made.text and "$40" in made.text and SECRET not in made.text
    assert not any(SECRET in v.text + v.evidence + v.reason for v in made.verification.verdicts)


def test_no_verdict_of_a_models_text_holds_it() -> None:
    """Neither what is kept, missing nor invented."""
    found = verify(find_facts(SAID), f"user: password is {SECRET}; another password: Zz9{SECRET}")
    assert not any(SECRET in v.text + v.evidence for v in found.verdicts)


def test_a_text_that_copies_one_is_refused(counter: TokenCounter) -> None:
    """With its reason, which does not hold it."""
    check = check_summary(f"The password is {SECRET}; the ticket TX-881 may cost $40.", TEXT, 90, counter)
    assert check
    assert any("credential" in r for r in check) and not any(SECRET in r for r in check)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("card 4111 1111 1111 1111", True),
        ("my visa card is 4111111111111111", True),
        ("parcel 4111111111111111 is on its way", False),
        ("device 353918051234563 of line L5", False),
        ("card 4111 1111 1111 1112", False),
    ],
)
def test_payment_cards_are_known_by_their_digits_and_how_they_stand(text: str, is_one: bool) -> None:
    """A right check digit, and grouped or named as a card."""
    assert bool(credential_spans(text)) is is_one
    assert ("[redacted]" in redact(text)) is is_one
