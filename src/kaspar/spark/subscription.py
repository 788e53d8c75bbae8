"""Which partitions of which topics are meant now: what was asked for, held against the metadata of the cluster."""

import re
from dataclasses import dataclass
from uuid import UUID

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import TopicPartition
from kaspar.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from kaspar.spark.options import Subscription

_OURS = "__kaspar_"


class UnknownTopics(KasparError):
    """Topics that were asked for by name, and are not there."""

    def __init__(self, missing: tuple[str, ...], servers: str) -> None:
        named = ", ".join(f"Topic {name!r}" for name in missing)
        verb = "do not exist" if len(missing) > 1 else "does not exist"
        super().__init__(f"{named} {verb} in the cluster at {servers}.")


@dataclass(frozen=True, slots=True)
class Assignment:
    """What is there of what was asked for."""

    topic_ids: dict[str, UUID]
    partitions: frozenset[TopicPartition]
    missing: tuple[str, ...] = ()
    """Topics that were named and are not there."""
    absent: tuple[TopicPartition, ...] = ()
    """Partitions of `assign` that such a topic would have if it were larger: they are read when they come."""


def topics_to_ask(subscription: Subscription) -> list[str] | None:
    """Whose metadata is needed; None: a pattern needs that of all topics."""
    if subscription.pattern is not None:
        return None
    return list(subscription.topics) or sorted({where.topic for where in subscription.assigned})


def is_meant(subscription: Subscription, where: TopicPartition) -> bool:
    """Whether a partition of that name would be read, were it there."""
    if subscription.pattern is not None:
        return re.search(subscription.pattern, where.topic) is not None and not where.topic.startswith(_OURS)
    return where in subscription.assigned or where.topic in subscription.topics


def assignment(subscription: Subscription, response: MetadataResponse) -> Assignment:
    """Raises Refused where the cluster does not tell, or cannot tell yet.

    A pattern may match any part of a topic's name, and matches no internal topic: so Spark's own connector has it.
    Internal is also what we keep for ourselves in the cluster, which only our brokers would know.
    """
    topics = {topic.name: topic for topic in response.topics if topic.name is not None}
    if subscription.pattern is not None:
        topics = {
            name: topic
            for name, topic in topics.items()
            if is_meant(subscription, TopicPartition(name, 0)) and not topic.is_internal
        }
    there = {name: topic for name, topic in topics.items() if _is_there(topic)}
    partitions = {
        TopicPartition(name, partition.partition_index)
        for name, topic in there.items()
        for partition in topic.partitions
    }
    missing = tuple(name for name in topics_to_ask(subscription) or () if name not in there)
    absent: tuple[TopicPartition, ...] = ()
    if subscription.assigned:
        wanted = set(subscription.assigned)
        absent = tuple(where for where in sorted(wanted - partitions) if where.topic in there)
        partitions &= wanted
    return Assignment({name: topic.topic_id for name, topic in there.items()}, frozenset(partitions), missing, absent)


def _is_there(topic: MetadataResponseTopic) -> bool:
    match topic.error_code:
        case ErrorCode.NONE:
            return True
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        case ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name!r} cannot be the name of a topic")
        case code:
            raise Refused(ErrorCode(code), f"the metadata of topic {topic.name!r}: {ErrorCode(code).name}")
