"""What must not be remembered."""

import pytest

from pandora_dagster.documents.redaction.credentials import holds_secret


@pytest.mark.parametrize(
    "text",
    [
        "my password is hunter22!",
        "the api key: abcd1234efgh5678",
        "use ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "my PIN is 4711",
        "the security code on the back is 123",
        "my card is 4111 1111 1111 1111",
        "postgres://anna:s3cretpass@db/main",
    ],
)
def test_secrets(text):
    """Keys, passwords, codes and cards, by form or by name."""
    assert holds_secret(text)


@pytest.mark.parametrize("text", ["My budget is $900.", "Flight HAT136 leaves at 10:45.", "I pinned note 300.", "My locker is 212.", ""])
def test_what_merely_has_digits(text):
    """Amounts, flights and numbers of things are no secrets."""
    assert not holds_secret(text)
