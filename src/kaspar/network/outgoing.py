"""What a connection has yet to send: bytes, and slices of files, which are sent to the socket without a copy.

Rules:
- Everything is sent in the order in which it was written.
- Bytes go through the event loop's transport. Slices bypass it, from the file straight to the socket, but only while
  the transport's buffer is empty. When the socket accepts no more, the next few bytes are written to the transport,
  which waits until there is room again and reports that.
- Nothing here waits for the disk. What has left the page cache since the slice was created is read in a thread.
- One connection sends no more than SEND_AT_ONCE in a turn of the loop, so that others get their turn.
- If there is no socket to send to directly, slices are read and written to the transport.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from kaspar.base.log import get_log
from kaspar.storage import FileSlice

log = get_log(__name__)

Buffers: TypeAlias = Sequence[bytes | bytearray | memoryview | FileSlice]
ReadInThread: TypeAlias = Callable[[Callable[[int], bytes], int], Awaitable[bytes]]

SEND_AT_ONCE: Final = 1024 * 1024  # takes the kernel about an eighth of a millisecond
WHILE_FULL_BYTES: Final = 16 * 1024


class Outgoing:
    __slots__ = ("_drained", "_held", "_loading", "_read_in_thread", "_socket", "_transport", "queue")

    def __init__(
        self,
        transport: asyncio.Transport,
        sock: socket.socket | None,
        *,
        read_in_thread: ReadInThread,
        drained: Callable[[], None],
    ) -> None:
        """`sock` is the transport's own. `drained` is called when everything is sent that could not be sent at once."""
        self._transport = transport
        self._socket = sock
        self._read_in_thread = read_in_thread
        self._drained = drained
        self.queue: deque[bytes | bytearray | memoryview | FileSlice] = deque()
        """What has not been written to the transport yet."""
        self._held = False
        self._loading: asyncio.Future[bytes] | None = None

    def start(self, *, is_encrypted: bool) -> None:
        """Make the transport report whenever its buffer fills and empties."""
        if not is_encrypted:
            self._transport.set_write_buffer_limits(high=0)
        else:
            # TLS data after a handshake is sent in the next turn, by the first attempt to read. It must not be mistaken
            # for a client that does not read its responses, which would keep the connection from reading.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._start_behind_handshake)

    def _start_behind_handshake(self) -> None:
        if not self._transport.is_closing():
            self._transport.set_write_buffer_limits(high=1)  # for TLS, an empty buffer would be full at 0

    @property
    def busy(self) -> bool:
        """Whether anything waits for the client to read."""
        return self._held or bool(self.queue)

    def write(self, buffers: Buffers) -> None:
        if not self.queue and FileSlice not in map(type, buffers):
            self._transport.writelines(buffers)  # type: ignore[arg-type]  # there is no slice among them
            return
        waits = bool(self.queue)
        self.queue.extend(buffers)
        if not waits:
            self._send()

    def drop(self) -> None:
        """Clear the queue: the connection is lost. A slice that a thread is reading is released when it is done."""
        self.queue.clear()
        self._drained = _ignore  # the old value is a method of the connection, which references this: avoid a cycle

    # -- callbacks of the transport ----------------------------------------------------------------------------------

    def transport_is_full(self) -> None:
        self._held = True

    def transport_is_empty(self) -> None:
        self._held = False
        self._resume()

    # -- sending -----------------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        if self.queue:
            self._send()
        if not self.busy:
            self._drained()

    def _send(self) -> None:
        """Send until the queue is empty, the socket is full, the disk is needed, or others must get a turn."""
        if self._held or self._transport.is_closing():
            return
        sock = self._socket
        if sock is None:
            self._send_some()
            return
        # Send it as full packets: none of their own for the few bytes before and after the records.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        self._send_some()
        if sock.fileno() >= 0:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)

    def _send_some(self) -> None:
        queue = self.queue
        room = SEND_AT_ONCE
        try:
            while queue and not self._held:
                head = queue[0]
                if not isinstance(head, FileSlice):
                    queue.popleft()
                    self._transport.write(head)
                elif room <= 0:
                    asyncio.get_running_loop().call_soon(self._resume)
                    return
                elif cached := head.cached_length(room):
                    room -= self._send_from(head, cached)
                    if not len(head):
                        queue.popleft()
                        head.release()
                else:
                    self._load(head)
                    return
        except (OSError, EOFError) as problem:
            self._failed(problem)

    def _send_from(self, head: FileSlice, cached: int) -> int:
        if self._socket is not None:
            try:
                return head.send(self._socket.fileno(), cached)
            except BlockingIOError:
                cached = min(cached, WHILE_FULL_BYTES)
        data = head.take(cached)
        self._transport.write(data)
        return len(data)

    def _load(self, head: FileSlice) -> None:
        self._loading = asyncio.ensure_future(self._read_in_thread(head.take, SEND_AT_ONCE))
        self._loading.add_done_callback(self._loaded)

    def _loaded(self, loading: asyncio.Future[bytes]) -> None:
        self._loading = None
        queue = self.queue
        if loading.cancelled():
            return
        problem = loading.exception()  # always retrieved, or the loop would report it as unhandled
        if not queue:
            return  # the client is gone
        if problem is not None:
            self._failed(problem)
            return
        head = queue[0]
        if not len(head):
            queue.popleft()
        queue.appendleft(loading.result())
        self._resume()

    def _failed(self, problem: BaseException) -> None:
        """Abort the connection. The client is gone, or the records are: the rest of this response cannot be sent."""
        if not isinstance(problem, ConnectionError):
            log.warning("a response could not be sent completely", problem=str(problem))
        self.drop()
        self._transport.abort()


def _ignore() -> None:
    pass
