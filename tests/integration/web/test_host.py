"""Services that one process hosts: their listeners, TLS, log-in, limits and errors, over real sockets."""

import base64
import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from kaspar.base.errors import KasparError
from kaspar.security.certificates import CertificateAuthority
from kaspar.web import requests, server
from tests.integration.web.fake_service import CONTENT_TYPE, FakeService, hosted
from tests.integration.web.tokens import jwks_of, signed_token


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "WRONG_SECRET_PAUSE_S", 0.01)
    monkeypatch.setattr(server, "RELOAD_EVERY_S", 0.05)


def connect(url: str, context: ssl.SSLContext | None = None) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    assert parts.hostname is not None
    if context is None:
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=30, context=context)


def ask(
    url: str,
    path: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    context: ssl.SSLContext | None = None,
) -> tuple[int, Any]:
    with contextlib.closing(connect(url, context)) as connection:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


# -- hosts -------------------------------------------------------------------------------------------------------------


def host(name: str) -> dict[str, str]:
    return {"host": name}


def test_where_nobody_logs_in_a_name_that_somebody_else_makes_resolve_here_is_refused() -> None:
    service = FakeService(kaspar_http_allowed_hosts="proxy.example.org")
    with hosted(service):
        (url,) = service.urls
        status, body = ask(url, "/caller", headers=host("evil.example:8082"))
        assert (status, body["error_code"]) == (421, 421)
        assert "add it to kaspar.http.allowed.hosts" in body["message"]
        assert ask(url, "/read", method="POST", body=b"x", headers=host("evil.example"))[0] == 421
        own = ("localhost", "LOCALHOST:8082", "127.0.0.1:1", "[::1]", socket.gethostname(), "proxy.example.org")
        for name in own:
            assert ask(url, "/caller", headers=host(name))[0] == 200, name


def test_a_client_of_http_1_0_names_no_host() -> None:
    service = FakeService()
    with hosted(service):
        parts = urlsplit(service.urls[0])
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
            connection.sendall(b"GET /caller HTTP/1.0\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_where_callers_log_in_or_the_network_may_call_any_name_is_right(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("alice:secret\n")
    secured = FakeService(
        "secured", authentication_method="BASIC", kaspar_http_credentials_file=str(tmp_path / "users")
    )
    public = FakeService("public", listeners="http://0.0.0.0:0,http://127.0.0.1:0")
    with hosted(secured, public):
        assert ask(secured.urls[0], "/caller", headers=basic("alice", "secret") | host("any.example"))[0] == 200
        assert ask(public.urls[1], "/caller", headers=host("any.example"))[0] == 200


# -- starting and stopping ---------------------------------------------------------------------------------------------


def test_services_listen_where_their_settings_say() -> None:
    one = FakeService("one", listeners="http://127.0.0.1:0,http://[::1]:0")
    other = FakeService("other")
    with hosted(one, other):
        assert [urlsplit(url).hostname for url in one.urls] == ["127.0.0.1", "::1"]
        assert 0 not in {urlsplit(url).port for url in (*one.urls, *other.urls)}
        for url in (*one.urls, *other.urls):
            assert ask(url, "/caller") == (200, {"name": None, "scheme": None, "credentials": None})
    assert one.was_stopped
    assert other.was_stopped


def test_a_taken_port_is_reported_before_anything_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        one, other = FakeService("one"), FakeService("other", listeners=f"http://127.0.0.1:{port}")
        with pytest.raises(KasparError, match=f"cannot serve other on 127.0.0.1:{port}"), hosted(one, other):
            pass
    assert not one.is_started


def test_a_service_that_cannot_start_ends_the_others_with_its_sentence() -> None:
    one, other = FakeService("one"), FakeService("other", problem="there is no broker")
    with pytest.raises(KasparError, match="other cannot start: there is no broker"), hosted(one, other):
        pass
    assert one.was_stopped
    assert other.was_stopped


def test_requests_under_way_end_before_the_service_stops() -> None:
    service, responses = FakeService(shutdown_graceful_ms="30000"), list[tuple[int, Any]]()
    with hosted(service):
        waiting = threading.Thread(target=lambda: responses.append(ask(service.urls[0], "/wait")))
        waiting.start()
        assert service.waiting.wait(30)
        threading.Timer(0.2, service.release).start()  # while it stops
    waiting.join(30)
    assert responses == [(200, "released")]


def test_requests_that_take_too_long_do_not_hold_up_the_end() -> None:
    service = FakeService(shutdown_graceful_ms="100")
    with hosted(service):
        connection = connect(service.urls[0])
        connection.request("GET", "/wait")
        assert service.waiting.wait(30)
    assert service.was_stopped
    connection.close()


# -- TLS ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority.new()


def trusting(authority: CertificateAuthority, certificate: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context


def write_certificate(file: Path, authority: CertificateAuthority, name: str) -> Path:
    file.write_bytes(authority.issue(name, hosts=["127.0.0.1"]).key_and_chain)
    return file


def test_certificate_from_a_pkcs12_store(authority: CertificateAuthority, tmp_path: Path) -> None:
    pem = authority.issue("service", hosts=["127.0.0.1"]).key_and_chain
    store = tmp_path / "service.p12"
    store.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"service",
            load_pem_private_key(pem, None),  # type: ignore[arg-type]  # one of the kinds that a store takes
            load_pem_x509_certificate(pem),
            None,
            BestAvailableEncryption(b"s3cret"),
        )
    )
    service = FakeService(
        listeners="https://127.0.0.1:0",
        ssl_keystore_type="PKCS12",
        ssl_keystore_location=str(store),
        ssl_keystore_password="s3cret",
    )
    with hosted(service):
        assert ask(service.urls[0], "/caller", context=trusting(authority))[0] == 200
        with pytest.raises((OSError, http.client.HTTPException)):
            ask(service.urls[0].replace("https", "http"), "/caller")


def test_changed_certificate_is_used_for_new_connections(authority: CertificateAuthority, tmp_path: Path) -> None:
    file = write_certificate(tmp_path / "service.pem", authority, "first")
    service = FakeService(listeners="https://127.0.0.1:0", ssl_keystore_type="PEM", ssl_keystore_location=str(file))

    def subject() -> str:
        connection = connect(service.urls[0], trusting(authority))
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        with contextlib.closing(connection):
            return str(connection.sock.getpeercert())

    with hosted(service):
        assert "first" in subject()
        write_certificate(tmp_path / "new.pem", authority, "second").rename(file)
        deadline = time.monotonic() + 30
        while "second" not in subject():
            assert time.monotonic() < deadline
        file.write_text("broken")
        time.sleep(0.2)  # longer than files stay unnoticed
        assert "second" in subject()


def test_certificate_of_a_client_names_the_caller(authority: CertificateAuthority, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    service = FakeService(
        listeners="https://127.0.0.1:0",
        ssl_keystore_type="PEM",
        ssl_keystore_location=str(write_certificate(tmp_path / "service.pem", authority, "service")),
        ssl_truststore_type="PEM",
        ssl_truststore_location=str(tmp_path / "ca.pem"),
        ssl_client_authentication="REQUIRED",
        ssl_principal_mapping_rules="RULE:^CN=(.*?)$/$1/",
    )
    client = write_certificate(tmp_path / "client.pem", authority, "alice")
    stranger = write_certificate(tmp_path / "stranger.pem", CertificateAuthority.new(), "mallory")
    with hosted(service):
        status, caller = ask(service.urls[0], "/caller", context=trusting(authority, client))
        assert (status, caller) == (200, {"name": "alice", "scheme": "certificate", "credentials": None})
        for context in (trusting(authority), trusting(authority, stranger)):
            with pytest.raises(OSError):
                ask(service.urls[0], "/caller", context=context)


# -- log-in ------------------------------------------------------------------------------------------------------------


def test_basic_log_in(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("alice:s3cret\n")
    service = FakeService(
        authentication_method="BASIC",
        authentication_realm="here",
        authentication_skip_paths="/health,/ca*",
        kaspar_http_credentials_file=str(tmp_path / "users"),
    )
    with hosted(service):
        url = service.urls[0]
        assert ask(url, "/caller")[0] == 200, "a path that needs no log-in"
        assert ask(url, "/health")[0] == 404
        assert ask(url, "/read", method="POST", body=b"x", headers=basic("alice", "s3cret")) == (200, 1)
        for headers in ({}, basic("alice", "wrong"), basic("bob", "s3cret"), {"authorization": "Bearer s3cret"}):
            assert ask(url, "/nowhere", headers=headers) == (401, {"error_code": 401, "message": "Unauthorized"})
        connection = connect(url)
        connection.request("GET", "/read")
        response = connection.getresponse()
        assert response.getheader("www-authenticate") == 'Basic realm="here"'
        assert response.getheader("content-type") == CONTENT_TYPE
        connection.close()


def test_bearer_log_in_by_signed_tokens(tmp_path: Path) -> None:
    key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "keys.json").write_text(jwks_of(key))
    service = FakeService(
        authentication_method="BEARER",
        sasl_oauthbearer_jwks_endpoint_url=(tmp_path / "keys.json").as_uri(),
        sasl_oauthbearer_expected_audience="kaspar",
    )
    with hosted(service):
        token = signed_token(key, sub="alice", aud="kaspar")
        status, caller = ask(service.urls[0], "/caller", headers={"authorization": f"Bearer {token}"})
        assert (status, caller) == (200, {"name": "alice", "scheme": "bearer", "credentials": token})
        for wrong in (
            signed_token(other, sub="alice", aud="kaspar"),
            signed_token(key, sub="alice", aud="another"),
            signed_token(key, sub="alice", aud="kaspar", lifetime_s=-3600),
            token[:-4],
            "x",
        ):
            assert ask(service.urls[0], "/caller", headers={"authorization": f"Bearer {wrong}"})[0] == 401


# -- limits and errors -------------------------------------------------------------------------------------------------


def test_body_that_is_too_large_is_refused_and_the_connection_goes_on() -> None:
    service = FakeService(kaspar_http_max_body_bytes="100000")
    with hosted(service), contextlib.closing(connect(service.urls[0])) as connection:
        for body in (b"x" * 100_001, [b"x" * 50_000] * 3):
            connection.request("POST", "/read", body)
            response = connection.getresponse()
            assert (response.status, json.loads(response.read())["error_code"]) == (413, 413)
            connection.request("POST", "/read", b"x" * 100_000)
            assert connection.getresponse().read() == b"100000"


def test_body_that_comes_too_slowly_is_refused() -> None:
    service = FakeService(kaspar_http_body_timeout_ms="200")
    with hosted(service), contextlib.closing(connect(service.urls[0])) as connection:
        connection.putrequest("POST", "/read")
        connection.putheader("content-length", "10")
        connection.endheaders(b"x")
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["error_code"]) == (408, 408)


def test_endless_body_of_a_streaming_request_is_limited_by_its_pauses_alone() -> None:
    service = FakeService(kaspar_http_max_body_bytes="10", kaspar_http_body_timeout_ms="300", idle_timeout_ms="1000")
    with hosted(service), socket.create_connection(("127.0.0.1", urlsplit(service.urls[0]).port), 30) as sock:
        sock.sendall(b"POST /stream HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        received = b""
        for count in range(1, 11):
            sock.sendall(b"64\r\n" + b"x" * 100 + b"\r\n")
            while received.count(b"100\n") < count:
                chunk = sock.recv(1 << 16)
                assert chunk, "it was closed although something was sent in time"
                received += chunk
            time.sleep(0.05)
        while chunk := sock.recv(1 << 16):  # nothing is sent any more
            received += chunk
        assert not received.endswith(b"0\r\n\r\n"), "a response that was cut must not look complete"


def test_requests_beyond_the_limit_are_refused() -> None:
    service = FakeService(kaspar_http_max_requests="2")
    with hosted(service), contextlib.ExitStack() as stack:
        for _ in range(2):
            connection = stack.enter_context(contextlib.closing(connect(service.urls[0])))
            connection.request("GET", "/wait")
            assert service.waiting.wait(30)
            service.waiting.clear()
        connection = stack.enter_context(contextlib.closing(connect(service.urls[0])))
        connection.request("GET", "/caller")
        response = connection.getresponse()
        assert (response.status, response.getheader("retry-after")) == (503, "1")
        assert json.loads(response.read()) == {"error_code": 503, "message": "Too many requests."}


def test_malformed_http_is_answered_in_the_form_of_the_service() -> None:
    service = FakeService()
    with hosted(service), socket.create_connection(("127.0.0.1", urlsplit(service.urls[0]).port), 30) as sock:
        sock.sendall(b"what?\r\n\r\n")
        received = b""
        while chunk := sock.recv(1 << 16):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert f"content-type: {CONTENT_TYPE}".encode() in head
    assert json.loads(body) == {"error_code": 400, "message": "The request is not valid HTTP."}


def test_bug_of_the_application_is_a_500_without_details() -> None:
    service = FakeService()
    with hosted(service):
        connection = connect(service.urls[0])
        connection.request("GET", "/fail")
        response = connection.getresponse()
        assert response.status == 500
        assert b"secret" not in response.read()
        assert ask(service.urls[0], "/caller")[0] == 200
        connection.close()


def test_idle_connection_is_closed() -> None:
    service = FakeService(idle_timeout_ms="200")
    with hosted(service), contextlib.closing(connect(service.urls[0])) as connection:
        connection.request("GET", "/caller")
        connection.getresponse().read()
        assert connection.sock is not None
        assert connection.sock.recv(1) == b""


def test_requests_are_logged_where_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    service = FakeService(kaspar_http_request_log="true")
    with caplog.at_level("INFO", "kaspar.web"), hosted(service):
        ask(service.urls[0], "/caller")
    (record,) = [record for record in caplog.records if record.message == "request"]
    values = record.__dict__["values"]
    assert (values["method"], values["path"], values["status"]) == ("GET", "/caller", 200)


def test_requests_are_on_a_page_for_prometheus_behind_the_log_in(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("alice:secret\n")
    service = FakeService(authentication_method="BASIC", kaspar_http_credentials_file=str(users))
    with hosted(service):
        (url,) = service.urls
        assert ask(url, "/caller", headers=basic("alice", "secret"))[0] == 200
        text_of(url, "/fail", basic("alice", "secret"))
        assert ask(url, "/made-up", headers=basic("alice", "secret"))[0] == 404
        assert ask(url, "/metrics")[0] == 401
        page = text_of(url, "/metrics", basic("alice", "secret"))
        for route, status in (("/caller", 200), ("/fail", 500), ("other", 404), ("other", 401)):
            labels = f'service="fake",route="{route}",method="GET",status="{status}"'
            assert f"kaspar_http_requests_total{{{labels}}} 1\n" in page
        assert 'kaspar_http_request_seconds_count{service="fake",route="/caller"} 1\n' in page
        assert 'kaspar_http_requests_under_way{service="fake"} 1\n' in page, "the one for the page"
        assert 'kaspar_http_connections{service="fake"} 1\n' in page
        some = text_of(url, "/metrics?name[]=kaspar_http_connections", basic("alice", "secret"))
        assert some.count("# TYPE") == 1


def test_a_service_may_have_no_page_for_prometheus() -> None:
    service = FakeService(kaspar_http_metrics_path="")
    with hosted(service):
        (url,) = service.urls
        assert ask(url, "/metrics")[0] == 404


def text_of(url: str, path: str, headers: dict[str, str]) -> str:
    with contextlib.closing(connect(url)) as connection:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().read().decode()
