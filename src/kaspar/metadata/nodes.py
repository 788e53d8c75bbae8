"""All nodes of a store, and the operations that make one store like another."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kaspar.metadata.layout import store_paths
from kaspar.metadata.store import MAX_TRANSACTION_BYTES, Create, Delete, Operation, Put, Store, size_of

Nodes: TypeAlias = Mapping[str, bytes]
"""The values of nodes, by path."""

_OF_ZOOKEEPER: Final = "zookeeper"  # ZooKeeper's own node, at the root of every ensemble
_READ_AT_ONCE: Final = 500


async def top_names(store: Store) -> list[str]:
    return [name for name in await store.children("/") if name != _OF_ZOOKEEPER]


async def read_nodes(store: Store) -> dict[str, bytes]:
    """Read all nodes except `/moving`. Nothing else may write to the store meanwhile."""
    nodes: dict[str, bytes] = {}
    level = [f"/{name}" for name in await top_names(store) if f"/{name}" != store_paths.MOVING]
    while level:
        below: list[str] = []
        for start in range(0, len(level), _READ_AT_ONCE):
            paths = level[start : start + _READ_AT_ONCE]
            found = await store.get_many(paths)
            nodes |= {path: node.value for path, node in zip(paths, found, strict=True) if node is not None}
            children = await asyncio.gather(*map(store.children, paths))
            below += [f"{path}/{name}" for path, names in zip(paths, children, strict=True) for name in names]
        level = below
    return nodes


def changes_between(wanted: Nodes, found: Nodes) -> list[Operation]:
    """The operations that turn the nodes found into the wanted ones. Children are deleted before their parents and
    created after them, and the cluster's id comes last.
    """
    changes: list[Operation] = [Delete(path) for path in sorted(found.keys() - wanted.keys(), reverse=True)]
    for path in sorted(wanted, key=lambda path: (path == store_paths.CLUSTER_ID, path)):
        if path not in found:
            changes.append(Create(path, wanted[path]))
        elif found[path] != wanted[path]:
            changes.append(Put(path, wanted[path]))
    return changes


def in_transactions(operations: Sequence[Operation], *guards: Operation) -> Iterator[list[Operation]]:
    """Split the operations into as few transactions as possible, each with room for the guards. If there are no
    operations, yields one empty transaction.
    """
    room = MAX_TRANSACTION_BYTES - sum(map(size_of, guards))
    transaction: list[Operation] = []
    used = 0
    for operation in operations:
        size = size_of(operation)
        if transaction and used + size > room:
            yield transaction
            transaction, used = [], 0
        transaction.append(operation)
        used += size
    yield transaction
