"""The controller: pure decisions about topics, partitions and brokers, and the shell that commits them to the store.

- `events`: the events and their replies; `decision`: the steps that carry a decision out
- `controller`: the pure core, with the decisions about
    - `topics`, with `placement` and `assignments`; `configs`; `features`; `producer_ids`; `acls`
    - `brokers` that start and stop; `leaders` and `in_sync` replicas; `reassignment`; `replica_logs`
    - `elections`: the rules for every change of a partition
- `shell`: runs the controller over a store and publishes images; `fence`: its hold on the store
- `channel`: how the parts of a broker reach the controller; `registration`: brokers that are up
"""

from kaspar.controller.controller import Controller
from kaspar.controller.events import (
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
from kaspar.controller.registration import register_broker
from kaspar.controller.shell import ControllerShell

__all__ = [
    "DONE",
    "AllocateProducerIds",
    "AlterConfigs",
    "AlterPartitions",
    "ConfigChange",
    "ConfigOperation",
    "ConfigResource",
    "Controller",
    "ControllerShell",
    "CreatePartitions",
    "CreateTopics",
    "CreatedTopic",
    "DeleteTopics",
    "IsrChange",
    "LogsRemoved",
    "MorePartitions",
    "NewTopic",
    "Outcome",
    "ProducerIdBlock",
    "ResourceType",
    "TopicReference",
    "register_broker",
]
