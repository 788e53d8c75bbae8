"""The least of the Kafka protocol, by hand: enough to learn whether a broker answers, with no code under test."""

import random
import socket
import struct

_CORRELATION_ID = 7
_API_VERSIONS_KEY = 18
_BROKER_PORTS = range(20_000, 32_000)  # below those of outgoing connections, so a restart finds its port free


def free_port() -> int:
    """A port of the loopback address that was free a moment ago."""
    while True:
        port = random.choice(_BROKER_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def answers_api_versions(host: str, port: int, timeout: float = 2.0) -> bool:
    """Whether a broker at this address answers an ApiVersions request (version 0) without an error."""
    request = struct.pack(">hhih", _API_VERSIONS_KEY, 0, _CORRELATION_ID, -1)
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", _exactly(connection, 4))
            correlation_id, error_code = struct.unpack_from(">ih", _exactly(connection, size))
    except (OSError, EOFError):
        return False
    return bool(correlation_id == _CORRELATION_ID and error_code == 0)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data
