"""The client dials what was checked and names the host that was asked for, also over TLS."""

import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pandora_dagster.errors import FetchFailedError
from pandora_dagster.tools.egress.address_guard import CheckedAddress
from pandora_dagster.tools.egress.dialling import connect
from pandora_dagster.tools.egress.resolver import DialTarget
from pandora_dagster.tools.egress.web_client import WebClient
from tests.tools.egress.conftest import FetcherOf, Web


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of a.test with its key in one file."""
    if not (openssl := shutil.which("openssl")):
        pytest.skip("openssl makes the certificate")
    file = tmp_path_factory.mktemp("tls") / "a.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    made = subprocess.run(
        [*command, "-subj", "/CN=a.test", "-addext", "subjectAltName=DNS:a.test", "-keyout", file, "-out", f"{file}.crt"],
        capture_output=True,
        check=True,
    )
    assert made.returncode == 0
    file.write_text(file.read_text() + Path(f"{file}.crt").read_text())
    return file


def test_tls_is_verified_for_the_name_and_dialled_at_the_address(certificate: Path) -> None:
    names: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"secret")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    tls.sni_callback = lambda _socket, name, _context: names.append(name)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    places = (DialTarget("127.0.0.1", 1), DialTarget("127.0.0.1", server.server_port))  # the first refuses: the next one is tried
    client = WebClient("test", ssl.create_default_context(cafile=certificate))
    try:
        answer = client.send(CheckedAddress("https", "a.test", 443, "/", places), timeout_s=5, max_bytes=100, reads=lambda _: True)
        assert (answer.body, names) == (b"secret", ["a.test"])
        with pytest.raises(FetchFailedError, match="certificate is not valid"):
            client.send(CheckedAddress("https", "b.test", 443, "/", places), timeout_s=5, max_bytes=100, reads=lambda _: True)
        with pytest.raises(FetchFailedError, match="certificate is not valid"):
            WebClient("test").send(CheckedAddress("https", "a.test", 443, "/", places), timeout_s=5, max_bytes=100, reads=lambda _: True)
    finally:
        server.shutdown()
        server.server_close()


def test_proxies_of_the_environment_have_no_effect(web: Web, fetcher_of: FetcherOf, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    web.page("/")
    assert fetcher_of().fetch("http://a.test/", deadline_s=5).status == 200


def test_nothing_is_dialled_without_time() -> None:
    with pytest.raises(FetchFailedError, match="no time left"):
        connect(CheckedAddress("http", "a.test", 80, "/", (DialTarget("127.0.0.1", 1),)), timeout_s=0)
