"""Listeners, as the settings of a broker have them."""

import pytest

from kaspar.monitor.doctor.listeners import Listener, listeners_of

MAP = "CLIENTS:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:SSL"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PLAINTEXT://:9092", [Listener("PLAINTEXT", "PLAINTEXT", "", 9092)]),
        ("SSL://kafka1:9093", [Listener("SSL", "SSL", "kafka1", 9093)]),
        (
            "CLIENTS://0.0.0.0:9092, INSIDE://[::1]:9093",
            [Listener("CLIENTS", "SASL_SSL", "0.0.0.0", 9092), Listener("INSIDE", "PLAINTEXT", "::1", 9093)],
        ),
        ("", []),
        ("nonsense,PLAINTEXT://host:port", []),
    ],
)
def test_listeners_are_read_with_their_protocols(text: str, expected: list[Listener]) -> None:
    assert listeners_of({"listeners": text, "listener.security.protocol.map": MAP}) == expected


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_loopback_addresses_are_out_of_reach_of_others(host: str) -> None:
    assert Listener("PLAINTEXT", "PLAINTEXT", host, 9092).is_loopback


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.0.2.7", "kafka1"])
def test_all_other_addresses_may_be_reached_by_others(host: str) -> None:
    assert not Listener("PLAINTEXT", "PLAINTEXT", host, 9092).is_loopback


@pytest.mark.parametrize(
    ("protocol", "has_tls"), [("SSL", True), ("SASL_SSL", True), ("PLAINTEXT", False), ("SASL_PLAINTEXT", False)]
)
def test_which_protocols_have_tls(protocol: str, has_tls: bool) -> None:
    assert Listener("L", protocol, "", 1).has_tls is has_tls
