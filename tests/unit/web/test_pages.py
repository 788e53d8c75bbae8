"""Who may read HTTP pages, and how."""

import asyncio
import base64
import hashlib
import http.client
import json
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

from kaspar.base.errors import KasparError
from kaspar.web import requests, server
from kaspar.web.authentication import Authenticator, BasicAuthenticator, TokenAuthenticator
from kaspar.web.credentials import TokensFile, UsersFile, hash_password
from kaspar.web.files import Reloader
from kaspar.web.identity import Caller, Scheme
from kaspar.web.pages import PageSecurity, PageServer
from kaspar.web.requests import LogIn


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "WRONG_SECRET_PAUSE_S", 0.01)
    monkeypatch.setattr(server, "RELOAD_EVERY_S", 0.1)


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


def users_of(file: str) -> tuple[BasicAuthenticator, Reloader]:
    users = UsersFile(file)
    return BasicAuthenticator(users), Reloader(users)


def tokens_of(file: str) -> tuple[TokenAuthenticator, Reloader]:
    tokens = TokensFile(file)
    return TokenAuthenticator(tokens), Reloader(tokens)


def caller_with(authenticator: Authenticator, *authorization: bytes) -> Caller | None:
    """Whom a request with these Authorization headers comes from."""
    scope = {"path": "/", "headers": [(b"authorization", value) for value in authorization]}
    return asyncio.run(LogIn(authenticator).caller(scope))


def test_basic_authentication_takes_the_users_of_the_file(tmp_path: Path) -> None:
    users, _ = users_of(credentials(tmp_path, "# users\n\nprometheus:s3cret:with colon\nother:x\n"))
    right = caller_with(users, basic("prometheus:s3cret:with colon"))
    assert right == Caller("prometheus", Scheme.BASIC, "s3cret:with colon")
    assert caller_with(users, b"bAsIc " + basic("other:x")[6:]) is not None
    for wrong in (b"", b"Basic", b"Basic !!!", basic("other:"), basic("# users"), basic("x"), b"Bearer other:x"):
        assert caller_with(users, wrong) is None, wrong
    assert caller_with(users) is None
    assert caller_with(users, basic("other:x"), basic("prometheus:x")) is None, "two headers leave open who it is"


@pytest.mark.parametrize("algorithm", ["scrypt", "sha512", "sha256", "sha1"])
def test_a_password_may_be_hashed(tmp_path: Path, algorithm: str) -> None:
    hashed = hash_password("s3cret", "salt", algorithm)
    users, _ = users_of(credentials(tmp_path, f"one:{hashed}\ntwo:plain\n"))
    for _ in range(2):  # computed, then remembered
        assert caller_with(users, basic("one:s3cret")) == Caller("one", Scheme.BASIC, "s3cret")
    for wrong in ("one:s3cre", f"one:{hashed}", "one:", "two:s3cret", "three:s3cret"):
        assert caller_with(users, basic(wrong)) is None, wrong
    assert caller_with(users, basic("two:plain")) is not None


@pytest.mark.parametrize("algorithm", ["scrypt", "sha512", "sha256", "sha1"])
def test_users_of_a_karapace_file_log_in(tmp_path: Path, algorithm: str) -> None:
    user = {"username": "one", "algorithm": algorithm, "salt": "salt", "password_hash": karapace_hash(algorithm)}
    users, _ = users_of(credentials(tmp_path, json.dumps({"users": [user], "permissions": []})))
    assert caller_with(users, basic("one:s3cret")) is not None
    assert caller_with(users, basic("one:other")) is None


def karapace_hash(algorithm: str) -> str:
    """What `karapace_mkpasswd -a ALGORITHM s3cret salt` prints."""
    if algorithm == "scrypt":
        return base64.b64encode(hashlib.scrypt(b"s3cret", salt=b"salt", n=16384, r=8, p=1)).decode()
    return base64.b64encode(hashlib.pbkdf2_hmac(algorithm, b"s3cret", b"salt", 5000)).decode()


def test_a_karapace_file_without_usable_users_is_refused(tmp_path: Path) -> None:
    for broken in ("{}", '{"users": []}', '{"users": [{"username": "x"}]}', '{"users": 1}'):
        with pytest.raises(KasparError, match="must contain"):
            users_of(credentials(tmp_path, broken))


def test_bearer_authentication_takes_the_tokens_of_the_file(tmp_path: Path) -> None:
    tokens, _ = tokens_of(credentials(tmp_path, "one\nalice:two\n"))
    assert caller_with(tokens, b"Bearer one") == Caller(None, Scheme.BEARER, "one")
    assert caller_with(tokens, b"Bearer two") == Caller("alice", Scheme.BEARER, "two")
    for wrong in (b"Bearer on", b"Bearer ", b"Bearer alice:two", basic("one")):
        assert caller_with(tokens, wrong) is None, wrong


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
    file = credentials(tmp_path, text)
    with pytest.raises(KasparError, match="on each line"):
        PageServer(app, host="127.0.0.1", port=0, security=PageSecurity(scheme=scheme, credentials_file=file))


def test_a_changed_file_is_read_again_and_a_broken_one_is_not_used(tmp_path: Path) -> None:
    file = credentials(tmp_path, "one")
    tokens, reloader = tokens_of(file)
    for text, right in (("two", b"Bearer two"), ("", b"Bearer two"), ("three", b"Bearer three")):
        Path(file).write_text(text)
        os.utime(file, (1, len(text) + 1))
        reloader.reload_changed()
        assert caller_with(tokens, right) is not None
    assert caller_with(tokens, b"Bearer one") is None


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
    running = PageServer(app, host="127.0.0.1", port=0, security=security)
    running.start()
    try:
        trusting = ssl.create_default_context(cafile=file)
        connection = http.client.HTTPSConnection("127.0.0.1", running.port, timeout=30, context=trusting)
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
        with socket.create_connection(("127.0.0.1", running.port), timeout=30) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token\r\n\r\n")
            assert b"here it is" not in plain.recv(1000)
    finally:
        running.stop()
