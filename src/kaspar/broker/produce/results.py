"""The results of a Produce request by partition, and its response."""

from typing import Final, TypeAlias

from kaspar.base.errors import ErrorCode, KasparError, Refused, StorageFailure
from kaspar.base.ids import NO_OFFSET
from kaspar.base.named_tuples import new_tuple
from kaspar.broker.partitions import HostedTopic, Partitions, current_leader
from kaspar.broker.produce.counts import count_refused
from kaspar.broker.produce.unverified import NotVerified
from kaspar.broker.services import Failures
from kaspar.metadata.images import ImageSource
from kaspar.network.exchange import Exchange
from kaspar.network.outgoing import Buffers
from kaspar.network.request_metrics import RequestMetrics
from kaspar.protocol import produce as codec
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.headers import set_frame_size, start_response
from kaspar.protocol.produce import BatchIndexAndErrorMessage, PartitionProduceResponse
from kaspar.protocol.produce_template import SAMPLE, ProduceResponseTemplate
from kaspar.protocol.shapes import Topic
from kaspar.records import NotOneBatch
from kaspar.storage import Appended, RecordsRefused

PartitionResults: TypeAlias = list[PartitionProduceResponse]
TopicResults: TypeAlias = list[tuple[Topic, PartitionResults]]

REFUSED_BY_THE_LOG: Final = frozenset(
    {
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)
"""Errors whose results have the log start offset, as in Kafka."""


def success(index: int, appended: Appended) -> PartitionProduceResponse:
    base_offset, _, log_append_time_ms, log_start_offset, _ = appended
    return new_tuple(
        PartitionProduceResponse, (index, 0, base_offset, log_append_time_ms, log_start_offset, (), None, None)
    )


def produce_response(exchange: Exchange, results: TopicResults) -> Buffers:
    count_errors(exchange.metrics, results)
    return (encode(exchange.version, exchange.correlation_id, results, exchange.throttle_time_ms),)


def encode(version: int, correlation_id: int, results: TopicResults, throttle_time_ms: int = 0) -> bytearray:
    out = start_response(ApiKey.PRODUCE, version, correlation_id)
    codec.write_response(out, version, results, throttle_time_ms)
    set_frame_size(out)
    return out


def template_for(version: int, topic: Topic) -> ProduceResponseTemplate:
    return ProduceResponseTemplate(version, bytes(encode(version, 0, [(topic, [SAMPLE])])))


def count_errors(metrics: RequestMetrics, results: TopicResults) -> None:
    """Count errors as `error_counter` does for responses that are messages. A failure with acks=0 counts too."""
    errors = metrics.errors
    for _, partitions in results:
        for result in partitions:
            errors[result.error_code] += 1


class Refusals:
    """Creates the results of batches that were not appended."""

    def __init__(self, partitions: Partitions, images: ImageSource, failures: Failures) -> None:
        self._partitions = partitions
        self._images = images
        self._failures = failures

    def refused(self, topic: Topic, index: int, problem: KasparError, sent_bytes: int) -> PartitionProduceResponse:
        """The result of a partition that refused the `sent_bytes` sent to it, which are counted for its topic."""
        hosted = self._partitions.find(topic)
        if hosted is not None:
            count_refused(hosted.metrics, problem, sent_bytes)
        if isinstance(problem, StorageFailure):
            self._failures.log_directory_failed(problem)
            return PartitionProduceResponse(index, ErrorCode.KAFKA_STORAGE_ERROR, error_message=str(problem))
        if not isinstance(problem, Refused):
            raise problem
        record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()
        if isinstance(problem, RecordsRefused):
            record_errors = tuple(BatchIndexAndErrorMessage(*error) for error in problem.record_errors)
        leader = None
        if problem.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            leader = current_leader(self._images.current, topic, index)
        return PartitionProduceResponse(
            index,
            problem.code,
            log_start_offset=_log_start_offset(problem, hosted, index),
            record_errors=record_errors,
            error_message=problem.message,
            current_leader=leader,
        )


def _log_start_offset(refusal: Refused, hosted: HostedTopic | None, index: int) -> int:
    """The log start offset, if the error came from the log."""
    if refusal.code not in REFUSED_BY_THE_LOG or isinstance(refusal, NotOneBatch | NotVerified):
        return NO_OFFSET
    partition = hosted.partitions.get(index) if hosted is not None else None
    return NO_OFFSET if partition is None else partition.log.log_start_offset
