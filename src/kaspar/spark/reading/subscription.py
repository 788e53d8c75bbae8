"""Determines the partitions of a subscription from the cluster's metadata."""

import re
from dataclasses import dataclass
from uuid import UUID

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.base.ids import TopicPartition
from kaspar.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from kaspar.spark.reading.options import Subscription

_OUR_PREFIX = "__kaspar_"


class UnknownTopics(KasparError):
    """Topics that were subscribed by name and do not exist."""

    def __init__(self, missing: tuple[str, ...], servers: str) -> None:
        named = ", ".join(f"Topic {name!r}" for name in missing)
        verb = "do not exist" if len(missing) > 1 else "does not exist"
        super().__init__(f"{named} {verb} in the cluster at {servers}.")


@dataclass(frozen=True, slots=True)
class Assignment:
    """The subscribed topics and partitions that exist."""

    topic_ids: dict[str, UUID]
    partitions: frozenset[TopicPartition]
    missing: tuple[str, ...] = ()
    """Named topics that do not exist."""
    absent: tuple[TopicPartition, ...] = ()
    """Partitions of `assign` that an existing topic does not have yet: they are read once they are created."""


def topics_to_ask(subscription: Subscription) -> list[str] | None:
    """The topics to request metadata for; None for all topics, which a pattern needs."""
    if subscription.pattern is not None:
        return None
    return list(subscription.topics) or sorted({where.topic for where in subscription.assigned})


def matches(subscription: Subscription, where: TopicPartition) -> bool:
    """Whether the subscription includes this partition, whether it exists or not."""
    if subscription.pattern is not None:
        return re.search(subscription.pattern, where.topic) is not None and not where.topic.startswith(_OUR_PREFIX)
    return where in subscription.assigned or where.topic in subscription.topics


def assignment(subscription: Subscription, response: MetadataResponse) -> Assignment:
    """The partitions of the subscription. Raises Refused for an error in the metadata.

    A pattern may match any part of a topic's name, and never matches internal topics, as in Spark's own connector. Our
    own internal topics count as internal too, although Apache Kafka does not mark them as such.
    """
    topics = {topic.name: topic for topic in response.topics if topic.name is not None}
    if subscription.pattern is not None:
        topics = {
            name: topic
            for name, topic in topics.items()
            if matches(subscription, TopicPartition(name, 0)) and not topic.is_internal
        }
    there = {name: topic for name, topic in topics.items() if _exists(topic)}
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


def _exists(topic: MetadataResponseTopic) -> bool:
    match topic.error_code:
        case ErrorCode.NONE:
            return True
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return False
        case ErrorCode.INVALID_TOPIC_EXCEPTION:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name!r} is not a valid topic name")
        case code:
            raise Refused(ErrorCode(code), f"the metadata of topic {topic.name!r}: {ErrorCode(code).name}")
