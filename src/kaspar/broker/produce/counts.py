"""How a Produce request counts in its topic's metrics, by Kafka's rules (ReplicaManager, UnifiedLog, LogValidator).

A batch that is refused before a log looks at it (an unknown partition, bytes that are not one batch, a transaction that
was not verified) counts for no topic. Only errors that indicate a fault count as failed: not those that any producer
gets while leaders change, nor batches that are too large or damaged, which have separate counters.
"""

from typing import Final

from kaspar.base.errors import ErrorCode, KasparError, Refused
from kaspar.broker.metrics import TopicMetrics
from kaspar.broker.produce.unverified import NotVerified
from kaspar.records import NotOneBatch
from kaspar.storage import PreparedBatch, RecordsRefused, WrongChecksum, WrongOffsetOrSequence

_BEFORE_THE_LOG: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}
)
_NOT_A_FAILURE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
)


def count_appended(metrics: TopicMetrics, batch: PreparedBatch, sent_bytes: int) -> None:
    """Count a batch that is in the log, or was already (a duplicate). `sent_bytes`: what was sent for the partition."""
    metrics.total_produce_requests += 1
    metrics.bytes_in += sent_bytes
    metrics.messages_in += batch.last_offset_delta + 1


def count_rebuilt(metrics: TopicMetrics, batch: PreparedBatch) -> None:
    """Count a batch that was recompressed, because its topic has another compression type."""
    metrics.produce_message_conversions += batch.last_offset_delta + 1


def count_refused(metrics: TopicMetrics, problem: KasparError, sent_bytes: int) -> None:
    code = problem.code if isinstance(problem, Refused) else ErrorCode.KAFKA_STORAGE_ERROR
    if isinstance(problem, NotOneBatch | NotVerified) or code in _BEFORE_THE_LOG:
        return
    metrics.total_produce_requests += 1
    if code not in _NOT_A_FAILURE:
        metrics.failed_produce_requests += 1
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        metrics.bytes_rejected += sent_bytes
    match problem:
        case RecordsRefused():
            metrics.no_key_compacted_topic_records += problem.keyless_count
        case WrongChecksum():
            metrics.invalid_message_crc_records += 1
        case WrongOffsetOrSequence():
            metrics.invalid_offset_or_sequence_records += 1
