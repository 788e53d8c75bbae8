"""Records of Kafka's metadata log about ACLs, credentials, tokens and quotas, as Kafka 4.3 lays them out."""

import uuid
from dataclasses import dataclass
from typing import ClassVar

from kaspar.protocol.schema import Field, Message, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokenRecord(Message):
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=10,
        fields=(
            Field("owner", "string", "0+"),
            Field("requester", "string", "0+"),
            Field("renewers", "[]string", "0+"),
            Field("issue_timestamp", "int64", "0+"),
            Field("max_timestamp", "int64", "0+"),
            Field("expiration_timestamp", "int64", "0+"),
            Field("token_id", "string", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UserScramCredentialRecord(Message):
    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=11,
        fields=(
            Field("name", "string", "0+"),
            Field("mechanism", "int8", "0+"),
            Field("salt", "bytes", "0+"),
            Field("stored_key", "bytes", "0+"),
            Field("server_key", "bytes", "0+"),
            Field("iterations", "int32", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityData(Message):
    entity_type: str
    entity_name: str | None

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        fields=(
            Field("entity_type", "string", "0+"),
            Field("entity_name", "string", "0+", nullable="0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord(Message):
    entity: tuple[EntityData, ...]
    key: str
    value: float
    remove: bool

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=14,
        fields=(
            Field("entity", "[]EntityData", "0+"),
            Field("key", "string", "0+"),
            Field("value", "float64", "0+"),
            Field("remove", "bool", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntryRecord(Message):
    id: uuid.UUID
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=18,
        fields=(
            Field("id", "uuid", "0+"),
            Field("resource_type", "int8", "0+"),
            Field("resource_name", "string", "0+"),
            Field("pattern_type", "int8", "0+"),
            Field("principal", "string", "0+"),
            Field("host", "string", "0+"),
            Field("operation", "int8", "0+"),
            Field("permission_type", "int8", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAccessControlEntryRecord(Message):
    id: uuid.UUID

    SCHEMA: ClassVar[Schema] = Schema(versions="0", flexible="0+", api_key=19, fields=(Field("id", "uuid", "0+"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveUserScramCredentialRecord(Message):
    name: str
    mechanism: int

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0",
        flexible="0+",
        api_key=22,
        fields=(
            Field("name", "string", "0+"),
            Field("mechanism", "int8", "0+"),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDelegationTokenRecord(Message):
    token_id: str

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0", flexible="0+", api_key=26, fields=(Field("token_id", "string", "0+"),)
    )
