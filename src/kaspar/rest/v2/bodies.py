"""The JSON of version 2, request and response bodies alike."""

from typing import Annotated, Any, Final

import msgspec

from kaspar.rest.formats.plain import NULL

_Partition = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
_Offset = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    pass


# gc=False: a request has thousands of records, which cannot be part of a cycle, so the garbage collector need not scan
# them. While it scans, no request is served.

# --- Producing --------------------------------------------------------------------------------------------------------


class BinaryRecord(_Body, gc=False):
    key: bytes | None = None
    value: bytes | None = None
    partition: int | None = None


class BinaryProduce(_Body):
    """A request whose records are all valid base64, decoded in one pass."""

    records: list[BinaryRecord] | None = None
    key_schema: str | None = None
    key_schema_id: int | None = None
    value_schema: str | None = None
    value_schema_id: int | None = None


class RawRecord(_Body, gc=False):
    key: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)  # a plain default would have to be described as JSON
    value: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)
    partition: int | None = None


class RawProduce(_Body):
    """A request of any format: keys and values stay undecoded."""

    records: list[RawRecord] | None = None
    key_schema: str | None = None
    key_schema_id: int | None = None
    value_schema: str | None = None
    value_schema_id: int | None = None


class SplitProduce(_Body):
    """A request with very many records, which are decoded in groups."""

    records: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)
    key_schema: str | None = None
    key_schema_id: int | None = None
    value_schema: str | None = None
    value_schema_id: int | None = None


class PartitionOffset(msgspec.Struct, gc=False):
    partition: int | None
    offset: int | None
    error_code: int | None = None
    error: str | None = None


class ProduceResponse(msgspec.Struct):
    offsets: list[PartitionOffset]
    key_schema_id: int | None = None
    value_schema_id: int | None = None


# --- Consuming --------------------------------------------------------------------------------------------------------


class CreateInstance(_Body):
    id: str | None = None
    name: str | None = None
    format: str | None = None
    auto_offset_reset: str | None = msgspec.field(default=None, name="auto.offset.reset")
    auto_commit_enable: str | bool | None = msgspec.field(default=None, name="auto.commit.enable")
    fetch_min_bytes: int | None = msgspec.field(default=None, name="fetch.min.bytes")
    request_timeout_ms: int | None = msgspec.field(default=None, name="consumer.request.timeout.ms")
    former_fetch_min_bytes: int | None = msgspec.field(default=None, name="responseMinBytes")
    former_request_timeout_ms: int | None = msgspec.field(default=None, name="requestWaitMs")


class InstanceCreated(msgspec.Struct):
    instance_id: str
    base_uri: str


class Subscription(_Body):
    topics: list[str] | None = None
    topic_pattern: str | None = None


class Subscribed(msgspec.Struct):
    topics: list[str]


class Partition(_Body):
    topic: str
    partition: _Partition


class Partitions(_Body):
    partitions: list[Partition] | None = None


class OffsetOfPartition(_Body):
    topic: str
    partition: _Partition
    offset: _Offset
    metadata: str | None = None


class Offsets(_Body):
    offsets: list[OffsetOfPartition] | None = None


class ConsumedRecord(msgspec.Struct, gc=False):
    topic: str
    key: msgspec.Raw
    value: msgspec.Raw
    partition: int
    offset: int


# --- Topics -----------------------------------------------------------------------------------------------------------


class Replica(msgspec.Struct):
    broker: int
    leader: bool
    in_sync: bool


class TopicPartition(msgspec.Struct):
    partition: int
    leader: int
    replicas: list[Replica]


class FirstAndNext(msgspec.Struct):
    beginning_offset: int
    end_offset: int


class Brokers(msgspec.Struct):
    brokers: list[int]


class Topic(msgspec.Struct):
    name: str
    configs: dict[str, str | None]
    partitions: list[TopicPartition]


class Error(msgspec.Struct):
    error_code: int
    message: str


def decoder(body: type[Any]) -> msgspec.json.Decoder[Any]:
    """A decoder that converts strings to numbers where numbers are required, as Confluent's proxy does."""
    return msgspec.json.Decoder(body, strict=False)


BINARY_PRODUCE: Final[msgspec.json.Decoder[BinaryProduce]] = decoder(BinaryProduce)
RAW_PRODUCE: Final[msgspec.json.Decoder[RawProduce]] = decoder(RawProduce)
SPLIT_PRODUCE: Final[msgspec.json.Decoder[SplitProduce]] = decoder(SplitProduce)
CREATE_INSTANCE: Final[msgspec.json.Decoder[CreateInstance]] = decoder(CreateInstance)
SUBSCRIPTION: Final[msgspec.json.Decoder[Subscription]] = decoder(Subscription)
PARTITIONS: Final[msgspec.json.Decoder[Partitions]] = decoder(Partitions)
OFFSETS: Final[msgspec.json.Decoder[Offsets]] = decoder(Offsets)
