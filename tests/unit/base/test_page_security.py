"""Who may read HTTP pages, and how."""

import asyncio
import base64
import http.client
import os
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from kaspar.base import page_security, pages
from kaspar.base.errors import KasparError
from kaspar.base.page_security import PageGuard, PageSecurity, Scheme
from kaspar.base.pages import PageServer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_security, "WRONG_SECRET_PAUSE_S", 0.01)
    monkeypatch.setattr(pages, "_RELOAD_EVERY_S", 0.1)


def credentials(folder: Path, text: str) -> str:
    file = folder / "credentials"
    file.write_text(text)
    return str(file)


def basic(text: str) -> bytes:
    return b"Basic " + base64.b64encode(text.encode())


def app() -> Starlette:
    async def page(_: object) -> PlainTextResponse:
        return PlainTextResponse("here it is")

    return Starlette(routes=[Route("/", page)])


def test_basic_authentication_takes_the_users_of_the_file(tmp_path: Path) -> None:
    file = credentials(tmp_path, "# users\n\nprometheus:s3cret:with colon\nother:x\n")
    guard = PageGuard(PageSecurity(scheme=Scheme.BASIC, credentials_file=file))
    assert guard.allows(basic("prometheus:s3cret:with colon"))
    assert guard.allows(b"bAsIc " + basic("other:x")[6:])
    for wrong in (None, b"", b"Basic", b"Basic !!!", basic("other:"), basic("# users"), basic("x"), b"Bearer other:x"):
        assert not guard.allows(wrong), wrong


def test_bearer_authentication_takes_the_tokens_of_the_file(tmp_path: Path) -> None:
    guard = PageGuard(PageSecurity(scheme=Scheme.BEARER, credentials_file=credentials(tmp_path, "one\ntwo\n")))
    assert guard.allows(b"Bearer one")
    assert guard.allows(b"Bearer two")
    assert not guard.allows(b"Bearer on")
    assert not guard.allows(b"Bearer ")
    assert not guard.allows(basic("one"))


@pytest.mark.parametrize(
    ("security", "message"),
    [
        (PageSecurity(scheme=Scheme.BASIC, credentials_file="/nowhere/x"), "/nowhere/x, cannot be read"),
        (PageSecurity(certificate_file="/nowhere/c"), "the certificate /nowhere/c of the HTTP pages cannot be used"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported_at_the_start(security: PageSecurity, message: str) -> None:
    with pytest.raises(KasparError, match=message):
        PageServer(app, host="127.0.0.1", port=0, security=security)


@pytest.mark.parametrize(("scheme", "text"), [(Scheme.BASIC, "no colon"), (Scheme.BEARER, "# nobody\n")])
def test_a_file_without_credentials_is_refused(tmp_path: Path, scheme: Scheme, text: str) -> None:
    with pytest.raises(KasparError, match="on each line"):
        PageGuard(PageSecurity(scheme=scheme, credentials_file=credentials(tmp_path, text)))


def test_a_changed_file_is_read_again_and_a_broken_one_is_not_used(tmp_path: Path) -> None:
    file = credentials(tmp_path, "one")
    guard = PageGuard(PageSecurity(scheme=Scheme.BEARER, credentials_file=file))
    for text, right in (("two", b"Bearer two"), ("", b"Bearer two"), ("three", b"Bearer three")):
        Path(file).write_text(text)
        os.utime(file, (1, len(text) + 1))
        asyncio.run(guard.reload_changed())
        assert guard.allows(right)
    assert not guard.allows(b"Bearer one")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificate")
    key, file = folder / "key.pem", folder / "certificate.pem"
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*command, "-keyout", key, "-out", file, "-days", "2", *subject], check=True, capture_output=True)
    return str(file), str(key)


def test_pages_are_served_over_tls_to_those_who_authenticate(tmp_path: Path, certificate: tuple[str, str]) -> None:
    file, key = certificate
    security = PageSecurity(file, key, Scheme.BEARER, credentials(tmp_path, "token"))
    server = PageServer(app, host="127.0.0.1", port=0, security=security)
    server.start()
    try:
        trusting = ssl.create_default_context(cafile=file)
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=trusting)
        connection.request("GET", "/", headers={"Authorization": "Bearer token"})
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"here it is")
        connection.request("GET", "/", headers={"Authorization": "Bearer guess"})
        response = connection.getresponse()
        assert (response.status, response.getheader("www-authenticate")) == (401, 'Bearer realm="kaspar"')
        response.read()
        connection.request("GET", "/nowhere")
        assert connection.getresponse().status == 401  # nobody learns which pages there are
        connection.close()
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token\r\n\r\n")
            assert b"here it is" not in plain.recv(1000)
    finally:
        server.stop()
