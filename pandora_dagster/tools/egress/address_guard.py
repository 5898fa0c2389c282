"""Judges an address of the web before anything is sent: its form, its scheme and port, and every IP address of its host.

What is checked here is what `dialling` dials: a name is resolved once for each request. An address in any spelling that is not a global
unicast address is refused, also within an IPv6 address that carries an IPv4 one.
"""

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import quote, urlsplit

import idna

from pandora_dagster.errors import FetchRefusedError
from pandora_dagster.tools.egress.resolver import DialTarget, Resolver

MAX_URL_CHARACTERS = 1_600
"""Of an address, and of its path and query in normal form: the record of a visit holds 2,000."""
DEFAULT_PORTS: Mapping[str, int] = {"http": 80, "https": 443}
ALLOWED_PORTS = frozenset({80, 443, 8080, 8443})
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
"""Clients disagree on where the host ends in an address with one of these."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last label of a host that is an IPv4 address in some spelling (WHATWG URL, host parsing)."""
_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST = IPv6Network("2000::/3")
"""The only part of the IPv6 space in which public addresses are assigned."""
_OBSOLETE = (IPv6Network("2002::/16"), IPv6Network("2001::/32"))
"""6to4 and Teredo: each may lead into a private IPv4 network, and no public site needs them."""
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_ESCAPED_DOT = re.compile("%2e", re.IGNORECASE)
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"


@dataclass(frozen=True, slots=True)
class CheckedAddress:
    """An address that may be asked, with the only places where it may be dialled."""

    scheme: str
    host: str
    """The name in lower-case ASCII, or an IP address, without brackets."""
    port: int
    target: str
    """Path and query."""
    dials: tuple[DialTarget, ...]

    @property
    def authority(self) -> str:
        """Host and, where it is not the scheme's own, port: the value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if DEFAULT_PORTS.get(self.scheme) == self.port else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """The address in normal form, without a fragment."""
        return f"{self.origin}{self.target}"


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Judges addresses with the answers of one resolver."""

    resolver: Resolver

    def check(self, url: str, *, timeout_s: float) -> CheckedAddress:
        """The address of `url`; raises FetchRefusedError, and FetchFailedError where its name does not resolve."""
        scheme, host, port, target = parse_url(url)
        return CheckedAddress(scheme, host, port, target, self._dials(host, port, timeout_s))

    def check_host(self, host: str, port: int, *, timeout_s: float) -> CheckedAddress:
        """The address of a tunnel (CONNECT), about whose content nothing is known; raises like `check`."""
        scheme = "http" if port == DEFAULT_PORTS["http"] else "https"
        try:
            name = _host(host.removeprefix("[").removesuffix("]").lower())
        except ValueError as error:
            raise FetchRefusedError(f"{_shown(host)}: {error}: expected a host name", rule="address form") from error
        _check_port(port, name)
        return CheckedAddress(scheme, name, port, "/", self._dials(name, port, timeout_s))

    def _dials(self, host: str, port: int, timeout_s: float) -> tuple[DialTarget, ...]:
        """Where to dial `host`; all of its addresses must be global."""
        literal = _literal(host)
        addresses = (literal,) if literal else self.resolver.addresses(host, timeout_s=timeout_s)
        for address in addresses:
            if fault := address_fault(address):
                shown = host if literal else f"{host} ({address})"
                raise FetchRefusedError(f"{shown}: {fault}", rule="address")
        return tuple(self.resolver.dial(_plain(address), port) for address in addresses)


def parse_url(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port, and path with query, in normal form; raises FetchRefusedError."""
    shown = _shown(url)
    _check_length(url)
    scheme = url.partition(":")[0].strip().lower()
    if scheme not in DEFAULT_PORTS or not url.lower().startswith(f"{scheme}://"):
        raise FetchRefusedError(f"{shown}: expected an address that begins with http:// or https://", rule="scheme")
    if _UNSAFE.search(url):
        raise FetchRefusedError(f"{shown}: blanks, control characters and \\ have no place in an address", rule="address form")
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[scheme]
        host = _host(parts.hostname or "")
        target = _path(parts.path) + (f"?{quote(parts.query, safe=_PATH_SAFE + '?')}" if parts.query else "")
    except (ValueError, UnicodeError) as error:
        raise FetchRefusedError(f"{shown}: {error}: expected an address such as https://example.org/", rule="address form") from error
    if "@" in parts.netloc:
        raise FetchRefusedError(f"{scheme}://{host}: a user name or password in the address: expected none", rule="credentials")
    _check_port(port, shown)
    _check_length(target)
    return scheme, host, port, target


def _check_length(text: str) -> None:
    if len(text) > MAX_URL_CHARACTERS:
        raise FetchRefusedError(
            f"{_shown(text)}...: {len(text):,} characters: expected at most {MAX_URL_CHARACTERS:,}", rule="address form"
        )


def _shown(text: str) -> str:
    return text[:200].encode("unicode_escape").decode()


def _check_port(port: int, where: str) -> None:
    if port not in ALLOWED_PORTS:
        expected = ", ".join(map(str, sorted(ALLOWED_PORTS)))
        raise FetchRefusedError(f"{where}: port {port}: expected one of {expected}", rule="port")


def _host(text: str) -> str:
    """A host in lower-case ASCII; an IPv4 address in any spelling becomes the dotted one. Raises ValueError."""
    if ":" in text:
        if "%" in text:
            raise ValueError("an address with a zone")
        return IPv6Address(text).compressed
    name = text if text.isascii() else idna.encode(text, uts46=True).decode()
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(socket.inet_aton(name)))
        except OSError:
            raise ValueError(f"{name} is no IPv4 address") from None
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("the host is not a name" if name else "no host")
    if labels[-1] == "localhost":
        raise FetchRefusedError(f"{name}: this machine, not a public address", rule="address")
    return name


def _path(text: str) -> str:
    """A path without dot segments, as servers read it: `/a/%2e%2e/private/` is under the rules of `/private/` in robots.txt."""
    path: list[str] = []
    segments = _ESCAPED_DOT.sub(".", text).split("/")[1:] or [""]
    for segment in segments:
        if segment == "..":
            path = path[:-1]
        elif segment != ".":
            path.append(segment)
    if segments[-1] in (".", ".."):
        path.append("")
    return quote("/" + "/".join(path), safe=_PATH_SAFE)


def _literal(host: str) -> str:
    """`host` where it is an IP address, else ""."""
    try:
        return str(ip_address(host))
    except ValueError:
        return ""


def _plain(address: str) -> str:
    """The address to dial: the IPv4 one of a mapped address."""
    ip = ip_address(address)
    return str(ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else str(ip)


def address_fault(address: str) -> str:
    """Why `address` must not be dialled; "" for a global unicast address."""
    try:
        ip = ip_address(address)
    except ValueError:
        return "no IP address"
    if isinstance(ip, IPv6Address):
        if embedded := ip.ipv4_mapped or (IPv4Address(int(ip) & 0xFFFF_FFFF) if ip in _NAT64 else None):
            return address_fault(str(embedded))
        if ip.scope_id or ip not in _UNICAST or any(ip in net for net in _OBSOLETE) or (int(ip) >> 32) & 0xFFFF_FFFF in _ISATAP:
            return "not a public address"
    if not ip.is_global or ip.is_multicast:
        return "not a public address"
    return ""
