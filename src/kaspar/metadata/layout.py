"""Where and how the image is kept in the store, and the operations that lead from one topic's state to another.

    /cluster/id                    the cluster's id
    /controller/fence              who controls, in which epoch, and the number of its last transaction
    /brokers/ids/<id>              ephemeral: a broker that is up
    /brokers/epochs                the last known epoch of each broker
    /brokers/directories/<id>      the log directories of a broker, also while it is down: id -> path
    /topics/<name>                 a topic: its id, settings, and its first PARTITIONS_PER_NODE partitions
    /topics/<name>/<n>             its further partitions, PARTITIONS_PER_NODE in each, from n = 1
    /deleted/<topic id>            a deleted topic whose logs are not removed yet
    /configs/<kind>/<resource>     settings of brokers, groups and client-metrics subscriptions
    /producer_ids                  the first producer id that is not given out
    /features                      the finalised level of each feature, and the epoch of the last change of one

Values are JSON, so that people can read them. A topic's state is one node, as long as it is no giant, so that a
change writes little and a new controller loads quickly. Every change of a topic is one transaction: there is no
half-made topic to find.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast
from urllib.parse import quote, unquote

from kaspar.base.ids import BrokerId, uuid_from_text, uuid_to_text
from kaspar.metadata.image import (
    AdvertisedEndpoint,
    BrokerRegistration,
    Configs,
    DeletedTopic,
    PartitionImage,
    TopicImage,
)
from kaspar.metadata.store import Create, Delete, Operation, Put

CLUSTER_ID = "/cluster/id"
FENCE = "/controller/fence"
BROKER_IDS = "/brokers/ids"
BROKER_EPOCHS = "/brokers/epochs"
BROKER_DIRECTORIES = "/brokers/directories"
TOPICS = "/topics"
DELETED = "/deleted"
BROKER_CONFIGS = "/configs/brokers"
GROUP_CONFIGS = "/configs/groups"
CLIENT_METRICS_CONFIGS = "/configs/client_metrics"
PRODUCER_IDS = "/producer_ids"
FEATURES = "/features"

PARTITIONS_PER_NODE = 500
_DEFAULT_RESOURCE = "<default>"


def encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def decode(value: bytes) -> Any:
    return json.loads(value)


def bootstrap_nodes() -> list[Create]:
    """What a new store needs before a controller can claim it."""
    return [
        Create("/cluster"),
        Create("/controller"),
        Create(FENCE, encode_fence(BrokerId(-1), 0, 0)),
        Create("/brokers"),
        Create(BROKER_IDS),
        Create(BROKER_EPOCHS, encode({})),
        Create(BROKER_DIRECTORIES),
        Create(TOPICS),
        Create(DELETED),
        Create("/configs"),
        Create(BROKER_CONFIGS),
        Create(GROUP_CONFIGS),
        Create(CLIENT_METRICS_CONFIGS),
        Create(PRODUCER_IDS, encode(0)),
    ]


def first_features(levels: Mapping[str, int]) -> Create:
    """A store has none until a controller that knows of features opens it."""
    return Create(FEATURES, _encode_features(levels, 0))


def _encode_features(levels: Mapping[str, int], epoch: int) -> bytes:
    return encode({"epoch": epoch, "levels": dict(levels)})


def encode_fence(controller_id: BrokerId, epoch: int, transaction: int) -> bytes:
    return encode({"controller": controller_id, "epoch": epoch, "transaction": transaction})


def topic_path(name: str) -> str:
    return f"{TOPICS}/{name}"


def broker_path(broker_id: BrokerId) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def resource_path(folder: str, resource: str) -> str:
    """Group names may hold anything, so a resource's name is written as in a URL; the empty one gets a name."""
    return f"{folder}/{quote(resource, safe='') or _DEFAULT_RESOURCE}"


def resource_name(node_name: str) -> str:
    return "" if node_name == _DEFAULT_RESOURCE else unquote(node_name)


def topic_change(old: TopicImage | None, new: TopicImage | None) -> list[Operation]:
    """The operations that turn one stored state of a topic into another. Untouched nodes stay untouched."""
    operations: list[Operation] = []
    before, after = _nodes_of(old), _nodes_of(new)
    if new is not None:
        for number in range(after):
            if number >= before:
                operations.append(Create(_node_path(new.name, number), _encode_node(new, number)))
            elif old is not None and not _same_node(old, new, number):
                operations.append(Put(_node_path(new.name, number), _encode_node(new, number)))
    if old is not None:
        # Children go before their parent, which is node 0.
        operations += [Delete(_node_path(old.name, number)) for number in reversed(range(after, before))]
    return operations


def deletion(topic: TopicImage) -> list[Operation]:
    """Moves a topic to the deleted ones, in one step."""
    brokers = sorted({replica for partition in topic.partitions for replica in partition.replicas})
    record = encode({"name": topic.name, "brokers": brokers})
    return [*topic_change(topic, None), Create(deleted_path(topic), record)]


def deleted_path(topic: TopicImage | DeletedTopic) -> str:
    return f"{DELETED}/{uuid_to_text(topic.topic_id)}"


def decode_deleted(node_name: str, value: bytes) -> DeletedTopic:
    fields = decode(value)
    return DeletedTopic(fields["name"], uuid_from_text(node_name), _ids(fields["brokers"]))


def node_count(header: bytes) -> int:
    """How many nodes a topic has, told by its first."""
    return _nodes_for(int(decode(header)["count"]))


def decode_topic(name: str, nodes: list[bytes]) -> TopicImage:
    header = decode(nodes[0])
    partitions = [_partition(fields) for fields in header["partitions"]]
    for node in nodes[1:]:
        partitions += [_partition(fields) for fields in decode(node)]
    assert len(partitions) == header["count"], f"topic {name} has {len(partitions)} partitions, not {header['count']}"
    return TopicImage(name, uuid_from_text(header["id"]), tuple(partitions), header["configs"])


def further_paths(name: str, count: int) -> list[str]:
    return [_node_path(name, number) for number in range(1, count)]


def _node_path(name: str, number: int) -> str:
    return f"{topic_path(name)}/{number}" if number else topic_path(name)


def _slice(topic: TopicImage, number: int) -> tuple[PartitionImage, ...]:
    return topic.partitions[number * PARTITIONS_PER_NODE : (number + 1) * PARTITIONS_PER_NODE]


def _same_node(old: TopicImage, new: TopicImage, number: int) -> bool:
    if number == 0 and (
        old.topic_id != new.topic_id or old.configs != new.configs or len(old.partitions) != len(new.partitions)
    ):
        return False
    return _slice(old, number) == _slice(new, number)


def _encode_node(topic: TopicImage, number: int) -> bytes:
    rows = [_row(partition) for partition in _slice(topic, number)]
    if number:
        return encode(rows)
    return encode(
        {
            "id": uuid_to_text(topic.topic_id),
            "configs": dict(topic.configs),
            "count": len(topic.partitions),
            "partitions": rows,
        }
    )


def _nodes_of(topic: TopicImage | None) -> int:
    return 0 if topic is None else _nodes_for(len(topic.partitions))


def _nodes_for(partition_count: int) -> int:
    return max(1, -(-partition_count // PARTITIONS_PER_NODE))


def _row(partition: PartitionImage) -> list[object]:
    """Short on purpose: a topic may have ten thousand of them."""
    row: list[object] = [
        partition.replicas,
        partition.isr,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
    ]
    if partition.elr or partition.last_known_elr or partition.directories:
        row += [partition.elr, partition.last_known_elr]
    if partition.directories:
        row.append([uuid_to_text(directory) for directory in partition.directories])
    return row


def _partition(row: list[Any]) -> PartitionImage:
    replicas, isr, leader, leader_epoch, partition_epoch, *more = row
    elr, last_known_elr = more[:2] or ((), ())
    return PartitionImage(
        _ids(replicas),
        _ids(isr),
        leader,
        leader_epoch,
        partition_epoch,
        _ids(elr),
        _ids(last_known_elr),
        tuple(uuid_from_text(directory) for directory in more[2]) if len(more) > 2 else (),
    )


def _ids(values: Iterable[int]) -> tuple[BrokerId, ...]:
    return cast(tuple[BrokerId, ...], tuple(values))


def encode_registration(registration: BrokerRegistration) -> bytes:
    """Without the epoch, which is the number of the transaction that writes it."""
    return encode(
        {
            "endpoints": [
                [endpoint.listener, endpoint.host, endpoint.port, endpoint.security_protocol]
                for endpoint in registration.endpoints
            ],
            "rack": registration.rack,
            "clean_start": registration.clean_start,
            "log_dirs": [uuid_to_text(directory) for directory in registration.log_dirs],
        }
    )


def decode_registration(broker_id: BrokerId, epoch: int, value: bytes) -> BrokerRegistration:
    fields = decode(value)
    endpoints = tuple(AdvertisedEndpoint(*endpoint) for endpoint in fields["endpoints"])
    log_dirs = tuple(uuid_from_text(directory) for directory in fields["log_dirs"])
    return BrokerRegistration(broker_id, epoch, endpoints, fields["rack"], fields["clean_start"], log_dirs)


def config_change(folder: str, resource: str, old: Configs | None, new: Configs) -> list[Operation]:
    """Settings that are empty need no node."""
    path = resource_path(folder, resource)
    if not old:
        return [Create(path, encode(dict(new)))] if new else []
    if not new:
        return [Delete(path)]
    return [Put(path, encode(dict(new)))] if dict(old) != dict(new) else []


CONFIG_FOLDERS = {
    "broker_configs": BROKER_CONFIGS,
    "group_configs": GROUP_CONFIGS,
    "client_metrics_configs": CLIENT_METRICS_CONFIGS,
}
"""Where the settings of each of the image's fields are kept."""


def deleted_change(old: DeletedTopic, new: DeletedTopic | None) -> list[Operation]:
    if new is None:
        return [Delete(deleted_path(old))]
    return [Put(deleted_path(new), encode({"name": new.name, "brokers": new.brokers}))]


def epochs_change(epochs: Mapping[BrokerId, int]) -> list[Operation]:
    return [Put(BROKER_EPOCHS, encode({str(broker): epoch for broker, epoch in epochs.items()}))]


def producer_id_change(next_producer_id: int) -> list[Operation]:
    return [Put(PRODUCER_IDS, encode(next_producer_id))]


def features_change(levels: Mapping[str, int], epoch: int) -> list[Operation]:
    return [Put(FEATURES, _encode_features(levels, epoch))]
