"""A store that counts its requests."""

from collections.abc import Sequence
from dataclasses import dataclass

from kaspar.metadata.store import Node, Operation, Store, Watcher, size_of


@dataclass(slots=True)
class Traffic:
    """`round_trips` are requests to the store, of which many may be under way at a time."""

    round_trips: int = 0
    transactions: int = 0
    written_bytes: int = 0
    read_bytes: int = 0


class CountingStore:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.traffic = Traffic()

    def take(self) -> Traffic:
        """Return what was counted since the last call."""
        traffic, self.traffic = self.traffic, Traffic()
        return traffic

    async def get(self, path: str, watcher: Watcher | None = None) -> Node | None:
        node = await self._store.get(path, watcher)
        self._count_read([node])
        return node

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        nodes = await self._store.get_many(paths)
        self._count_read(nodes)
        return nodes

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        names = await self._store.children(path, watcher)
        self.traffic.round_trips += 1
        self.traffic.read_bytes += sum(map(len, names))
        return names

    async def transact(self, operations: Sequence[Operation]) -> None:
        self.traffic.round_trips += 1
        self.traffic.transactions += 1
        self.traffic.written_bytes += sum(map(size_of, operations))
        await self._store.transact(operations)

    @property
    def is_lost(self) -> bool:
        return self._store.is_lost

    async def close(self) -> None:
        await self._store.close()

    def _count_read(self, nodes: Sequence[Node | None]) -> None:
        self.traffic.round_trips += len(nodes)
        self.traffic.read_bytes += sum(len(node.value) for node in nodes if node is not None)
