"""What the cluster knows about itself: the store, and the image of what is in it.

- `store`: the interface to the store; `sqlite`: the embedded one; `zookeeper`: that of a cluster, imported only where
  it is used; `faults`: one that misbehaves, for tests
- `image`: the state at one moment; `layout` and `loading`: how it is kept in the store; `topic_names`: their rules
- `moving`: from the embedded store to ZooKeeper; `nodes`: all of a store; `moved_mark`: on the embedded one afterwards
- `directories`: which log directories the cluster knows, and where the embedded store is
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
