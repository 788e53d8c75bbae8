"""Where and how the image is kept in the store, and the operations that lead from one topic's state to another.

    /cluster/id                      the cluster's id
    /controller/fence                who controls, in which epoch, and the number of its last transaction
    /controller/active               ephemeral: the seat of the controller, and the address at which brokers reach it
    /brokers/ids/<id>-<incarnation>  ephemeral: a broker that is up
    /brokers/incarnations/<id>       its version is the last incarnation of the broker
    /brokers/epochs                  the last known epoch and incarnation of each broker
    /brokers/directories/<id>        the log directories of a broker, also while it is down: id -> path
    /topics/<name>                   a topic: its id, settings, and its first PARTITIONS_PER_NODE partitions
    /topics/<name>/<n>               its further partitions, PARTITIONS_PER_NODE in each, from n = 1
    /deleted/<topic id>              a deleted topic whose logs are not removed yet
    /configs/<kind>/<resource>       settings of brokers, groups and client-metrics subscriptions
    /scram/<user>                    the SCRAM credentials of a user, by mechanism
    /tokens/<id>                     a delegation token, without its secret
    /quotas/<entity>                 the client quotas of an entity: client-id=<name>&user=<name>, or ip=<address>
    /producer_ids                    the first producer id that is not given out
    /acls/<bucket>                   ACLs by their ids; one node for each would be more than ZooKeeper can list
    /features                        the finalised level of each feature, and the epoch of the last change of one
    /generated_ids                   its version counts the broker ids that were generated
    /moving                          while metadata is copied into the store: the cluster's id; no broker may start
    /adopted                         the metadata log of Kafka that the store was made from (metadata/kraft/)

Values are JSON, so that people can read them. A topic's state is one node, as long as it is no giant, so that a
change writes little and a new controller loads quickly. Every change of a topic is one transaction: there is no
partly created topic to find.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode

from kaspar.acls.acl import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from kaspar.base.ids import BrokerId, uuid_from_text, uuid_to_text
from kaspar.metadata.image import (
    CLUSTER_DEFAULT,
    AdvertisedEndpoint,
    BrokerRegistration,
    Configs,
    DeletedTopic,
    PartitionImage,
    TopicImage,
)
from kaspar.metadata.store import Create, DamagedStore, Delete, Node, Operation, Put
from kaspar.quotas.entities import CLIENT_ID, IP, USER, Limits, QuotaEntity
from kaspar.security.delegation_tokens import DelegationToken
from kaspar.security.scram import ScramCredential

CLUSTER_ID = "/cluster/id"
FENCE = "/controller/fence"
CONTROLLER_SEAT = "/controller/active"
BROKER_IDS = "/brokers/ids"
BROKER_INCARNATIONS = "/brokers/incarnations"
BROKER_EPOCHS = "/brokers/epochs"
BROKER_DIRECTORIES = "/brokers/directories"
TOPICS = "/topics"
DELETED = "/deleted"
BROKER_CONFIGS = "/configs/brokers"
GROUP_CONFIGS = "/configs/groups"
CLIENT_METRICS_CONFIGS = "/configs/client_metrics"
SCRAM = "/scram"
TOKENS = "/tokens"
CLIENT_QUOTAS = "/quotas"
PRODUCER_IDS = "/producer_ids"
FEATURES = "/features"
ACLS = "/acls"
GENERATED_IDS = "/generated_ids"
MOVING = "/moving"
ADOPTED = "/adopted"
LATER_FOLDERS: Final = (BROKER_DIRECTORIES, BROKER_INCARNATIONS, SCRAM, TOKENS, CLIENT_QUOTAS, ACLS)
"""What stores of earlier releases do not have."""

PARTITIONS_PER_NODE = 500
Address: TypeAlias = tuple[str, int]
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
        Create(BROKER_INCARNATIONS),
        Create(BROKER_EPOCHS, encode({})),
        Create(BROKER_DIRECTORIES),
        Create(TOPICS),
        Create(DELETED),
        Create("/configs"),
        Create(BROKER_CONFIGS),
        Create(GROUP_CONFIGS),
        Create(CLIENT_METRICS_CONFIGS),
        Create(SCRAM),
        Create(TOKENS),
        Create(CLIENT_QUOTAS),
        Create(PRODUCER_IDS, encode(0)),
        Create(ACLS),
    ]


def first_features(levels: Mapping[str, int]) -> Create:
    """A store has none until a controller that knows of features opens it."""
    return Create(FEATURES, _encode_features(levels, 0))


def adopted_from(metadata_log: str) -> Create:
    return Create(ADOPTED, encode({"metadata_log": metadata_log}))


def first_configs(configs: Configs) -> Create:
    """Settings of all brokers of a new cluster."""
    return Create(resource_path(BROKER_CONFIGS, CLUSTER_DEFAULT), encode(dict(configs)))


def _encode_features(levels: Mapping[str, int], epoch: int) -> bytes:
    return encode({"epoch": epoch, "levels": dict(levels)})


def encode_fence(controller_id: BrokerId, epoch: int, transaction: int, *, passed_on_to: int | None = None) -> bytes:
    """`passed_on_to`: the broker that this controller has left its seat to, or -1 for any other."""
    fields = {"controller": controller_id, "epoch": epoch, "transaction": transaction}
    return encode(fields if passed_on_to is None else {**fields, "passed on to": passed_on_to})


def may_claim(fence: bytes, broker_id: BrokerId) -> bool:
    """Whether a vacant seat is not meant for another broker than this one."""
    fields = decode(fence)
    successor = fields.get("passed on to")
    return successor is None or (fields["controller"] != broker_id if successor < 0 else successor == broker_id)


def encode_seat(controller_id: BrokerId, address: Address | None) -> bytes:
    return encode({"controller": controller_id, "address": address})


def decode_seat(value: bytes) -> tuple[BrokerId, Address | None]:
    """Who controls, and the address at which other brokers reach it."""
    fields = decode(value)
    address = fields["address"]
    return BrokerId(fields["controller"]), None if address is None else (address[0], address[1])


def topic_path(name: str) -> str:
    return f"{TOPICS}/{name}"


def broker_path(broker_id: BrokerId, incarnation: int) -> str:
    """The name has the incarnation, so that fencing a broker never removes the registration of its next start."""
    return f"{BROKER_IDS}/{broker_id}-{incarnation}"


def registered_as(node_name: str) -> tuple[BrokerId, int]:
    """The broker and its incarnation, from the name of its node."""
    broker, _, incarnation = node_name.partition("-")
    return BrokerId(int(broker)), int(incarnation)


def incarnations_path(broker_id: BrokerId) -> str:
    return f"{BROKER_INCARNATIONS}/{broker_id}"


def last_crash(counter: Node) -> int:
    """The incarnation of a broker's last start that was not clean, by the node that counts its incarnations. Stores of
    earlier releases do not tell: there it may have been the last one.
    """
    return int(counter.value) if counter.value else counter.version


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


def partition_changes(old: TopicImage, new: TopicImage) -> list[tuple[int, Operation]]:
    """The operations that change the partitions of a topic, each with how many of them, from the first on, are as
    wanted once it and those before it are carried out.
    """
    return [
        ((number + 1) * PARTITIONS_PER_NODE, Put(_node_path(new.name, number), _encode_node(new, number)))
        for number in range(_nodes_of(new))
        if not _same_node(old, new, number)
    ]


def deletion(topic: TopicImage) -> list[Operation]:
    """Moves a topic to the deleted ones, in one step."""
    return [*topic_change(topic, None), deleted_node(DeletedTopic(topic.name, topic.topic_id, topic.brokers))]


def deleted_node(topic: DeletedTopic) -> Create:
    return Create(deleted_path(topic), _encode_deleted(topic))


def _encode_deleted(topic: DeletedTopic) -> bytes:
    return encode({"name": topic.name, "brokers": topic.brokers})


def deleted_path(topic: DeletedTopic) -> str:
    return f"{DELETED}/{uuid_to_text(topic.topic_id)}"


def decode_deleted(node_name: str, value: bytes) -> DeletedTopic:
    fields = decode(value)
    return DeletedTopic(fields["name"], uuid_from_text(node_name), _ids(fields["brokers"]))


def partition_count(header: bytes) -> int:
    """How many partitions a topic has, according to its first node."""
    return int(decode(header)["count"])


def node_count(header: bytes) -> int:
    """How many nodes a topic has, according to its first."""
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
    """Short on purpose: a topic may have ten thousand of them. What is empty at the end is left out, as is what an
    earlier release did not know.
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


def _ids(values: Iterable[int]) -> tuple[BrokerId, ...]:
    return cast(tuple[BrokerId, ...], tuple(values))


def encode_registration(registration: BrokerRegistration) -> bytes:
    """Without the incarnation, which the node's name has, and the epoch, which is the number of the transaction that
    writes it.
    """
    return encode(
        {
            "endpoints": [
                [endpoint.listener, endpoint.host, endpoint.port, endpoint.security_protocol]
                for endpoint in registration.endpoints
            ],
            "rack": registration.rack,
            "clean_start": registration.clean_start,
            "last_crash": registration.last_crash,
            "log_dirs": [uuid_to_text(directory) for directory in registration.log_dirs],
        }
    )


def decode_registration(broker_id: BrokerId, incarnation: int, epoch: int, value: bytes) -> BrokerRegistration:
    fields = decode(value)
    endpoints = tuple(AdvertisedEndpoint(*endpoint) for endpoint in fields["endpoints"])
    log_dirs = tuple(uuid_from_text(directory) for directory in fields["log_dirs"])
    clean_start, last_crash = fields["clean_start"], fields.get("last_crash", incarnation)
    return BrokerRegistration(
        broker_id, epoch, endpoints, fields["rack"], clean_start, log_dirs, incarnation, last_crash
    )


def registration_change(registration: BrokerRegistration) -> Operation:
    return Put(broker_path(registration.broker_id, registration.incarnation), encode_registration(registration))


def fencing(registration: BrokerRegistration) -> Operation:
    """Ends the registration of a broker, and of no later incarnation of it."""
    return Delete(broker_path(registration.broker_id, registration.incarnation))


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


def acl_bucket(acl_id: str) -> str:
    """Which of the nodes has it. Ids are random, and begin with two hexadecimal digits."""
    return acl_id[:2]


def acls_change(bucket: str, old: Mapping[str, Acl], new: Mapping[str, Acl]) -> list[Operation]:
    """The operations that turn one stored state of a bucket into another. One that is empty needs no node."""
    path = f"{ACLS}/{bucket}"
    if not new:
        return [Delete(path)] if old else []
    value = encode({acl_id: _acl_row(acl) for acl_id, acl in new.items()})
    return [Put(path, value) if old else Create(path, value)]


def decode_acls(value: bytes) -> dict[str, Acl]:
    return {acl_id: _acl(row) for acl_id, row in decode(value).items()}


def _acl_row(acl: Acl) -> list[str]:
    return [
        acl.resource_type.name,
        acl.resource_name,
        acl.pattern_type.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission_type.name,
    ]


def _acl(row: list[str]) -> Acl:
    resource_type, resource_name, pattern_type, principal, host, operation, permission_type = row
    return Acl(
        ResourceType[resource_type],
        resource_name,
        PatternType[pattern_type],
        principal,
        host,
        AclOperation[operation],
        AclPermissionType[permission_type],
    )


def scram_change(user: str, old: Mapping[str, ScramCredential], new: Mapping[str, ScramCredential]) -> list[Operation]:
    """A user without credentials has no node."""
    path = resource_path(SCRAM, user)
    if not new:
        return [Delete(path)] if old else []
    value = encode({mechanism: _encode_credential(credential) for mechanism, credential in new.items()})
    return [Put(path, value) if old else Create(path, value)]


def _encode_credential(credential: ScramCredential) -> dict[str, object]:
    return {
        "salt": base64.b64encode(credential.salt).decode(),
        "stored_key": base64.b64encode(credential.stored_key).decode(),
        "server_key": base64.b64encode(credential.server_key).decode(),
        "iterations": credential.iterations,
    }


def decode_scram(value: bytes) -> dict[str, ScramCredential]:
    return {
        mechanism: ScramCredential(
            base64.b64decode(fields["salt"]),
            base64.b64decode(fields["stored_key"]),
            base64.b64decode(fields["server_key"]),
            fields["iterations"],
        )
        for mechanism, fields in decode(value).items()
    }


def token_change(token: DelegationToken, *, is_new: bool) -> list[Operation]:
    value = encode(
        {
            "owner": token.owner,
            "requester": token.requester,
            "renewers": token.renewers,
            "times": [token.issue_ms, token.expiry_ms, token.max_ms],
        }
    )
    path = f"{TOKENS}/{token.token_id}"
    return [Create(path, value) if is_new else Put(path, value)]


def token_removal(token_id: str) -> list[Operation]:
    return [Delete(f"{TOKENS}/{token_id}")]


def decode_token(token_id: str, value: bytes) -> DelegationToken:
    fields = decode(value)
    return DelegationToken(
        token_id,
        tuple(fields["owner"]),
        tuple(fields["requester"]),
        tuple(tuple(each) for each in fields["renewers"]),
        *fields["times"],
    )


def quota_path(entity: QuotaEntity) -> str:
    """The names of users and clients may hold anything; the default's is empty."""
    return f"{CLIENT_QUOTAS}/{urlencode([(kind, name or '') for kind, name in entity.parts()])}"


def quota_entity(node_name: str) -> QuotaEntity:
    names = dict(parse_qsl(node_name, keep_blank_values=True, strict_parsing=True))
    return QuotaEntity(names.get(USER), names.get(CLIENT_ID), names.get(IP))


def quota_change(entity: QuotaEntity, old: Limits | None, new: Limits) -> list[Operation]:
    """An entity without quotas needs no node."""
    path = quota_path(entity)
    if not old:
        return [Create(path, encode(dict(new)))] if new else []
    if not new:
        return [Delete(path)]
    return [Put(path, encode(dict(new)))] if dict(old) != dict(new) else []


def deleted_change(old: DeletedTopic, new: DeletedTopic | None) -> list[Operation]:
    if new is None:
        return [Delete(deleted_path(old))]
    return [Put(deleted_path(new), _encode_deleted(new))]


def epochs_change(epochs: Mapping[BrokerId, int], incarnations: Mapping[BrokerId, int]) -> list[Operation]:
    value = {
        str(broker): [epoch, incarnations[broker]] if broker in incarnations else epoch
        for broker, epoch in epochs.items()
    }
    return [Put(BROKER_EPOCHS, encode(value))]


def decode_epochs(value: bytes) -> tuple[dict[BrokerId, int], dict[BrokerId, int]]:
    """The last known epoch and incarnation of each broker. Earlier releases stored the epoch alone."""
    epochs: dict[BrokerId, int] = {}
    incarnations: dict[BrokerId, int] = {}
    for name, known in decode(value).items():
        broker = BrokerId(int(name))
        if isinstance(known, int):
            epochs[broker] = known
        else:
            epochs[broker], incarnations[broker] = known
    return epochs, incarnations


def producer_id_change(next_producer_id: int) -> list[Operation]:
    return [Put(PRODUCER_IDS, encode(next_producer_id))]


def features_change(levels: Mapping[str, int], epoch: int) -> list[Operation]:
    return [Put(FEATURES, _encode_features(levels, epoch))]
