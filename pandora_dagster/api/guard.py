"""Access control of the servers: by key, or without a key for this machine only."""

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
    """Admits requests. With `key` "" the programs of this machine are admitted, and web pages in its browser are not."""

    host: str
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.key and not is_loopback(self.host):
            raise ConfigurationError(
                f"{self.host}: other machines can reach it and {KEY_NAME} is not set: expected a key, or a loopback address",
                hint=f"Set {KEY_NAME}, or leave --host at 127.0.0.1.",
            )
        if self.key and not (self.key.isascii() and self.key.isprintable()):
            raise ConfigurationError(f"{KEY_NAME}: has characters that a header cannot carry: expected printable ASCII")

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Without a key, raise ApiError for a request under another name than this machine's."""
        if not self.key and _host_name(headers.get("host", "")) not in (*_LOOPBACK_NAMES, self.host):
            raise ApiError(403, "Host: not the name of this machine: expected a loopback address", code="wrong_host")

    def admit(self, headers: Mapping[str, str], *, has_body: bool) -> None:
        """Raise ApiError for a request that is not allowed.

        A body must be declared as JSON: a browser asks the server before it sends such a body from a page of another site.
        """
        if self.key:
            authorization = headers.get("authorization", "")
            scheme, _, secret = authorization.partition(" ")
            if not (hmac.compare_digest(secret.strip().encode(), self.key.encode()) and scheme.lower() == "bearer"):
                raise ApiError(
                    401, "Authorization: expected the key of this server", code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"}
                )
        self.check_host(headers)
        if has_body and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise ApiError(415, "Content-Type: expected application/json", code="wrong_content_type")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host_name(host: str) -> str:
    """The host of a Host header, without its port."""
    return host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
