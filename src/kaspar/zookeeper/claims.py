"""What a ZooKeeper server needs for itself: its data folder and its port.

ZooKeeper does not lock its data: two servers on one folder would both start, and each would spoil the other's log.
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
    """The folder, locked. A process that inherits the file keeps the lock until it ends, however it ends."""
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
    """Otherwise the program that listens there would be taken for this server."""
    if config.client_port is None:
        return
    with (
        contextlib.suppress(OSError),
        socket.create_connection((config.client_host, config.client_port), timeout=_CONNECT_TIMEOUT_S),
    ):
        raise KasparError(f"ZooKeeper cannot listen on {config.client_host}:{config.client_port}: the port is in use")
