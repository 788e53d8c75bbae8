"""A store in memory with one session, as far as loading an image and applying decisions need it."""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from kaspar.metadata.store import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Node,
    Operation,
    Put,
    VersionConflict,
    Watcher,
    parent_of,
)

T = TypeVar("T")


def completed(call: Coroutine[Any, Any, T]) -> T:
    """The result of a call that waits for nothing but this store, without an event loop."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("the call waits for something else")


class MemoryStore:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._transactions = 0
        self.is_lost = False

    async def get(self, path: str, watcher: Watcher | None = None) -> Node | None:
        return self.nodes.get(path)

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return [self.nodes.get(path) for path in paths]

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        return sorted(each.rpartition("/")[2] for each in self.nodes if parent_of(each) == path)

    async def transact(self, operations: Sequence[Operation]) -> None:
        self.apply(operations)

    async def close(self) -> None:
        pass

    def apply(self, operations: Sequence[Operation]) -> int:
        """All of it or nothing. Returns the number of the transaction."""
        nodes = dict(self.nodes)
        number = self._transactions + 1
        for operation in operations:
            _carry_out(nodes, operation, number)
        self.nodes, self._transactions = nodes, number
        return number


def _carry_out(nodes: dict[str, Node], operation: Operation, number: int) -> None:
    path = operation.path
    if isinstance(operation, Create):
        if path in nodes:
            raise VersionConflict(path, "is already there")
        if parent_of(path) != "/" and parent_of(path) not in nodes:
            raise VersionConflict(path, "has no parent")
        nodes[path] = Node(operation.value, 0, number)
        return
    node = nodes.get(path)
    if node is None:
        raise VersionConflict(path, "is not there")
    if operation.version not in (ANY_VERSION, node.version):
        raise VersionConflict(path, "is of another version")
    match operation:
        case Put():
            nodes[path] = Node(operation.value, node.version + 1, node.created)
        case Delete():
            if any(parent_of(each) == path for each in nodes):
                raise VersionConflict(path, "has children")
            del nodes[path]
        case Check():
            pass
