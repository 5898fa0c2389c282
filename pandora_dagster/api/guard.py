"""Who may come in: the key, and on a machine without one only what comes from this machine. Knows headers; knows no route."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from pandora_dagster.api.api_errors import ApiError
from pandora_dagster.errors import ConfigurationError

KEY_NAME = "PANDORA_API_KEY"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Guard:
    """`key` is "" where none is configured: then the door is open to this machine's programs, and closed to its browser's pages."""

    host: str
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.key and not is_loopback(self.host):
            raise ConfigurationError(
                f"{self.host}: others can reach it and {KEY_NAME} is not set: expected a key, or a loopback address",
                hint=f"Set {KEY_NAME}, or leave --host at 127.0.0.1.",
            )
        if self.key and not (self.key.isascii() and self.key.isprintable()):
            raise ConfigurationError(f"{KEY_NAME}: has characters that no header can carry: expected printable ASCII")

    def admit(self, headers: Mapping[str, str], *, has_body: bool) -> None:
        """Raises RefusedError. A JSON body has to say so: a page of another site can not send one here without being asked first."""
        if self.key:
            given = headers.get("authorization", "")
            scheme, _, secret = given.partition(" ")
            if not (hmac.compare_digest(secret.strip().encode(), self.key.encode()) and scheme.lower() == "bearer"):
                raise ApiError(
                    401, "Authorization: expected the key of this server", code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"}
                )
        elif _host_name(headers.get("host", "")) not in (*_LOOPBACK_NAMES, self.host):
            raise ApiError(403, "Host: another name than this machine's: expected a loopback address", code="wrong_host")
        if has_body and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise ApiError(415, "Content-Type: expected application/json", code="wrong_content_type")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host_name(host: str) -> str:
    """A Host header without its port."""
    return host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
