"""How far the kernel is with sending to a client. Over TLS nothing else is known: the buffers of the transport beneath
are hidden.
"""

import array
import fcntl
import socket
import struct
import termios
from typing import Final

_TCP_INFO_BYTES: Final = 128
_BYTES_ACKED: Final = struct.Struct("120xQ")
"""`tcpi_bytes_acked` of Linux's struct tcp_info."""


def unsent_bytes(sock: socket.socket) -> int:
    """What the client's machine has not acknowledged yet."""
    size = array.array("i", [0])
    fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, size)
    return size[0]


def acknowledged_bytes(sock: socket.socket) -> int:
    """Since the connection was opened. Stands still while a client does not read and its buffers are full."""
    acknowledged: int = _BYTES_ACKED.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES))[0]
    return acknowledged
