"""The store of a cluster: a ZooKeeper ensemble, reached through kazoo.

- `address`: parses `zookeeper.connect`; `refusals`: maps ZooKeeper's errors to those of the store
- `wire`: kazoo's thread; `connections`: its sockets, plain and with TLS
- `session`: one session, its states and its calls, in the event loop
- `backend`: the store's interface over a session
- `node_acls`: who may read and change a node; `migration`: sets these ACLs on all nodes of a cluster
"""

from kaspar.metadata.zookeeper.backend import ZooKeeperMetadata, ZooKeeperStore

__all__ = ["ZooKeeperMetadata", "ZooKeeperStore"]
