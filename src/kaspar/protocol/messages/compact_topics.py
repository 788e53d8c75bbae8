"""CompactTopics (API key 10000): the request and the response. An API of Kaspar's own, in the form of Kafka's.

It is asked again and again until all partitions are done, and nothing has to be remembered between two requests. The
first gives no target: the broker begins, and says up to which offset each partition will be compacted. The next ones
give that target back, so that also a broker that was restarted meanwhile goes on towards it.
"""

from dataclasses import dataclass
from typing import ClassVar

from kaspar.protocol.schema import Field, Message, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTopicsPartition(Message):
    partition_index: int
    target_offset: int = -1
    """-1: as far as can be now."""

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", fields=(
        Field("partition_index", "int32", "0+"),
        Field("target_offset", "int64", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTopicsTopic(Message):
    name: str
    partitions: tuple[CompactTopicsPartition, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", fields=(
        Field("name", "string", "0+"),
        Field("partitions", "[]CompactTopicsPartition", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTopicsRequest(Message):
    topics: tuple[CompactTopicsTopic, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10000, fields=(
        Field("topics", "[]CompactTopicsTopic", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTopicsPartitionResult(Message):
    partition_index: int
    error_code: int = 0
    error_message: str | None = None
    target_offset: int = -1
    first_dirty_offset: int = -1
    """Everything before it is compacted: the partition is done when this is the target."""
    log_end_offset: int = -1
    size_bytes: int = 0
    records_removed: int = 0
    """Of this partition, by the cleaner, since the broker started."""
    cleaned_percent: int = -1
    """How far the cleaning is that is under way; -1: there is none."""

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", fields=(
        Field("partition_index", "int32", "0+"),
        Field("error_code", "int16", "0+"),
        Field("error_message", "string", "0+", nullable="0+"),
        Field("target_offset", "int64", "0+"),
        Field("first_dirty_offset", "int64", "0+"),
        Field("log_end_offset", "int64", "0+"),
        Field("size_bytes", "int64", "0+"),
        Field("records_removed", "int64", "0+"),
        Field("cleaned_percent", "int8", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTopicsTopicResult(Message):
    name: str
    partitions: tuple[CompactTopicsPartitionResult, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", fields=(
        Field("name", "string", "0+"),
        Field("partitions", "[]CompactTopicsPartitionResult", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTopicsResponse(Message):
    throttle_time_ms: int = 0
    topics: tuple[CompactTopicsTopicResult, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10000, fields=(
        Field("throttle_time_ms", "int32", "0+"),
        Field("topics", "[]CompactTopicsTopicResult", "0+"),
    ))
