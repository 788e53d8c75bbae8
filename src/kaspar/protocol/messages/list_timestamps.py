"""ListTimestamps (API key 10005): the request and the response. An API of Kaspar's own, in the form of Kafka's.

The reverse of ListOffsets: when the records at these offsets were written. The broker looks at headers of batches only,
so the time is that of the batch that holds the record.
"""

from dataclasses import dataclass
from typing import ClassVar

from kaspar.protocol.schema import Field, Message, Schema

NO_RECORD = -1
"""In place of a timestamp: no record at or after the offset can be read, markers of transactions aside."""
NOT_LOOKED_UP = -2
"""In place of a timestamp: it would have taken too long to find one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTimestampsPartition(Message):
    partition_index: int
    offsets: tuple[int, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", fields=(
        Field("partition_index", "int32", "0+"),
        Field("offsets", "[]int64", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTimestampsTopic(Message):
    name: str
    partitions: tuple[ListTimestampsPartition, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", fields=(
        Field("name", "string", "0+"),
        Field("partitions", "[]ListTimestampsPartition", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTimestampsRequest(Message):
    topics: tuple[ListTimestampsTopic, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10005, fields=(
        Field("topics", "[]ListTimestampsTopic", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTimestampsPartitionResult(Message):
    partition_index: int
    error_code: int = 0
    timestamps: tuple[int, ...] = ()
    """In the order of the offsets: of the first record at or after each; or NO_RECORD, or NOT_LOOKED_UP."""

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", fields=(
        Field("partition_index", "int32", "0+"),
        Field("error_code", "int16", "0+"),
        Field("timestamps", "[]int64", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTimestampsTopicResult(Message):
    name: str
    partitions: tuple[ListTimestampsPartitionResult, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", fields=(
        Field("name", "string", "0+"),
        Field("partitions", "[]ListTimestampsPartitionResult", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTimestampsResponse(Message):
    throttle_time_ms: int = 0
    topics: tuple[ListTimestampsTopicResult, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10005, fields=(
        Field("throttle_time_ms", "int32", "0+"),
        Field("topics", "[]ListTimestampsTopicResult", "0+"),
    ))
