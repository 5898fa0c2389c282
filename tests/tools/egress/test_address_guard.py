"""The guard refuses every spelling of an address that is not public, and normalises the others."""

from collections.abc import Callable

import pytest

from pandora_dagster.errors import FetchFailedError, FetchRefusedError
from pandora_dagster.tools.egress.address_guard import AddressGuard, address_fault
from pandora_dagster.tools.egress.resolver import DialTarget, HostsFileResolver

PUBLIC, OTHER = "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"
Check = Callable[[str], str]


def guard_of(**names: list[str]) -> AddressGuard:
    return AddressGuard(HostsFileResolver({name.replace("_", "."): answers for name, answers in names.items()}, {}))


@pytest.fixture
def check() -> Check:
    guard = guard_of(example_org=[PUBLIC], xn__bcher_kva_example=[PUBLIC])
    return lambda url: guard.check(url, timeout_s=1).url


def refusal(url: str, **names: list[str]) -> str:
    with pytest.raises(FetchRefusedError) as refused:
        guard_of(**names).check(url, timeout_s=1)
    return refused.value.rule


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.0.0.1."),
        *("0", "0.0.0.0", "0x0", "10.0.0.7", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0xa9fea9fe", "2852039166", "100.64.0.1"),
        *("192.0.0.1", "198.18.0.1", "224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255", "127。0。0。1", "１２７.0.0.1"),
        *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]"),
        *("[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2001:0:4136:e378:8000:63bf:3fff:fdd2]", "[fe80::1]"),
        *("[fc00::1]", "[fd12:3456::1]", "[fec0::1]", "[ff02::1]", "[2606:2800::5efe:127.0.0.1]", "[::ffff:0:127.0.0.1]"),
        *("localhost", "LOCALHOST", "localhost.", "deep.localhost"),
    ],
)
def test_an_address_that_is_not_public_is_refused(host: str) -> None:
    assert refusal(f"http://{host}/") == "address"


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        *(
            (url, "scheme")
            for url in ("file:///etc/passwd", "data:text/html,x", "javascript:alert(1)", "ftp://example.org/", "gopher://x/")
        ),
        *((url, "scheme") for url in ("//example.org/", "example.org", "", "http:example.org", "http:/example.org/", "ws://example.org/")),
        *((f"http://example.org:{port}/", "port") for port in (22, 25, 6379, 11211, 65535)),
        *((url, "credentials") for url in ("http://me@example.org/", "http://me:pw@example.org/", "http://example.org@127.0.0.1.nip.io/")),
        *((url, "address form") for url in ("http://", "http:///x", "http://exa mple.org/", "http://example.org\\@x/", "http://a\tb/")),
        *((url, "address form") for url in ("http://example.org:99999/", "http://[::1/", "http://[fe80::1%25eth0]/", "http://1.2.3.256/")),
        *((url, "address form") for url in ("http://exa%6dple.org/", "http://-.example/", "http://1.2.3.4.5/", "http://example..org/")),
        *((url, "address form") for url in ("http://example.org/\r\nHost: x", "http://example.org/\x00", "http://" + "a" * 3000)),
        ("http://example.org/" + "a" * 1_600, "address form"),
        ("http://example.org/" + "\u00fc" * 500, "address form"),
    ],
)
def test_what_is_no_plain_web_address_is_refused(url: str, rule: str) -> None:
    assert refusal(url, example_org=[PUBLIC]) == rule


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("http://example.org./x#part", "http://example.org/x"),
        ("http://example.org:80/", "http://example.org/"),
        ("https://example.org:443/?", "https://example.org/"),
        ("https://example.org:8443/a?b=c d".replace(" ", "%20"), "https://example.org:8443/a?b=c%20d"),
        ("http://example.org/a/../private/%2e%2E/./b/..", "http://example.org/"),
        ("http://example.org/../../x/.", "http://example.org/x/"),
        ("http://example.org//double//", "http://example.org//double//"),
        ("http://example.org/grün?q=ä", "http://example.org/gr%C3%BCn?q=%C3%A4"),
        ("http://93.184.215.14/", "http://93.184.215.14/"),
        ("http://0x5db8d70e/", "http://93.184.215.14/"),
        ("http://[2606:2800:21F:cb07:6820:80da:af6b:8b2c]/", f"http://[{OTHER}]/"),
    ],
)
def test_an_address_gets_its_normal_form(check: Check, url: str, normal: str) -> None:
    assert check(url) == normal
    assert check(normal) == normal


def test_a_name_in_another_script_is_resolved_in_its_ascii_form() -> None:
    guard = AddressGuard(HostsFileResolver({"xn--bcher-kva.example": [PUBLIC]}, {}))
    assert guard.check("http://Bücher.example/", timeout_s=1).host == "xn--bcher-kva.example"


def test_one_address_that_is_not_public_refuses_the_name() -> None:
    class TwoAnswers(HostsFileResolver):
        def addresses(self, name: str, *, timeout_s: float) -> tuple[str, ...]:
            return PUBLIC, "10.0.0.7"

    with pytest.raises(FetchRefusedError, match=r"example.org \(10.0.0.7\): not a public address"):
        AddressGuard(TwoAnswers({}, {})).check("http://example.org/", timeout_s=1)


def test_each_request_is_judged_by_the_answer_it_gets() -> None:
    """Rebinding: the first answer is public, the next one is not."""
    guard = guard_of(example_org=[PUBLIC, "127.0.0.1"])
    assert guard.check("http://example.org/", timeout_s=1).dials == (DialTarget(PUBLIC, 80),)
    with pytest.raises(FetchRefusedError):
        guard.check("http://example.org/", timeout_s=1)


def test_a_tunnel_is_judged_like_a_page() -> None:
    guard = guard_of(example_org=[PUBLIC])
    assert guard.check_host("example.org", 443, timeout_s=1).dials == (DialTarget(PUBLIC, 443),)
    assert guard.check_host("example.org", 80, timeout_s=1).scheme == "http"
    for host, port in (("127.1", 443), ("::1", 443), ("[::1]", 80), ("example.org", 22), ("a@example.org", 443), ("example.org/x", 443)):
        with pytest.raises(FetchRefusedError):
            guard.check_host(host, port, timeout_s=1)


def test_an_unknown_name_is_no_refusal() -> None:
    with pytest.raises(FetchFailedError, match="not a name of the hosts file"):
        guard_of().check("http://example.org/", timeout_s=1)


@pytest.mark.parametrize("address", ["8.8.8.8", "192.88.99.10", OTHER, "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_a_public_address_has_no_fault(address: str) -> None:
    assert address_fault(address) == ""
