"""The ACLs of nodes, as in Kafka (ZkData.defaultAcls).

With `zookeeper.set.acl` a node belongs to the identity of the session that creates it. Everybody may read it, unless it
is below a path with secrets. All brokers need the same identity, because they change each other's nodes.
"""

from collections.abc import Sequence
from typing import Final

from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kaspar.metadata.layout import store_paths

SENSITIVE: Final = (store_paths.SCRAM, store_paths.TOKENS, "/configs", store_paths.CLIENT_QUOTAS)
"""Paths that only brokers may read. In Kafka these are the settings of users and brokers, and delegation tokens."""


def acls_of(path: str, *, is_secure: bool) -> Sequence[ACL]:
    if not is_secure:
        return OPEN_ACL_UNSAFE
    return CREATOR_ALL_ACL if is_sensitive(path) else [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]


def is_sensitive(path: str) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in SENSITIVE)
