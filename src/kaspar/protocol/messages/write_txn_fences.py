"""WriteTxnFences (API key 10003): the request and the response. An API of Kaspar's own, in the form of Kafka's.

A transaction's coordinator fences the older epochs of a producer at partitions that another broker leads, before the
transaction counts as prepared. As WriteTxnMarkers does, it gets its response when the fences are committed.
"""

from dataclasses import dataclass
from typing import ClassVar

from kaspar.protocol.schema import Field, Message, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnFence(Message):
    topic: str
    partition_index: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", fields=(
        Field("topic", "string", "0+"),
        Field("partition_index", "int32", "0+"),
        Field("producer_id", "int64", "0+"),
        Field("producer_epoch", "int16", "0+"),
        Field("coordinator_epoch", "int32", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnFencesRequest(Message):
    fences: tuple[TxnFence, ...]

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10003, fields=(
        Field("fences", "[]TxnFence", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnFenceResult(Message):
    error_code: int = 0

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", fields=(
        Field("error_code", "int16", "0+"),
    ))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTxnFencesResponse(Message):
    throttle_time_ms: int = 0
    results: tuple[TxnFenceResult, ...]
    """One for each fence, in the order of the request."""

    SCHEMA: ClassVar[Schema] = Schema(versions="0-0", flexible="0+", api_key=10003, fields=(
        Field("throttle_time_ms", "int32", "0+"),
        Field("results", "[]TxnFenceResult", "0+"),
    ))
