"""Records of Kafka's metadata log about running nodes, or without effect, as Kafka 4.3 lays them out.

The adoption ignores them: they are declared here so that they can be shown.
"""

import uuid
from dataclasses import dataclass
from typing import ClassVar, Final

from kaspar.protocol.schema import Field, Message, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceBrokerRecord(Message):
    id: int
    epoch: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0", flexible="0+", api_key=7, fields=(Field("id", "int32", "0+"), Field("epoch", "int64", "0+"))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceBrokerRecord(Message):
    id: int
    epoch: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0", flexible="0+", api_key=8, fields=(Field("id", "int32", "0+"), Field("epoch", "int64", "0+"))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord(Message):
    broker_id: int
    broker_epoch: int
    fenced: int = 0
    in_controlled_shutdown: int = 0
    log_dirs: tuple[uuid.UUID, ...] = ()
    cordoned_log_dirs: tuple[uuid.UUID, ...] | None = None

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-3",
        flexible="0+",
        api_key=17,
        fields=(
            Field("broker_id", "int32", "0+"),
            Field("broker_epoch", "int64", "0+"),
            Field("fenced", "int8", "0+", tag=0),
            Field("in_controlled_shutdown", "int8", "1+", tag=1),
            Field("log_dirs", "[]uuid", "2+", tag=2),
            Field("cordoned_log_dirs", "[]uuid", "3+", nullable="3+", tag=3),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOpRecord(Message):
    SCHEMA: ClassVar[Schema] = Schema(versions="0", flexible="0+", api_key=20, fields=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkMigrationStateRecord(Message):
    zk_migration_state: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0", flexible="0+", api_key=21, fields=(Field("zk_migration_state", "int8", "0+"),)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerEndpoint(Message):
    name: str
    host: str
    port: int
    security_protocol: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("name", "string", "0+"),
            Field("host", "string", "0+"),
            Field("port", "uint16", "0+"),
            Field("security_protocol", "int16", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFeature(Message):
    name: str
    min_supported_version: int
    max_supported_version: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("name", "string", "0+"),
            Field("min_supported_version", "int16", "0+"),
            Field("max_supported_version", "int16", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterControllerRecord(Message):
    controller_id: int
    incarnation_id: uuid.UUID
    zk_migration_ready: bool
    end_points: tuple[ControllerEndpoint, ...]
    features: tuple[ControllerFeature, ...]

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=27,
        fields=(
            Field("controller_id", "int32", "0+"),
            Field("incarnation_id", "uuid", "0+"),
            Field("zk_migration_ready", "bool", "0+"),
            Field("end_points", "[]ControllerEndpoint", "0+"),
            Field("features", "[]ControllerFeature", "0+"),
        ),
    )


NODE_RECORDS: Final[tuple[type[Message], ...]] = (
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    ZkMigrationStateRecord,
    RegisterControllerRecord,
)
