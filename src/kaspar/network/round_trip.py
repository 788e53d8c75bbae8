"""How far away a peer is, by the round-trip time that the operating system measures on its connection."""

import socket
import struct
from typing import Final

_MIN_RTT_AT: Final = 148  # tcpi_min_rtt in Linux's tcp_info: the average one grows with the data in flight
_MIN_RTT_US: Final = struct.Struct("=I")
_NEEDED_BYTES: Final = _MIN_RTT_AT + _MIN_RTT_US.size


def min_round_trip_us(sock: socket.socket) -> int | None:
    """The shortest recent round-trip time; None if the operating system does not report it."""
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _NEEDED_BYTES)
    except OSError:
        return None  # it is being closed
    if len(info) < _NEEDED_BYTES:
        return None  # an older system
    round_trip_us: int = _MIN_RTT_US.unpack_from(info, _MIN_RTT_AT)[0]
    return round_trip_us
