"""Topics and deleted topics, and the operations that change a topic from one state to another."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from kaspar.base.ids import BrokerId, uuid_from_text, uuid_to_text
from kaspar.metadata.image import DeletedTopic, PartitionImage, TopicImage
from kaspar.metadata.layout.json_values import decode, encode
from kaspar.metadata.layout.store_paths import DELETED, TOPICS
from kaspar.metadata.store import Create, DamagedStore, Delete, Operation, Put

PARTITIONS_PER_NODE = 500


def topic_path(name: str) -> str:
    return f"{TOPICS}/{name}"


def topic_change(old: TopicImage | None, new: TopicImage | None) -> list[Operation]:
    """The operations that change a topic from one state to another. Unchanged nodes are not written."""
    operations: list[Operation] = []
    before, after = _nodes_of(old), _nodes_of(new)
    if new is not None:
        for number in range(after):
            if number >= before:
                operations.append(Create(_node_path(new.name, number), _encode_node(new, number)))
            elif old is not None and not _same_node(old, new, number):
                operations.append(Put(_node_path(new.name, number), _encode_node(new, number)))
    if old is not None:
        # Children are deleted before their parent, which is node 0.
        operations += [Delete(_node_path(old.name, number)) for number in reversed(range(after, before))]
    return operations


def partition_changes(old: TopicImage, new: TopicImage) -> list[tuple[int, Operation]]:
    """The operations that change the partitions of a topic. Each comes with the number n such that the first n
    partitions are in the new state after this operation and those before it.
    """
    return [
        ((number + 1) * PARTITIONS_PER_NODE, Put(_node_path(new.name, number), _encode_node(new, number)))
        for number in range(_nodes_of(new))
        if not _same_node(old, new, number)
    ]


def partition_count(header: bytes) -> int:
    """How many partitions a topic has, according to its first node."""
    return int(decode(header)["count"])


def node_count(header: bytes) -> int:
    """How many nodes a topic has, according to its first node."""
    return _nodes_for(partition_count(header))


def decode_topic(name: str, nodes: list[bytes]) -> TopicImage:
    header = decode(nodes[0])
    partitions = [_partition(fields) for fields in header["partitions"]]
    for node in nodes[1:]:
        partitions += [_partition(fields) for fields in decode(node)]
    if len(partitions) != header["count"]:
        raise DamagedStore(f"the metadata store has {len(partitions)} partitions of {name}, not {header['count']}")
    former = _ids(header.get("former_brokers", ()))
    return TopicImage(name, uuid_from_text(header["id"]), tuple(partitions), header["configs"], former)


def further_paths(name: str, count: int) -> list[str]:
    return [_node_path(name, number) for number in range(1, count)]


def _node_path(name: str, number: int) -> str:
    return f"{topic_path(name)}/{number}" if number else topic_path(name)


def _slice(topic: TopicImage, number: int) -> tuple[PartitionImage, ...]:
    return topic.partitions[number * PARTITIONS_PER_NODE : (number + 1) * PARTITIONS_PER_NODE]


def _same_node(old: TopicImage, new: TopicImage, number: int) -> bool:
    if number == 0 and _header(old) != _header(new):
        return False
    return _slice(old, number) == _slice(new, number)


def _encode_node(topic: TopicImage, number: int) -> bytes:
    rows = [_row(partition) for partition in _slice(topic, number)]
    if number:
        return encode(rows)
    return encode({**_header(topic), "partitions": rows})


def _header(topic: TopicImage) -> dict[str, object]:
    header: dict[str, object] = {
        "id": uuid_to_text(topic.topic_id),
        "configs": dict(topic.configs),
        "count": len(topic.partitions),
    }
    if topic.former_brokers:
        header["former_brokers"] = topic.former_brokers
    return header


def _nodes_of(topic: TopicImage | None) -> int:
    return 0 if topic is None else _nodes_for(len(topic.partitions))


def _nodes_for(partition_count: int) -> int:
    return max(1, -(-partition_count // PARTITIONS_PER_NODE))


def _row(partition: PartitionImage) -> list[object]:
    """A partition as a compact list, because a topic may have ten thousand partitions. Empty fields at the end are
    omitted; rows of earlier releases lack them, too.
    """
    row: list[object] = [
        partition.replicas,
        partition.isr,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
    ]
    if not any(partition[len(row) :]):
        return row
    further: list[Sequence[object]] = [
        partition.elr,
        partition.last_known_elr,
        [uuid_to_text(directory) for directory in partition.directories],
        partition.adding_replicas,
        partition.removing_replicas,
    ]
    while further and not further[-1]:
        further.pop()
    return row + further


def _partition(row: list[Any]) -> PartitionImage:
    replicas, isr, leader, leader_epoch, partition_epoch, *further = row
    elr, last_known_elr, directories, adding, removing = further + [()] * (5 - len(further))
    return PartitionImage(
        _ids(replicas),
        _ids(isr),
        leader,
        leader_epoch,
        partition_epoch,
        _ids(elr),
        _ids(last_known_elr),
        tuple(uuid_from_text(directory) for directory in directories),
        _ids(adding),
        _ids(removing),
    )


def deletion(topic: TopicImage) -> list[Operation]:
    """The operations that move a topic to the deleted topics, for one transaction."""
    return [*topic_change(topic, None), deleted_node(DeletedTopic(topic.name, topic.topic_id, topic.brokers))]


def deleted_node(topic: DeletedTopic) -> Create:
    return Create(deleted_path(topic), _encode_deleted(topic))


def deleted_change(old: DeletedTopic, new: DeletedTopic | None) -> list[Operation]:
    if new is None:
        return [Delete(deleted_path(old))]
    return [Put(deleted_path(new), _encode_deleted(new))]


def _encode_deleted(topic: DeletedTopic) -> bytes:
    return encode({"name": topic.name, "brokers": topic.brokers})


def deleted_path(topic: DeletedTopic) -> str:
    return f"{DELETED}/{uuid_to_text(topic.topic_id)}"


def decode_deleted(node_name: str, value: bytes) -> DeletedTopic:
    fields = decode(value)
    return DeletedTopic(fields["name"], uuid_from_text(node_name), _ids(fields["brokers"]))


def _ids(values: Iterable[int]) -> tuple[BrokerId, ...]:
    return cast(tuple[BrokerId, ...], tuple(values))
