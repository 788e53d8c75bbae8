"""The store of cluster metadata: a small interface with the semantics of ZooKeeper, for every implementation.

- Nodes have a path, a value and a version that starts at 0 and increases by one with every put. A parent exists before
  its children and is deleted after them.
- All calls are asynchronous. A change has one of three outcomes: done (the call returns), refused (`VersionConflict`:
  nothing was changed), or unknown (`UnknownOutcome`: it may have happened, or may still happen). The outcome of a read
  can be unknown, too.
- A call ends within seconds: if there is no response by then, its outcome is unknown.
- A `Store` is one session. Its ephemeral nodes are deleted when it ends. When it is lost, every call raises
  `SessionLost`; the caller opens another session and reads everything again.
- A watch is set by a read, fires at most once, may be late, and may stand for several changes. It does not say what was
  changed; the caller has to read again. It fires before a read that shows the change.
- A read may be behind the commits of other sessions, but never behind what its own session has read or written, or
  behind the state that caused a transaction of the session to be refused.
- A transaction is atomic. Its size, and the size of a value, is at most MAX_TRANSACTION_BYTES.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kaspar.base.errors import KasparError

MAX_TRANSACTION_BYTES = 512 * 1024
ANY_VERSION = -1
_OPERATION_OVERHEAD_BYTES = 64  # ZooKeeper's fields and the chroot: keeps the message below 1 MiB


class StoreError(KasparError):
    pass


class VersionConflict(StoreError):
    """Refused, nothing was changed: a node is missing, already exists, has another version, or has children."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} {problem}")
        self.path = path


class UnknownOutcome(StoreError):
    """The call may have happened, or may still happen. Read again to find out."""


class SessionLost(StoreError):
    """This session is over; its ephemeral nodes are deleted."""


class StoreFull(StoreError):
    """Nothing was changed, because there is no space left. Later calls may succeed."""


class AccessDenied(StoreError):
    """Nothing was read or changed, because this client has no permission. Later calls may succeed."""


class DamagedStore(StoreError):
    """Nodes are missing, or contradict each other."""


class TooLarge(StoreError):
    """Nothing was sent: the transaction exceeds MAX_TRANSACTION_BYTES."""


@dataclass(frozen=True, slots=True)
class Node:
    """`created` is the number of the transaction that created the node; a recreated node has a higher one. `is_mine`:
    it is ephemeral and belongs to the session that read it."""

    value: bytes
    version: int
    created: int
    is_mine: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    value: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    path: str
    value: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Changes nothing; the transaction is refused if the node does not have this version."""

    path: str
    version: int


Operation: TypeAlias = Create | Put | Delete | Check
Watcher: TypeAlias = Callable[[str], None]
"""Called in the event loop with the watched path."""


class Store(Protocol):
    """One session with the store."""

    async def get(self, path: str, watcher: Watcher | None = None) -> Node | None:
        """The node, or None. The watcher is called when it is created, changed or deleted."""
        ...

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """Each node or None, in the order of `paths`. The nodes are not read atomically."""
        ...

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        """The names (not paths) of the children, sorted. The watcher is called when one is created or deleted."""
        ...

    async def transact(self, operations: Sequence[Operation]) -> None:
        """Carry out all operations, or none of them."""
        ...

    @property
    def is_lost(self) -> bool: ...

    async def close(self) -> None:
        """End the session and delete its ephemeral nodes. Safe to call twice."""
        ...


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def size_of(operation: Operation) -> int:
    """The number of bytes by which an operation counts towards MAX_TRANSACTION_BYTES."""
    value = operation.value if isinstance(operation, Create | Put) else b""
    return _OPERATION_OVERHEAD_BYTES + len(operation.path.encode()) + len(value)


def check_size(operations: Sequence[Operation]) -> None:
    size = sum(map(size_of, operations))
    if size > MAX_TRANSACTION_BYTES:
        raise TooLarge(f"a transaction of {size} bytes is more than the {MAX_TRANSACTION_BYTES} that the store takes")
