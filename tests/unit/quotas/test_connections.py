"""How fast connections are accepted."""

import pytest

from kaspar.quotas.connections import UNLIMITED, ConnectionRates, plain_address
from kaspar.quotas.entities import CONNECTION_CREATION_RATE, DEFAULT, QuotaEntity
from kaspar.quotas.rates import Windows

NOW = 1_000_000
TWO_WINDOWS = Windows(2, 1000)


def rates(limit: int = UNLIMITED, **listeners: int) -> ConnectionRates:
    made = ConnectionRates()
    made.configure(TWO_WINDOWS, limit, listeners)
    return made


def test_without_limits_nothing_waits() -> None:
    made = rates()
    assert not any(made.pause_ms("A", NOW) or made.refused_for_ms("1.2.3.4", NOW) for _ in range(1000))


def test_a_listener_pauses_over_its_rate_and_others_do_not() -> None:
    made = rates(A=5)
    assert [made.pause_ms("A", NOW) for _ in range(6)] == [0, 0, 0, 0, 0, 200]
    assert made.pause_ms("B", NOW) == 0
    assert made.pause_ms("A", NOW + 5_000) == 0


def test_a_pause_is_not_longer_than_a_window() -> None:
    made = rates(A=1)
    assert max(made.pause_ms("A", NOW) for _ in range(100)) == 1000


def test_the_rate_of_the_broker_holds_for_all_listeners_but_that_between_brokers() -> None:
    made = rates(2)
    assert [made.pause_ms("A", NOW), made.pause_ms("B", NOW), made.pause_ms("A", NOW)] == [0, 0, 500]
    assert made.pause_ms("INTERNAL", NOW, between_brokers=True) == 0


def test_an_address_over_its_rate_is_refused_and_what_is_refused_does_not_count() -> None:
    made = rates()
    made.update({QuotaEntity(ip="1.2.3.4"): {CONNECTION_CREATION_RATE: 2.0}})
    assert [made.refused_for_ms("1.2.3.4", NOW) for _ in range(5)] == [0, 0, 500, 500, 500]
    assert made.refused_for_ms("5.6.7.8", NOW) == 0
    assert made.refused_for_ms("::ffff:1.2.3.4", NOW) == 500
    made.update({QuotaEntity(ip=DEFAULT): {CONNECTION_CREATION_RATE: 1.0}})
    assert [made.refused_for_ms("5.6.7.8", NOW) for _ in range(2)] == [0, 1000]


@pytest.mark.parametrize(
    ("text", "plain"),
    [("::ffff:10.0.0.1", "10.0.0.1"), ("0:0::1", "::1"), ("a-host", "a-host"), ("1.2.3.4", "1.2.3.4")],
)
def test_an_address_has_one_text(text: str, plain: str) -> None:
    assert plain_address(text) == plain
