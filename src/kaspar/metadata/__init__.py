"""The cluster's metadata: the store, and the image of its contents.

- `store`: the interface of the store; `sqlite`: the embedded store; `zookeeper`: the store of a cluster, imported only
  where it is used; `faults`: a store with injected faults, for tests
- `image`: the state at one moment; `layout` and `loading`: how it is stored; `topic_names`: the rules for topic names
- `moving`: moves the embedded store to ZooKeeper; `nodes`: reads and compares whole stores; `moved_mark`: the mark on
  the embedded store after a move
- `directories`: the known log directories of brokers, and the location of the embedded store
"""

from kaspar.metadata.image import (
    NO_LEADER,
    AdvertisedEndpoint,
    BrokerRegistration,
    ClusterImage,
    DeletedTopic,
    PartitionImage,
    TopicImage,
)
from kaspar.metadata.loading import prepare_store
from kaspar.metadata.sqlite import SqliteMetadata, SqliteStore
from kaspar.metadata.store import Store
from kaspar.metadata.topic_names import check_topic_name, is_internal

__all__ = [
    "NO_LEADER",
    "AdvertisedEndpoint",
    "BrokerRegistration",
    "ClusterImage",
    "DeletedTopic",
    "PartitionImage",
    "SqliteMetadata",
    "SqliteStore",
    "Store",
    "TopicImage",
    "check_topic_name",
    "is_internal",
    "prepare_store",
]
