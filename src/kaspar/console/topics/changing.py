"""Creates and deletes topics, adds partitions, and deletes records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.created_topic import CreatedTopic, create_topic
from kaspar.client.admin.creation import BROKERS_DEFAULT, NewTopic
from kaspar.client.admin.deletion import delete_topics
from kaspar.client.admin.partitions import NewPartitions, create_partitions
from kaspar.client.admin.records import delete_records
from kaspar.client.admin.session import Admin
from kaspar.console.problems import Unacceptable, check_parts
from kaspar.console.topics.describing import find_topic

_TO_END: Final = -1
"""The high watermark, for DeleteRecords."""


@dataclass(frozen=True, slots=True)
class TopicBody:
    name: str
    partitions: int = BROKERS_DEFAULT
    """-1, also for the replication factor, stands for the brokers' default."""
    replication_factor: int = BROKERS_DEFAULT
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Truncation:
    offsets: Mapping[int, int] | None = None
    """For each partition the offset before which records are deleted. None deletes all records of all partitions."""


@dataclass(frozen=True, slots=True)
class Truncated:
    start_offsets: Mapping[int, int]
    """The first remaining offset of each partition."""


def add_topic(admin: Admin, body: TopicBody) -> CreatedTopic:
    """Create a topic. Raises Refused and Unacceptable."""
    if not body.name:
        raise Unacceptable("The name of the topic is missing.")
    return create_topic(admin, NewTopic(body.name, body.partitions, body.replication_factor, body.configs))


def remove_topic(admin: Admin, name: str) -> None:
    """Delete a topic. Raises Refused."""
    if (refused := delete_topics(admin, [name])[name]) is not None:
        raise refused


def add_partitions(admin: Admin, name: str, total: int) -> None:
    """Raises Refused."""
    if (refused := create_partitions(admin, {name: NewPartitions(total)})[name]) is not None:
        raise refused


def truncate(admin: Admin, name: str, truncation: Truncation) -> Truncated:
    """Delete records. Raises NotThere, Unacceptable and Refused: PartlyRefused if only some partitions were refused."""
    if truncation.offsets is None:
        numbers = {each.partition: _TO_END for each in find_topic(admin, name).partitions}
    else:
        numbers = dict(truncation.offsets)
    if not numbers or any(offset < _TO_END for offset in numbers.values()):
        raise Unacceptable("The offset must be at least 0, or -1 for the end.")
    deleted = delete_records(admin, {TopicPartition(name, number): offset for number, offset in numbers.items()})
    check_parts(
        [
            Refused(each.code, f"Partition {where.partition}: {each.message}") if isinstance(each, Refused) else each
            for where, each in deleted.items()
        ]
    )
    return Truncated({where.partition: each for where, each in deleted.items() if not isinstance(each, Refused)})
