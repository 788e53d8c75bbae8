"""Settings that all services share, and their listeners."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.web.listeners import ListenerAddress, parse_listeners
from kaspar.web.settings import WebSettings


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:8081", ListenerAddress("http", "127.0.0.1", 8081)),
        ("HTTPS://registry.example.com:443/", ListenerAddress("https", "registry.example.com", 443)),
        ("http://[::1]:0", ListenerAddress("http", "::1", 0)),
        ("http://:8081", ListenerAddress("http", "", 8081)),
        ("INTERNAL://0.0.0.0:9", ListenerAddress("https", "0.0.0.0", 9)),
    ],
)
def test_listener(text: str, address: ListenerAddress) -> None:
    assert parse_listeners([text], ["internal:https"]) == (address,)


@pytest.mark.parametrize("text", ["", "8081", "localhost:8081", "http://localhost", "http://::1:80", "http://x:70000"])
def test_invalid_listener(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"must be of the form|is not of the form"):
        parse_listeners([text])


def test_url_of_a_listener() -> None:
    assert str(ListenerAddress("http", "", 8081)) == "http://0.0.0.0:8081"
    assert str(ListenerAddress("https", "::1", 8443)) == "https://[::1]:8443"


def test_former_name_of_a_port_listens_everywhere() -> None:
    assert WebSettings.of({"port": "8085"}).listeners == ("http://0.0.0.0:8085",)
    both = WebSettings.of({"port": "8085", "listeners": "http://127.0.0.1:8081"})
    assert both.listeners == ("http://127.0.0.1:8081",)


@pytest.mark.parametrize(
    ("values", "client_auth"),
    [
        ({}, "none"),
        ({"ssl.client.auth": "true"}, "required"),
        ({"ssl.client.auth": "requested"}, "requested"),
        ({"ssl.client.authentication": "REQUIRED"}, "required"),
        ({"ssl.client.authentication": "REQUESTED", "ssl.client.auth": "true"}, "requested"),
    ],
)
def test_either_name_asks_for_clients_certificates(values: dict[str, str], client_auth: str) -> None:
    assert WebSettings.of(values).client_auth == client_auth


def test_bearer_needs_tokens_or_keys() -> None:
    with pytest.raises(InvalidSetting, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url or kaspar\.http\.credentials"):
        WebSettings.of({"authentication.method": "BEARER"})


def test_names_without_effect_are_reported() -> None:
    values = {"listeners": "http://x:1", "http2.enabled": "true", "listenrs": "x"}
    assert WebSettings.warnings_about(values) == [
        "http2.enabled has no effect: HTTP/1.1 is served.",
        "listenrs is not a known setting and has no effect. Did you mean listeners?",
    ]


def test_passwords_are_hidden() -> None:
    assert "s3cret" not in repr(WebSettings.of({"ssl.keystore.password": "s3cret"}))
