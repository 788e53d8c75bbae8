# The part of kazoo.protocol.states that Kaspar uses.

from collections.abc import Callable
from typing import Any, NamedTuple

class KazooState:
    SUSPENDED: str
    CONNECTED: str
    LOST: str

class KeeperState:
    AUTH_FAILED: str

class Callback(NamedTuple):
    type: str
    func: Callable[..., None]
    args: tuple[Any, ...]

class WatchedEvent(NamedTuple):
    type: str
    state: str
    path: str | None

class ZnodeStat(NamedTuple):
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeralOwner: int  # noqa: N815
    dataLength: int  # noqa: N815
    numChildren: int  # noqa: N815
    pzxid: int
