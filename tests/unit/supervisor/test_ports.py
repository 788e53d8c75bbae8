"""Ports that nothing uses."""

import socket
from itertools import islice

import pytest

from kaspar.base.errors import KasparError
from kaspar.supervisor.ports import consecutive_free_ports, free_ports, is_free, refuse_used_ports


@pytest.fixture
def used_port() -> "socket.socket":
    return socket.create_server(("127.0.0.1", 0))


def port_of(listening: socket.socket) -> int:
    port: int = listening.getsockname()[1]
    return port


def test_used_port_is_refused_with_the_broker_that_needs_it(used_port: socket.socket) -> None:
    with used_port:
        port = port_of(used_port)
        assert not is_free(port)
        with pytest.raises(
            KasparError, match=rf"broker 2 cannot listen on 127\.0\.0\.1:{port} \(Address already in use\)"
        ):
            refuse_used_ports([consecutive_free_ports(1)[0], port])


def test_port_that_every_address_listens_on_is_used() -> None:
    with socket.create_server(("0.0.0.0", 0)) as listening:
        assert not is_free(port_of(listening))


def test_wanted_ports_are_kept_and_used_ones_replaced(used_port: socket.socket) -> None:
    free = consecutive_free_ports(2)
    with used_port:
        used = port_of(used_port)
        got = list(islice(free_ports([free[0], used, free[1]]), 5))
    assert got[0] == free[0]
    assert got[2] == free[1]
    assert len(set(got)) == 5
    assert used not in got


def test_reserved_ports_are_not_given() -> None:
    reserved = consecutive_free_ports(1)
    assert next(free_ports(list(reserved), reserved=reserved)) not in reserved


def test_chosen_ports_are_not_those_of_outgoing_connections() -> None:
    assert max(islice(free_ports(), 50)) < 32_768
    assert len(consecutive_free_ports(5)) == 5
