"""Sets the ACLs of all nodes of a cluster: to the brokers' identity, or open to everybody (Kafka's ZkSecurityMigrator).

Brokers may run meanwhile. With `zookeeper.set.acl` they create protected nodes themselves, so no node is missed.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kazoo.exceptions import NoNodeError
from kazoo.security import ACL

from kaspar.metadata.layout import first_nodes, store_paths
from kaspar.metadata.zookeeper.backend import ZooKeeperStore
from kaspar.metadata.zookeeper.node_acls import acls_of
from kaspar.metadata.zookeeper.refusals import DEFINITE, other_refusal

_ROOT: Final = "/"
_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class Migrated:
    """How many nodes were changed, and the identities that now have all permissions on them."""

    nodes: int
    owners: tuple[str, ...]


async def set_all_acls(store: ZooKeeperStore, *, is_secure: bool) -> Migrated:
    """Set the ACL of every node of the cluster, and of the chroot. Other nodes below the chroot are not changed."""
    await _set_acls(store, _ROOT, acls_of(_ROOT, is_secure=is_secure))
    count = 1
    level = _top_paths()
    while level:
        below: list[str] = []
        for start in range(0, len(level), _AT_ONCE):
            paths = level[start : start + _AT_ONCE]
            done = await asyncio.gather(*(_set_acls(store, path, acls_of(path, is_secure=is_secure)) for path in paths))
            count += sum(done)
            # Children are read after the ACL of the parent is set: its creator protects a child that is created later.
            children = await asyncio.gather(*map(store.children, paths))
            below += [f"{path}/{name}" for path, names in zip(paths, children, strict=True) for name in names]
        level = below
    return Migrated(count, await _owners(store))


def _top_paths() -> list[str]:
    paths = [
        *(node.path for node in first_nodes.bootstrap_nodes()),
        store_paths.FEATURES,
        store_paths.MOVING,
        store_paths.ADOPTED,
    ]
    return sorted({f"/{path.split('/')[1]}" for path in paths})


async def _set_acls(store: ZooKeeperStore, path: str, acls: Sequence[ACL]) -> bool:
    """Set the ACL of a node. False if the node no longer exists."""
    try:
        await store.session.call(lambda client: client.set_acls_async(path, acls), by_leader=True)
    except NoNodeError:
        return False
    except DEFINITE as problem:
        raise other_refusal(path, problem, "changed") from None
    return True


async def _owners(store: ZooKeeperStore) -> tuple[str, ...]:
    found: tuple[list[ACL], Any] = await store.session.call(lambda client: client.get_acls_async(_ROOT))
    return tuple(f"{acl.id.scheme}:{acl.id.id}" for acl in found[0] if acl.perms == _ALL)


_ALL: Final = 31
