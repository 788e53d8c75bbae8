"""Creates topics."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kaspar.base.errors import Refused
from kaspar.client.admin.session import Admin, common_code, refusal
from kaspar.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

BROKERS_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int = BROKERS_DEFAULT
    """-1: the default of the brokers (KIP-464), also for the replication factor."""
    replication_factor: int = BROKERS_DEFAULT
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Sequence[Sequence[int]] = ()
    """The replicas of each partition, preferred leader first. If given, both numbers must be -1."""


def create_topics(admin: Admin, topics: Collection[NewTopic]) -> dict[str, UUID | Refused]:
    """Create topics. Returns the id of each topic, or why it was not created. A topic that already exists is refused
    with TOPIC_ALREADY_EXISTS."""
    if not topics:
        return {}
    response = admin.ask_controller(
        "createTopics",
        CreateTopicsRequest(topics=tuple(map(creatable, topics)), timeout_ms=admin.timeout_ms),
        CreateTopicsResponse,
        code_of=lambda response: common_code(each.error_code for each in response.topics),
    )
    return {topic.name: refusal(topic.error_code, topic.error_message) or topic.topic_id for topic in response.topics}


def creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=number, broker_ids=tuple(replicas))
            for number, replicas in enumerate(topic.assignments)
        ),
        configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()),
    )
