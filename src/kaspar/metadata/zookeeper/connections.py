"""Sockets to a ZooKeeper server for kazoo, plain and with TLS.

Both observe the beginning of a connection, for three things that kazoo does not report or does not notice: the session
timeout that the server grants; a server that does not support SASL logins, where kazoo would retry for ever; and a
connection that ends during a login, which kazoo takes for a wrong password.
"""

import contextlib
import socket
import ssl
import struct
from typing import Any, Final, Protocol, TypeAlias

from kazoo.handlers.threading import KazooTimeoutError

from kaspar.security.zookeeper import Login, is_definite, tls_problem

NOT_SERVING: Final = "it accepts connections and does not serve, as an ensemble without a majority of its members"
_OR_TLS: Final = "or as a port for TLS (secureClientPort) while zookeeper.ssl.client.enable is not true"
_GRANTED: Final = struct.Struct("!i")
_GRANTED_AT: Final = 8  # after the frame's length and the protocol version
_HEAD_BYTES: Final = _GRANTED_AT + _GRANTED.size
_TYPE: Final = slice(8, 12)  # the type of a request: after the frame's length and the request's number
_SASL: Final = struct.pack("!i", 102)
_MAX_SASL_REQUESTS: Final = 2  # DIGEST-MD5: an empty request, and the response to the challenge
_RECORD_BYTES: Final = 16 * 1024  # the maximum size of a TLS record


class Observer(Protocol):
    def granted(self, server: tuple[str, int], timeout_ms: int) -> None: ...

    def failed(self, server: tuple[str, int], problem: str, *, is_definite: bool) -> None: ...


class Greeting:
    """Observes the beginning of a connection to a server."""

    def __init__(
        self, observer: Observer, server: tuple[str, int], login: Login | None, *, is_encrypted: bool = False
    ) -> None:
        self.server = server
        self._is_encrypted = is_encrypted
        self._observer = observer
        self._login = login
        self._head = b""
        self._sasl_requests = 0
        self._is_logging_in = login is not None

    @property
    def _is_over(self) -> bool:
        return len(self._head) >= _HEAD_BYTES

    def sent(self, data: Any) -> None:
        """Note a request that is sent. The first request of another type after those of the login ends the login."""
        if self._login is None or not self._is_logging_in:
            return
        if bytes(data[_TYPE]) != _SASL:
            self._is_logging_in = self._sasl_requests == 0
            return
        self._sasl_requests += 1
        if self._sasl_requests > _MAX_SASL_REQUESTS:
            problem = (
                "it does not know logins by SASL: give it users (authProvider.sasl, and a section Server in its JAAS "
                f"file), or remove the login from {self._login.source}"
            )
            self._observer.failed(self.server, problem, is_definite=True)
            raise ConnectionAbortedError(problem)

    def received(self, chunk: bytes) -> None:
        if not chunk:
            self._ended()
        elif not self._is_over:
            self._head += chunk
            with contextlib.suppress(struct.error):  # the response is not complete yet
                (granted_ms,) = _GRANTED.unpack_from(self._head, _GRANTED_AT)
                if granted_ms > 0:  # otherwise the session has expired
                    self._observer.granted(self.server, granted_ms)

    def broke(self, problem: OSError) -> None:
        """Note an error while reading. In TLS 1.3 a server that rejects the client's certificate says so only after the
        handshake is complete for the client.
        """
        if isinstance(problem, ssl.SSLError) and not self._is_over:
            self._observer.failed(self.server, tls_problem(problem), is_definite=is_definite(problem))
        self._ended(is_explained=isinstance(problem, ssl.SSLError))

    def _ended(self, *, is_explained: bool = False) -> None:
        if not is_explained and not self._is_over:
            problem = NOT_SERVING if self._is_encrypted else f"{NOT_SERVING}, {_OR_TLS}"
            self._observer.failed(self.server, problem, is_definite=False)
        if self._is_logging_in:
            raise KazooTimeoutError("the connection has ended")  # so that kazoo does not take it for a wrong password


class PlainConnection(socket.socket):
    def __init__(self, greeting: Greeting, plain: socket.socket) -> None:
        super().__init__(fileno=plain.detach())
        self._greeting = greeting

    def send(self, data: Any, flags: int = 0, /) -> int:
        self._greeting.sent(data)
        return super().send(data, flags)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        try:
            received = super().recv(size, flags)
        except BlockingIOError:
            raise
        except OSError as problem:
            self._greeting.broke(problem)
            raise
        self._greeting.received(received)
        return received


class TlsConnection(ssl.SSLSocket):
    """A TLS socket that decrypts arrived data into memory, to know whether there is something to read."""

    _greeting: Greeting
    _decrypted = b""
    _failure: OSError | None = None
    _has_ended = False

    @classmethod
    def over(cls, plain: socket.socket, context: ssl.SSLContext, host: str, greeting: Greeting) -> "TlsConnection":
        """Do the handshake over a connected socket. Raises OSError."""
        context.sslsocket_class = cls
        connection = context.wrap_socket(plain, server_hostname=host)
        assert isinstance(connection, cls)
        connection._greeting = greeting
        return connection

    @property
    def is_ready(self) -> bool:
        """Whether `recv` returns at once."""
        return bool(self._decrypted) or self._has_ended or self._failure is not None

    def fill(self) -> bool:
        """Decrypt what has arrived. Returns `is_ready`."""
        if not self.is_ready:
            try:
                self._decrypted = super().recv(_RECORD_BYTES)
                self._has_ended = not self._decrypted
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass  # a message of the TLS protocol itself, or an incomplete record
            except OSError as problem:
                self._failure = problem
        return self.is_ready

    def pending(self) -> int:
        return len(self._decrypted)

    def send(self, data: Any, flags: int = 0) -> int:
        self._greeting.sent(data)
        return super().send(data, flags)

    def recv(self, size: int = 1024, flags: int = 0) -> bytes:
        if not self.fill():
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "nothing has arrived")
        if self._failure is not None:
            self._greeting.broke(self._failure)
            raise self._failure
        received, self._decrypted = self._decrypted[:size], self._decrypted[size:]
        self._greeting.received(received)
        return received


Connection: TypeAlias = PlainConnection | TlsConnection
