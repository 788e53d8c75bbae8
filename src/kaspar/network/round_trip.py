"""How far away a peer is, by the round trips that the system measures on its connection."""

import socket
import struct
from typing import Final

_MIN_RTT_AT: Final = 148  # tcpi_min_rtt in Linux's tcp_info: the average one grows with what is under way
_MIN_RTT_US: Final = struct.Struct("=I")
_NEEDED_BYTES: Final = _MIN_RTT_AT + _MIN_RTT_US.size


def min_round_trip_us(sock: socket.socket) -> int | None:
    """The quickest round trip of late; None if the system does not tell."""
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _NEEDED_BYTES)
    except OSError:
        return None  # it is being closed
    if len(info) < _NEEDED_BYTES:
        return None  # an older system
    round_trip_us: int = _MIN_RTT_US.unpack_from(info, _MIN_RTT_AT)[0]
    return round_trip_us
