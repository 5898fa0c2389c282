"""Who may come in."""

import pytest

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.api.guard import Guard, is_loopback
from pandora_dagster.errors import ConfigurationError

JSON = {"content-type": "application/json; charset=utf-8"}


def refused(guard: Guard, headers: dict[str, str]) -> int:
    with pytest.raises(ApiError) as error:
        guard.admit(headers, has_body=True)
    assert "s3cret" not in str(error.value.body)
    return error.value.status


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False), ("pc.lan", False)],
)
def test_without_a_key_only_this_machine_is_listened_to(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
    if loopback:
        Guard(host)
    else:
        with pytest.raises(ConfigurationError, match="PANDORA_API_KEY is not set"):
            Guard(host)
    Guard(host, "s3cret")


def test_the_key_is_asked_for_where_there_is_one() -> None:
    """Any Host will do then; the key stands in no message and in no representation of the guard."""
    guard = Guard("0.0.0.0", "s3cret")
    guard.admit({**JSON, "host": "pc.lan:8400", "authorization": "Bearer s3cret"}, has_body=True)
    for given in ("", "Bearer", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret", "Bearer s3cr\u00e9t"):
        assert refused(guard, {**JSON, "authorization": given}) == 401
    assert "s3cret" not in repr(guard)


def test_a_key_that_no_header_can_carry_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="expected printable ASCII"):
        Guard("127.0.0.1", "schlüssel")


def test_pages_of_other_sites_stay_out() -> None:
    """By the name under which they reached this machine, and by the content type that a page may send without asking."""
    guard = Guard("127.0.0.1")
    for host in ("127.0.0.1:8400", "localhost:8400", "localhost", "[::1]:8400"):
        guard.admit({**JSON, "host": host}, has_body=True)
    assert refused(guard, {**JSON, "host": "evil.example:8400"}) == 403
    assert refused(guard, {"host": "localhost", "content-type": "text/plain"}) == 415
    guard.admit({"host": "localhost"}, has_body=False)
