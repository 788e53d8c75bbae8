"""What every request passes: the host, the site it comes from, and the header of changes."""

import asyncio
from typing import Any

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.console.http.errors import CallFailed
from kaspar.console.http.guard import CONTENT_SECURITY_POLICY, Guard
from kaspar.console.settings import ConsoleSettings
from kaspar.web.asgi import Message, Receive, Scope, Send
from kaspar.web.hosts import AllowedHosts

HOSTS = AllowedHosts(["http://0.0.0.0:8080", "https://console.example.org:8443"], ["Kafka.Example.org"])


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"seen"})


def _scope(method: str = "GET", path: str = "/api/topics", **headers: str) -> Scope:
    named = {"host": "localhost:8080", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return {
        "type": "http",
        "method": method,
        "path": path,
        "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }


def _status(scope: Scope) -> int:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("a guard reads no body")

    asyncio.run(Guard(_app, HOSTS)(scope, receive, send))
    headers = dict(sent[0]["headers"])
    assert headers[b"content-security-policy"] == CONTENT_SECURITY_POLICY.encode(), "refusals have it, too"
    assert headers[b"x-content-type-options"] == b"nosniff"
    status: int = sent[0]["status"]
    return status


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1:8080",
        "10.1.2.3",
        "[::1]:8080",
        "console.example.org:8443",
        "kafka.example.org",
    ],
)
def test_the_console_is_reached_by_its_own_names_and_by_addresses(host: str) -> None:
    assert HOSTS.allow(host.encode())


@pytest.mark.parametrize(
    "host",
    [
        None,
        b"",
        b"evil.example",
        b"localhost.evil.example",
        b"127.0.0.1.evil.example",
        b"evil.example@localhost",
        b"localhost/.evil.example",
        b"localhost?.evil.example",
        b"[",
        b"\xff",
    ],
)
def test_a_name_that_somebody_else_makes_resolve_here_is_refused(host: bytes | None) -> None:
    assert not HOSTS.allow(host)


def test_a_request_to_another_host_is_refused_whatever_it_asks() -> None:
    assert _status(_scope(path="/", host="evil.example")) == 421
    assert _status(_scope("DELETE", host="evil.example", x_kaspar_console="1")) == 421


def test_reads_need_no_header() -> None:
    assert _status(_scope()) == 200
    assert _status(_scope(sec_fetch_site="same-origin")) == 200
    assert _status(_scope(sec_fetch_site="none")) == 200


def test_others_may_have_links_to_the_page_and_read_nothing_of_the_api() -> None:
    assert _status(_scope(path="/", sec_fetch_site="cross-site")) == 200
    assert _status(_scope(sec_fetch_site="cross-site")) == 403
    assert _status(_scope(sec_fetch_site="same-site")) == 403
    assert _status(_scope(origin="http://evil.example")) == 403
    assert _status(_scope(origin="null")) == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_change_needs_the_header_and_its_own_origin(method: str) -> None:
    own = "http://localhost:8080"
    assert _status(_scope(method)) == 403
    assert _status(_scope(method, origin=own)) == 403
    assert _status(_scope(method, x_kaspar_console="1", origin="http://localhost:9090")) == 403
    assert _status(_scope(method, x_kaspar_console="1", origin="https://localhost:8080")) == 403
    assert _status(_scope(method, x_kaspar_console="1", sec_fetch_site="cross-site")) == 403
    assert _status(_scope(method, x_kaspar_console="1", origin=own, sec_fetch_site="same-origin")) == 200


def test_a_proxy_that_ends_tls_has_an_origin_of_its_own() -> None:
    settings = ConsoleSettings.of({"kaspar.console.origins": "https://Proxied.example.org,https://b.example.org:8443"})
    hosts = AllowedHosts(settings.listeners, settings.allowed_hosts)
    guard = Guard(_app, hosts, settings.kaspar_console_origins)
    header = {"x_kaspar_console": "1"}
    # The proxy passes its own host on, or not.
    guard.check(_scope("POST", **header, host="proxied.example.org", origin="https://proxied.example.org"))
    guard.check(_scope("POST", **header, host="127.0.0.1:8080", origin="https://b.example.org:8443"))
    for origin in ("https://b.example.org", "http://proxied.example.org:8080", "https://evil.example"):
        with pytest.raises(CallFailed, match="other sites"):
            guard.check(_scope("POST", **header, origin=origin))


@pytest.mark.parametrize("origin", ["proxy.example.org", "https://a.example.org/console", "ftp://a", "https://u@a"])
def test_an_origin_is_a_scheme_and_a_host(origin: str) -> None:
    with pytest.raises(InvalidSetting, match="is not of the form https://host"):
        ConsoleSettings.of({"kaspar.console.origins": origin})


def test_a_change_outside_of_the_api_is_checked_as_well() -> None:
    with pytest.raises(CallFailed, match="X-Kaspar-Console"):
        Guard(_app, HOSTS).check(_scope("POST", "/"))


def test_the_policy_lets_the_page_run_its_own_files_only() -> None:
    directives = dict(each.strip().split(" ", 1) for each in CONTENT_SECURITY_POLICY.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == directives["style-src"] == directives["connect-src"] == "'self'"
    assert "unsafe" not in CONTENT_SECURITY_POLICY
