"""The kernel's progress in sending to a client. Over TLS this is the only source: the buffers of the underlying
transport are not accessible.
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
    """The number of bytes that the client's machine has not acknowledged yet."""
    size = array.array("i", [0])
    fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, size)
    return size[0]


def acknowledged_bytes(sock: socket.socket) -> int:
    """The number of bytes acknowledged since the connection was opened. Does not grow while a client does not read and
    its buffers are full.
    """
    acknowledged: int = _BYTES_ACKED.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES))[0]
    return acknowledged
