"""The store of a cluster: a ZooKeeper ensemble, reached through kazoo.

- `address`: what `zookeeper.connect` says; `refusals`: ZooKeeper's errors as those of the store
- `wire`: kazoo's thread; `connections`: its sockets, in the clear and by TLS
- `session`: one session, its states and its calls, on the event loop
- `backend`: the store's interface over a session
- `node_acls`: who may read and change a node; `migration`: sets that for all nodes of a cluster
"""

from kaspar.metadata.zookeeper.backend import ZooKeeperMetadata, ZooKeeperStore

__all__ = ["ZooKeeperMetadata", "ZooKeeperStore"]
