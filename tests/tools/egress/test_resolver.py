"""Names by a hosts file or by the system."""

import json
import socket
import time
from pathlib import Path

import pytest

from pandora_dagster.errors import ConfigurationError, FetchFailedError
from pandora_dagster.tools.egress.resolver import DialTarget, SystemResolver, open_resolver


def test_a_hosts_file_gives_its_answers_in_turn_and_where_to_dial(tmp_path: Path) -> None:
    table = {"resolver": {"A.test": ["192.88.99.1", "10.0.0.1"]}, "dial": {"192.88.99.1": "127.0.0.1:8123"}, "hosts": {}, "web": "x"}
    (tmp_path / "hosts.json").write_text(json.dumps(table))
    resolver = open_resolver(tmp_path / "hosts.json")
    assert [resolver.addresses("a.test", timeout_s=1) for _ in range(3)] == [("192.88.99.1",), ("10.0.0.1",), ("10.0.0.1",)]
    assert resolver.dial("192.88.99.1", 80) == DialTarget("127.0.0.1", 8123)
    assert resolver.dial("192.88.99.2", 80) == DialTarget("192.88.99.2", 80)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"resolver": {"a": "b"}}', '{"resolver": {}, "dial": {"a": "b:c"}}', "\x00"])
def test_a_damaged_hosts_file_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "hosts.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"hosts\.json: .*: expected"):
        open_resolver(tmp_path / "hosts.json")
    with pytest.raises(ConfigurationError, match="No such file"):
        open_resolver(tmp_path / "none.json")


def test_the_system_gives_all_addresses_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("8.8.8.8", 0)), (10, 1, 6, "", ("2001:4860::8", 0, 0, 0)), (2, 1, 6, "", ("8.8.8.8", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert SystemResolver().addresses("example.org", timeout_s=1) == ("8.8.8.8", "2001:4860::8")


def test_a_name_that_does_not_resolve_or_is_slow_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(FetchFailedError, match="does not resolve") as failed:
        SystemResolver().addresses("example.org", timeout_s=1)
    assert not failed.value.retryable
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(0.2) or [])
    with pytest.raises(FetchFailedError, match="not resolved within") as failed:
        SystemResolver().addresses("example.org", timeout_s=0.05)
    assert failed.value.retryable
