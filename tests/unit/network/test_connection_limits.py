"""How many connections an address may have, however it is written."""

from kaspar.network.listener import ConnectionLimits


def test_an_address_that_comes_over_ipv6_is_the_same_address() -> None:
    limits = ConnectionLimits(max_connections=100, max_per_ip=5, per_ip_overrides={"10.0.0.1": 2})
    assert limits.limit_of("::ffff:10.0.0.1") == 2
    assert [limits.acquire(ip) for ip in ("10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1")] == [
        True,
        True,
        False,
        False,
    ]
    limits.release("10.0.0.1")
    limits.release("::ffff:10.0.0.1")
    assert not limits.by_ip
    limits.override_per_ip({"::ffff:10.0.0.1": 0})
    assert not limits.acquire("10.0.0.1")
    assert limits.limit_of("10.0.0.2") == 5
