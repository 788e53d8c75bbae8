"""The least of the Kafka protocol, by hand: enough to learn whether a broker responds, with no code under test."""

import random
import socket
import struct
from collections.abc import Sequence

_CORRELATION_ID = 7
_LIST_OFFSETS_KEY = 2
_API_VERSIONS_KEY = 18
_LATEST = -1
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


def responds_to_api_versions(host: str, port: int, timeout: float = 2.0) -> bool:
    """Whether a broker at this address responds to an ApiVersions request (version 0) without an error."""
    try:
        response = _ask(host, port, _API_VERSIONS_KEY, 0, b"", timeout)
    except (OSError, EOFError):
        return False
    (error_code,) = struct.unpack_from(">h", response)
    return bool(error_code == 0)


def leads(host: str, port: int, topic: str, partitions: Sequence[int], timeout: float = 30.0) -> bool:
    """Whether the broker leads all these partitions and takes requests for them (ListOffsets, version 1)."""
    name = topic.encode()
    body = struct.pack(f">iih{len(name)}si", -1, 1, len(name), name, len(partitions))
    body += b"".join(struct.pack(">iq", partition, _LATEST) for partition in partitions)
    response = _ask(host, port, _LIST_OFFSETS_KEY, 1, body, timeout)
    position = struct.calcsize(f">ih{len(name)}s")
    (count,) = struct.unpack_from(">i", response, position)
    errors = {error for _, error, _, _ in struct.iter_unpack(">ihqq", response[position + 4 :])}
    assert count == len(partitions)
    return errors == {0}


def _ask(host: str, port: int, api_key: int, version: int, body: bytes, timeout: float) -> bytes:
    """Send one request on a connection of its own; the body of the response."""
    request = struct.pack(">hhih", api_key, version, _CORRELATION_ID, -1) + body
    with socket.create_connection((host, port), timeout=timeout) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _exactly(connection, 4))
        response = _exactly(connection, size)
    (correlation_id,) = struct.unpack_from(">i", response)
    if correlation_id != _CORRELATION_ID:
        raise EOFError("this is the response to another request")
    return response[4:]


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data
