"""The response to a Fetch request: which results are sent, encoded and counted."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, cast

from kaspar.base.errors import ErrorCode
from kaspar.broker.fetch.reading import MOVED, UNKNOWN_HERE, Reading
from kaspar.broker.fetch.sessions import INITIAL_EPOCH, NO_SESSION, FetchSession
from kaspar.broker.partitions import Partitions
from kaspar.network.exchange import Exchange
from kaspar.network.large_requests import Steps
from kaspar.network.outgoing import Buffers
from kaspar.protocol import fetch as codec
from kaspar.protocol.api_keys import ApiKey
from kaspar.protocol.fetch import FetchRequest, PartitionData
from kaspar.protocol.headers import set_frame_size, start_response
from kaspar.protocol.shapes import Topic

TopicResults: TypeAlias = Iterable[tuple[Topic, Sequence[PartitionData]]]

PARTITIONS_AT_ONCE: Final = 250
"""How many partitions are read in a turn of the event loop, in about two milliseconds. More take several turns."""

NOT_A_FAILURE: Final = frozenset(
    {
        *MOVED,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)


def fetch_response(
    exchange: Exchange,
    topics: Sequence[tuple[Topic, Sequence[PartitionData]]],
    *,
    error_code: int = 0,
    session_id: int = NO_SESSION,
) -> Buffers:
    _count_errors(exchange, topics, error_code)
    out = start_response(ApiKey.FETCH, exchange.version, exchange.correlation_id)
    buffers = codec.write_response(
        out,
        exchange.version,
        topics,
        throttle_time_ms=exchange.throttle_time_ms,
        error_code=error_code,
        session_id=session_id,
    )
    set_frame_size(out, sum(map(len, buffers)))
    return cast(Buffers, buffers)


def _count_errors(exchange: Exchange, topics: TopicResults, error_code: int) -> None:
    """Count errors as `error_counter` does for responses that are messages: one at top level, one per partition."""
    errors = exchange.metrics.errors
    errors[error_code] += 1
    for _, partitions in topics:
        for partition in partitions:
            errors[partition.error_code] += 1


def response_from_reading(
    reading: Reading,
    exchange: Exchange,
    request: FetchRequest,
    session: FetchSession | None,
    partitions: Partitions,
) -> Steps[Buffers]:
    """All results of a full fetch; only the changed ones of an incremental fetch. Unknown partitions come last, as in
    Kafka's responses.
    """
    by_topic: dict[Topic, list[PartitionData]] = {}
    unknown: dict[Topic, list[PartitionData]] = {}
    served = []
    for position, (wanted, result) in enumerate(zip(reading.wanted, reading.results, strict=True)):
        if position % PARTITIONS_AT_ONCE == PARTITIONS_AT_ONCE - 1:
            yield
        assert result is not None, "every partition has a result"
        size = len(result.records) if result.records is not None else 0
        _count(partitions, wanted.topic, result.error_code, size, for_consumer=request.replica_id < 0)
        if size:
            served.append(wanted.key)
        if session is not None:
            changed = wanted.note_sent(result, size)
            if not changed and request.session_epoch > INITIAL_EPOCH:
                continue
        kind = unknown if result.error_code and result.error_code in UNKNOWN_HERE else by_topic
        kind.setdefault(wanted.topic, []).append(result)
    if session is not None:
        session.served(served)
    session_id = NO_SESSION if session is None else session.session_id
    return fetch_response(exchange, (*by_topic.items(), *unknown.items()), session_id=session_id)


def _count(partitions: Partitions, topic: Topic, error_code: int, size: int, *, for_consumer: bool) -> None:
    """Count a fetch of a partition in the topic's metrics. Like Kafka, count as failed only errors that indicate a
    fault, not a client's mistake or a change of leaders.
    """
    if error_code and error_code in UNKNOWN_HERE:
        return
    hosted = partitions.find(topic)
    if hosted is None:
        return  # it was deleted in the meantime
    metrics = hosted.metrics
    metrics.total_fetch_requests += 1
    if error_code:
        metrics.failed_fetch_requests += error_code not in NOT_A_FAILURE
    elif for_consumer:
        metrics.bytes_out += size
