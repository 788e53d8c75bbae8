"""Records of Kafka's metadata log about brokers, topics, settings and features, as Kafka 4.3 lays them out."""

import uuid
from dataclasses import dataclass
from typing import ClassVar

from kaspar.protocol.schema import Field, Message, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoint(Message):
    name: str
    host: str
    port: int
    security_protocol: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-4",
        flexible="0+",
        fields=(
            Field("name", "string", "0+"),
            Field("host", "string", "0+"),
            Field("port", "uint16", "0+"),
            Field("security_protocol", "int16", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFeature(Message):
    name: str
    min_supported_version: int
    max_supported_version: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-4",
        flexible="0+",
        fields=(
            Field("name", "string", "0+"),
            Field("min_supported_version", "int16", "0+"),
            Field("max_supported_version", "int16", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord(Message):
    broker_id: int
    is_migrating_zk_broker: bool = False
    incarnation_id: uuid.UUID
    broker_epoch: int
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[uuid.UUID, ...] = ()
    cordoned_log_dirs: tuple[uuid.UUID, ...] | None = None

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-4",
        flexible="0+",
        api_key=0,
        fields=(
            Field("broker_id", "int32", "0+"),
            Field("is_migrating_zk_broker", "bool", "2+"),
            Field("incarnation_id", "uuid", "0+"),
            Field("broker_epoch", "int64", "0+"),
            Field("end_points", "[]BrokerEndpoint", "0+"),
            Field("features", "[]BrokerFeature", "0+"),
            Field("rack", "string", "0+", nullable="0+"),
            Field("fenced", "bool", "0+"),
            Field("in_controlled_shutdown", "bool", "1+"),
            Field("log_dirs", "[]uuid", "3+", tag=0),
            Field("cordoned_log_dirs", "[]uuid", "4+", nullable="4+", tag=1),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord(Message):
    broker_id: int
    broker_epoch: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=1,
        fields=(
            Field("broker_id", "int32", "0+"),
            Field("broker_epoch", "int64", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord(Message):
    name: str
    topic_id: uuid.UUID

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=2,
        fields=(
            Field("name", "string", "0+"),
            Field("topic_id", "uuid", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord(Message):
    partition_id: int = -1
    topic_id: uuid.UUID
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    leader: int = -1
    leader_recovery_state: int = 0
    leader_epoch: int = -1
    partition_epoch: int = -1
    directories: tuple[uuid.UUID, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-2",
        flexible="0+",
        api_key=3,
        fields=(
            Field("partition_id", "int32", "0+"),
            Field("topic_id", "uuid", "0+"),
            Field("replicas", "[]int32", "0+"),
            Field("isr", "[]int32", "0+"),
            Field("removing_replicas", "[]int32", "0+"),
            Field("adding_replicas", "[]int32", "0+"),
            Field("leader", "int32", "0+"),
            Field("leader_recovery_state", "int8", "0+", tag=0),
            Field("leader_epoch", "int32", "0+"),
            Field("partition_epoch", "int32", "0+"),
            Field("directories", "[]uuid", "1+"),
            Field("eligible_leader_replicas", "[]int32", "2+", nullable="2+", tag=1),
            Field("last_known_elr", "[]int32", "2+", nullable="2+", tag=2),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord(Message):
    resource_type: int
    resource_name: str
    name: str
    value: str | None

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=4,
        fields=(
            Field("resource_type", "int8", "0+"),
            Field("resource_name", "string", "0+"),
            Field("name", "string", "0+"),
            Field("value", "string", "0+", nullable="0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord(Message):
    partition_id: int = -1
    topic_id: uuid.UUID
    isr: tuple[int, ...] | None = None
    leader: int = -2
    replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    leader_recovery_state: int = -1
    directories: tuple[uuid.UUID, ...] | None = None
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-2",
        flexible="0+",
        api_key=5,
        fields=(
            Field("partition_id", "int32", "0+"),
            Field("topic_id", "uuid", "0+"),
            Field("isr", "[]int32", "0+", nullable="0+", tag=0),
            Field("leader", "int32", "0+", tag=1),
            Field("replicas", "[]int32", "0+", nullable="0+", tag=2),
            Field("removing_replicas", "[]int32", "0+", nullable="0+", tag=3),
            Field("adding_replicas", "[]int32", "0+", nullable="0+", tag=4),
            Field("leader_recovery_state", "int8", "0+", tag=5),
            Field("directories", "[]uuid", "1+", nullable="1+", tag=8),
            Field("eligible_leader_replicas", "[]int32", "2+", nullable="2+", tag=6),
            Field("last_known_elr", "[]int32", "2+", nullable="2+", tag=7),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord(Message):
    topic_id: uuid.UUID

    SCHEMA: ClassVar[Schema] = Schema(versions="0", flexible="0+", api_key=9, fields=(Field("topic_id", "uuid", "0+"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord(Message):
    name: str
    feature_level: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=12,
        fields=(
            Field("name", "string", "0+"),
            Field("feature_level", "int16", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord(Message):
    broker_id: int
    broker_epoch: int = -1
    next_producer_id: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=15,
        fields=(
            Field("broker_id", "int32", "0+"),
            Field("broker_epoch", "int64", "0+"),
            Field("next_producer_id", "int64", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransactionRecord(Message):
    name: str | None = None

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0", flexible="0+", api_key=23, fields=(Field("name", "string", "0+", nullable="0+", tag=0),)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRecord(Message):
    SCHEMA: ClassVar[Schema] = Schema(versions="0", flexible="0+", api_key=24, fields=())


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransactionRecord(Message):
    reason: str | None = None

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0", flexible="0+", api_key=25, fields=(Field("reason", "string", "0+", nullable="0+", tag=0),)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearElrRecord(Message):
    topic_name: str

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0", flexible="0+", api_key=28, fields=(Field("topic_name", "string", "0+"),)
    )
