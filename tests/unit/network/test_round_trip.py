"""The round trip to a peer, as Linux measures it."""

import socket

from kaspar.network.round_trip import min_round_trip_us


def test_a_peer_on_this_machine_is_less_than_a_second_away() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0] as accepted,
    ):
        accepted.sendall(b"pong")
        assert client.recv(4) == b"pong"
        measured = min_round_trip_us(accepted)
    assert measured is not None
    assert 0 < measured < 1_000_000


def test_nothing_is_known_of_a_socket_that_is_closed_or_is_not_tcp() -> None:
    closed = socket.socket()
    closed.close()
    assert min_round_trip_us(closed) is None
    one, other = socket.socketpair()
    with one, other:
        assert min_round_trip_us(one) is None
