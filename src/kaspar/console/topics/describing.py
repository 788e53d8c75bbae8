"""One topic: its partitions with their replicas, offsets and sizes."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition, uuid_to_text
from kaspar.client.admin.offsets import OffsetSpec, list_offsets
from kaspar.client.admin.session import Admin
from kaspar.client.admin.topics import TopicDescription, describe_topics, describe_topics_by_metadata
from kaspar.client.offsets import ListedOffset
from kaspar.console.problems import NotThere
from kaspar.console.topics.sizes import partition_sizes


@dataclass(frozen=True, slots=True)
class PartitionRow:
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    elr: tuple[int, ...] | None
    """Eligible leader replicas (KIP-966), if the cluster has them."""
    start_offset: int | None
    """Like the end offset, None if no leader reports it."""
    end_offset: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    topic_id: str
    """In Base64, as Kafka's commands print it."""
    is_internal: bool
    partitions: tuple[PartitionRow, ...]
    operations: tuple[str, ...] | None
    """The operations that the caller may do; None if the broker does not report them."""


def describe_topic(admin: Admin, name: str) -> TopicView:
    """Read the partitions of a topic. Raises Refused and NotThere."""
    topic = find_topic(admin, name)
    led = [TopicPartition(name, each.partition) for each in topic.partitions if each.leader >= 0]
    first = list_offsets(admin, dict.fromkeys(led, OffsetSpec.EARLIEST))
    last = list_offsets(admin, dict.fromkeys(led, OffsetSpec.LATEST))
    sizes = partition_sizes(admin, [topic])
    rows = []
    for each in topic.partitions:
        where = TopicPartition(name, each.partition)
        rows.append(
            PartitionRow(
                each.partition,
                each.leader if each.leader >= 0 else None,
                each.leader_epoch,
                each.replicas,
                each.isr,
                each.offline_replicas,
                each.elr,
                _offset(first, where),
                _offset(last, where),
                sizes.get(where),
            )
        )
    return TopicView(name, uuid_to_text(topic.topic_id), topic.is_internal, tuple(rows), _operations(admin, name))


def find_topic(admin: Admin, name: str) -> TopicDescription:
    """Raises Refused and NotThere."""
    found = describe_topics(admin, [name])[name]
    if isinstance(found, Refused):
        if found.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            raise NotThere(f"There is no topic {name}.")
        raise found
    return found


def _operations(admin: Admin, name: str) -> tuple[str, ...] | None:
    found = describe_topics_by_metadata(admin, [name], include_authorized_operations=True)[name]
    if isinstance(found, Refused) or found.authorized_operations is None:
        return None
    return tuple(sorted(each.name for each in found.authorized_operations))


def _offset(listed: Mapping[TopicPartition, ListedOffset | Refused], where: TopicPartition) -> int | None:
    found = listed.get(where)
    return found.offset if isinstance(found, ListedOffset) else None
