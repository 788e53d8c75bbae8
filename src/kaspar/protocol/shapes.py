"""The shapes of Produce and Fetch as the broker handles them: light, and with records as positions or buffers.

They have the fields of every version under Kafka's names. A topic is identified by its name or, in newer versions, by
its id, whichever was on the wire. Records are never copied: a request has their position in the received buffer, a
response the buffers that they were read into.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from kaspar.base.ids import ZERO_UUID
from kaspar.base.primitives import Octets

Buffer: TypeAlias = Octets
Topic: TypeAlias = str | UUID

NO_HIGH_WATERMARK = 0x7FFF_FFFF_FFFF_FFFF


class NodeEndpoint(NamedTuple):
    """The endpoint of a leader, for a client that sent its request to the wrong broker."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class LeaderIdAndEpoch(NamedTuple):
    leader_id: int = -1
    leader_epoch: int = -1


# --- Produce ----------------------------------------------------------------------------------------------------------


class PartitionProduceData(NamedTuple):
    """The data to append: the bytes from `start` to `end` of the buffer; both are -1 if records are null."""

    partition_index: int
    start: int
    end: int


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[tuple[Topic, list[PartitionProduceData]]]


OneBatch: TypeAlias = tuple[int, int, str | None, int, Topic, int, int, int]
"""A whole Produce request that appends one batch to one partition, outside a transaction: its version, correlation id,
client id, acks, topic, partition index, and the start and end of the records in its buffer. Nearly every request is one
of these, so it is a plain tuple: building and unpacking a named one takes three times as long."""
ONE_VERSION: Final = 0
ONE_CLIENT_ID: Final = 2
ONE_TOPIC: Final = 4
"""The positions of these fields in a OneBatch."""


class BatchIndexAndErrorMessage(NamedTuple):
    batch_index: int
    batch_index_error_message: str | None = None


class PartitionProduceResponse(NamedTuple):
    partition_index: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[BatchIndexAndErrorMessage] = ()
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch | None = None


# --- Fetch ------------------------------------------------------------------------------------------------------------


class FetchPartition(NamedTuple):
    partition: int
    fetch_offset: int
    partition_max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    replica_directory_id: UUID = ZERO_UUID
    high_watermark: int = NO_HIGH_WATERMARK


class FetchRequest(NamedTuple):
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[Topic, list[FetchPartition]]]
    forgotten_topics_data: list[tuple[Topic, list[int]]]
    rack_id: str
    replica_id: int
    replica_epoch: int
    cluster_id: str | None


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class EpochEndOffset(NamedTuple):
    epoch: int = -1
    end_offset: int = -1


class SnapshotId(NamedTuple):
    end_offset: int = -1
    epoch: int = -1


class Unread(Protocol):
    """Records that are not in memory: the connection that sends them knows where they are."""

    def __len__(self) -> int: ...


class PartitionData(NamedTuple):
    partition_index: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: Buffer | Unread | None = b""
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    preferred_read_replica: int = -1
    diverging_epoch: EpochEndOffset | None = None
    current_leader: LeaderIdAndEpoch | None = None
    snapshot_id: SnapshotId | None = None
