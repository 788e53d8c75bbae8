"""The records of `__transaction_state`: one for each transactional id, of which the last one counts (a tombstone: the
id is forgotten).

Version 0 of the value is what Kafka writes while `transaction.version` is 0. Version 1 has room for tagged fields,
which older releases skip: the ids of KIP-890 and, where KIP-939 puts it, the second epoch of a prepared transaction.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from kaspar.coordination.record_kinds import RecordKind, RecordKinds
from kaspar.protocol.schema import Field, Message, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogKey(Message):
    transactional_id: str

    SCHEMA: ClassVar[Schema] = Schema(versions="0", flexible="", fields=(Field("transactional_id", "string", "0+"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsSchema(Message):
    topic: str
    partition_ids: tuple[int, ...]

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-1",
        flexible="1+",
        fields=(Field("topic", "string", "0+"), Field("partition_ids", "[]int32", "0+")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogValue(Message):
    producer_id: int
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: tuple[PartitionsSchema, ...] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    client_transaction_version: int = 0
    next_producer_epoch: int = -1

    SCHEMA: ClassVar[Schema] = Schema(
        versions="0-1",
        flexible="1+",
        fields=(
            Field("producer_id", "int64", "0+"),
            Field("previous_producer_id", "int64", "1+", tag=0),
            Field("next_producer_id", "int64", "1+", tag=1),
            Field("producer_epoch", "int16", "0+"),
            Field("transaction_timeout_ms", "int32", "0+"),
            Field("transaction_status", "int8", "0+"),
            Field("transaction_partitions", "[]PartitionsSchema", "0+", nullable="0+"),
            Field("transaction_last_update_timestamp_ms", "int64", "0+"),
            Field("transaction_start_timestamp_ms", "int64", "0+"),
            Field("client_transaction_version", "int16", "1+", tag=2),
            Field("next_producer_epoch", "int16", "1+", tag=3),
        ),
    )


KINDS: Final = RecordKinds([RecordKind((0,), TransactionLogKey, TransactionLogValue, value_version=1)])
