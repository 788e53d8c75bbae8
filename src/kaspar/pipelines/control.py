"""The control socket of a host: a Unix socket in its folder that only the folder's owner can use.

Every connection carries one request and one response. Their size, their time and the number of connections are limited.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.pipelines.messages import (
    LARGEST_REQUEST,
    LARGEST_RESPONSE,
    Described,
    Failure,
    Pipelines,
    Request,
    Response,
    decode_request,
    decode_response,
    encode,
)

log = get_log(__name__)

REQUEST_TIMEOUT_S: Final = 5.0
"""The time limit for receiving a request, and for sending a response."""
MOST_CONNECTIONS: Final = 16
_Kind = TypeVar("_Kind", Pipelines, Described)


class NoHost(KasparError):
    """No host serves the control socket: none is running, or it is just starting or stopping."""


class ControlServer:
    """Serves each connection in its own thread. Replaces an earlier host's socket: there is one host at a time."""

    def __init__(self, path: Path, respond: Callable[[Request], Response]) -> None:
        self._path = path
        self._respond = respond
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        with _short(path) as address:
            self._socket.bind(address)
        path.chmod(0o600)
        self._socket.listen(MOST_CONNECTIONS)
        self._thread = threading.Thread(target=self._accept, name="kaspar-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends accept()
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            if self._free.acquire(blocking=False):
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
            else:
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(REQUEST_TIMEOUT_S)
                line = _read_line(connection, LARGEST_REQUEST, REQUEST_TIMEOUT_S)
                connection.sendall(encode(self._response(line)))
        except OSError:
            pass  # the client has gone
        finally:
            self._free.release()

    def _response(self, line: bytes) -> Response:
        try:
            return self._respond(decode_request(line))
        except (KasparError, msgspec.DecodeError) as problem:
            return Failure(str(problem))
        except Exception as problem:  # the edge of the thread
            log.exception("a request failed")
            return Failure(f"the host failed to respond: {problem}")


def ask(path: Path, request: Request, kind: type[_Kind], *, timeout_s: float = REQUEST_TIMEOUT_S) -> _Kind:
    """Send a request to the host and return its response. Raises NoHost, or KasparError with the host's message."""
    try:
        with socket.socket(socket.AF_UNIX) as connection, _short(path) as address:
            connection.settimeout(timeout_s)
            connection.connect(address)
            connection.sendall(encode(request))
            line = _read_line(connection, LARGEST_RESPONSE, timeout_s)
    except PermissionError:
        raise KasparError(f"{path.parent} belongs to another user") from None
    except TimeoutError:
        raise NoHost(f"the host of {path.parent} did not respond within {timeout_s:g} s") from None
    except OSError:
        raise NoHost(f"no host is running in {path.parent}") from None
    try:
        response = decode_response(line)
    except msgspec.DecodeError as problem:
        raise NoHost(f"the host of {path.parent} ended before it responded ({problem})") from None
    if isinstance(response, Failure):
        raise KasparError(response.sentence)
    if not isinstance(response, kind):
        raise KasparError(f"the host of {path.parent} has another version: restart 'kaspar pipeline run'")
    return response


def _read_line(connection: socket.socket, largest: int, timeout_s: float) -> bytes:
    """Read to the end of the line, to the end of the connection, or until more than `largest` bytes were received."""
    until = time.monotonic() + timeout_s
    received = bytearray()
    while not received.endswith(b"\n") and len(received) <= largest:
        connection.settimeout(max(0.001, until - time.monotonic()))
        chunk = connection.recv(64 * 1024)
        if not chunk:
            break
        received += chunk
    return bytes(received)


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """A short address of a socket in a folder with a long path: the kernel accepts at most 107 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
