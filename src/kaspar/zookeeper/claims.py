"""What a ZooKeeper server needs for itself: its data directory and its port.

ZooKeeper does not lock its data: two servers on one directory would both start, and corrupt each other's log.
"""

import contextlib
import fcntl
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from kaspar.base.errors import KasparError
from kaspar.zookeeper.config import ServerConfig

_LOCK: Final = "kaspar.lock"
_CONNECT_TIMEOUT_S: Final = 2.0


@contextlib.contextmanager
def claimed(data_dir: Path) -> Iterator[IO[str]]:
    """Lock the directory. A process that inherits the yielded file holds the lock until it exits or crashes."""
    try:
        lock = (data_dir / _LOCK).open("w")
    except OSError as problem:
        raise KasparError(f"{data_dir} cannot be used: {problem.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KasparError(f"a ZooKeeper server is already running on the data in {data_dir}") from None
        yield lock


def refuse_used_port(config: ServerConfig) -> None:
    """Raise KasparError if the client port is in use. Otherwise the program that listens there would be mistaken for
    this server.
    """
    if config.client_port is None:
        return
    with (
        contextlib.suppress(OSError),
        socket.create_connection((config.client_host, config.client_port), timeout=_CONNECT_TIMEOUT_S),
    ):
        raise KasparError(f"ZooKeeper cannot listen on {config.client_host}:{config.client_port}: the port is in use")
