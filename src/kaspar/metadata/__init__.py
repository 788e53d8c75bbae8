"""What the cluster knows about itself: the store, the image, and the controller that alone changes it.

- `store`: the interface to the store; `sqlite`: the embedded one; `faults`: one that misbehaves, for tests
- `image`: the state at one moment; `layout` and `loading`: how it is kept in the store; `topic_names`: their rules
- `events`, `decision`, `controller` with `topics`, `configs`, `brokers`, `placement`: the pure core
- `directories`: which log directories the cluster knows, and where the embedded store is
- `shell`: runs the controller over a store and publishes images; `fence`: its hold on the store
"""

from kaspar.metadata.controller import Controller
from kaspar.metadata.events import (
    DONE,
    AllocateProducerIds,
    AlterConfigs,
    AlterPartitions,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    CreatedTopic,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    IsrChange,
    LogsRemoved,
    MorePartitions,
    NewTopic,
    Outcome,
    ProducerIdBlock,
    ResourceType,
    TopicReference,
)
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
from kaspar.metadata.shell import ControllerShell, OnImage, register_broker
from kaspar.metadata.sqlite import SqliteMetadata, SqliteStore
from kaspar.metadata.store import Store
from kaspar.metadata.topic_names import check_topic_name, is_internal

__all__ = [
    "DONE",
    "NO_LEADER",
    "AdvertisedEndpoint",
    "AllocateProducerIds",
    "AlterConfigs",
    "AlterPartitions",
    "BrokerRegistration",
    "ClusterImage",
    "ConfigChange",
    "ConfigOperation",
    "ConfigResource",
    "Controller",
    "ControllerShell",
    "CreatePartitions",
    "CreateTopics",
    "CreatedTopic",
    "DeleteTopics",
    "DeletedTopic",
    "IsrChange",
    "LogsRemoved",
    "MorePartitions",
    "NewTopic",
    "OnImage",
    "Outcome",
    "PartitionImage",
    "ProducerIdBlock",
    "ResourceType",
    "SqliteMetadata",
    "SqliteStore",
    "Store",
    "TopicImage",
    "TopicReference",
    "check_topic_name",
    "is_internal",
    "prepare_store",
    "register_broker",
]
