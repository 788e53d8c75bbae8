"""The metrics of a broker's traffic: topics, requests, connections."""

import functools
from collections.abc import Callable, Iterable
from typing import Final

from kaspar.base.exposition import Family, Kind, Sample, labels, summary_samples
from kaspar.broker.metrics.families import BrokerFamily, Scrape, listener_family, many, one, own, prometheus_name
from kaspar.broker.metrics.topics import TOPIC_COUNTERS
from kaspar.network.request_metrics import REQUEST_TIMES, RequestReading

# -- topics ----------------------------------------------------------------------------------------------------------


def _topic_family(counter: str, kafka_name: str, text: str) -> BrokerFamily:
    def read(scrape: Scrape) -> Iterable[Sample]:
        each, every = scrape.topics
        yield "", getattr(every, counter)
        for label_text, metrics in each:
            yield label_text, getattr(metrics, counter)

    mbean = f"kafka.server:type=BrokerTopicMetrics,name={kafka_name}"
    return many(mbean, f"{text} Without a topic label: over all topics, including deleted ones.", ("topic",), read)


TOPICS: Final[tuple[BrokerFamily, ...]] = (
    *(_topic_family(counter, kafka_name, text) for counter, (kafka_name, text) in TOPIC_COUNTERS.items()),
    one(
        "kafka.server:type=BrokerTopicMetrics,name=FetchMessageConversionsPerSec",
        "Always 0, as in Apache Kafka 4: there is only one record format.",
        lambda _: 0,
    ),
)

# -- requests --------------------------------------------------------------------------------------------------------

_REQUEST_TIME_HELP: Final = {
    "RequestQueueTimeMs": "Always 0: the event loop works on a request as soon as it has read it.",
    "LocalTimeMs": "How long the broker worked on requests, in ms.",
    "RemoteTimeMs": "How long requests waited, in ms: a fetch for records, a produce for acks=all or the disk.",
    "ThrottleTimeMs": "How long clients were throttled after requests, in ms, because of a quota.",
    "ResponseQueueTimeMs": "Always 0: waits for an earlier response on the connection are not measured separately.",
    "ResponseSendTimeMs": "Always 0: handing a response to the socket is part of the local time.",
    "TotalTimeMs": "The total time of requests, in ms.",
}


def _request_summary(kafka_name: str, text: str, of: Callable[[RequestReading], Iterable[Sample]]) -> BrokerFamily:
    mbean = f"kafka.network:type=RequestMetrics,name={kafka_name},request=*"
    name, _ = prometheus_name(mbean)
    return Family(
        name,
        Kind.SUMMARY,
        f"{text} Quantiles are of the last one to two minutes.",
        lambda scrape: (sample for request in scrape.requests for sample in of(request)),
        ("request",),
        mbean,
    )


def _time_samples(kafka_name: str, request: RequestReading) -> Iterable[Sample]:
    return summary_samples(request.times[kafka_name], labels(request=request.name), factor=1000)


REQUESTS: Final = (
    many(
        "kafka.network:type=RequestMetrics,name=RequestsPerSec,request=*,version=*",
        "Requests, by API and version.",
        ("request", "version"),
        lambda scrape: (
            (labels(request=request.name, version=version), count)
            for request in scrape.requests
            for version, count in request.versions.items()
        ),
    ),
    many(
        "kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=*,error=*",
        "Error codes in responses, by API and code, one for each partition or item that has it. NONE is success.",
        ("request", "error"),
        lambda scrape: (
            (labels(request=request.name, error=code.name), count)
            for request in scrape.requests
            for code, count in request.errors.items()
        ),
    ),
    *(
        _request_summary(kafka_name, _REQUEST_TIME_HELP[kafka_name], functools.partial(_time_samples, kafka_name))
        for kafka_name in REQUEST_TIMES
    ),
    Family(
        "kafka_network_requestmetrics_totaltimems_max",
        Kind.GAUGE,
        "The maximum total time of a request in the last one to two minutes, in ms.",
        lambda scrape: (
            (labels(request=request.name), request.times["TotalTimeMs"].maximum() * 1000) for request in scrape.requests
        ),
        ("request",),
        "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=*",
    ),
    _request_summary(
        "RequestBytes",
        "The size of requests in bytes.",
        lambda request: summary_samples(request.request_bytes, labels(request=request.name)),
    ),
)

# -- connections -----------------------------------------------------------------------------------------------------


def _idle(scrape: Scrape) -> float:
    return scrape.metrics.stalls.idle_fraction()


_IDLE_HELP: Final = (
    "The fraction of the last minute, 0 to 1, in which the event loop's thread used no CPU. That thread does all "
    "network and request work."
)
_NETWORK_IDLE: Final = "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent"
_HANDLER_IDLE: Final = "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent"

CONNECTIONS: Final[tuple[BrokerFamily, ...]] = (
    one(
        "kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount",
        "Connections closed because their client did not re-authenticate in time (KIP-368), on all listeners.",
        lambda scrape: sum(listener.authentication.expired for listener in scrape.broker.listeners()),
    ),
    listener_family(
        "kafka_server_socket_server_metrics_connection_count",
        Kind.GAUGE,
        "Open connections.",
        lambda listener: len(listener.connections),
        "connection-count",
    ),
    listener_family(
        "kafka_server_socket_server_metrics_connection_creation_total",
        Kind.COUNTER,
        "Connections accepted.",
        lambda listener: listener.accepted,
        "connection-creation-total",
    ),
    listener_family(
        "kafka_server_socket_server_metrics_connection_close_total",
        Kind.COUNTER,
        "Connections that are closed again.",
        lambda listener: listener.disconnected,
        "connection-close-total",
    ),
    listener_family(
        "kaspar_idle_connections_closed_total",
        Kind.COUNTER,
        "Connections closed because they were idle for connections.max.idle.ms.",
        lambda listener: listener.idle_closed,
    ),
    listener_family(
        "kaspar_connections_rejected_total",
        Kind.COUNTER,
        "Connections rejected because of max.connections.per.ip or the quota of their address.",
        lambda listener: listener.rejected,
    ),
    listener_family(
        "kaspar_unidentified_connections_closed_total",
        Kind.COUNTER,
        "Connections closed because their client did not authenticate or send a request in time, or because there "
        "were too many such connections.",
        lambda listener: listener.unidentified_closed,
    ),
    own(
        "kaspar_malformed_requests_total",
        Kind.COUNTER,
        "Connections closed because the bytes they sent were not a request.",
        lambda scrape: scrape.metrics.malformed_requests.value,
    ),
    one(_NETWORK_IDLE, _IDLE_HELP, _idle),
    one(_NETWORK_IDLE, _IDLE_HELP, _idle, name="kafka_network_socketserver_networkprocessoravgidle_percent"),
    one(_HANDLER_IDLE, _IDLE_HELP, _idle),
    one(_HANDLER_IDLE, _IDLE_HELP, _idle, name="kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"),
    one(
        "kafka.network:type=RequestChannel,name=RequestQueueSize",
        "Requests that have been received but not processed yet.",
        lambda scrape: scrape.broker.request_queue_size(),
    ),
    one(
        "kafka.network:type=RequestChannel,name=ResponseQueueSize",
        "Responses that are ready but waiting for an earlier one on their connection.",
        lambda scrape: scrape.broker.response_queue_size(),
    ),
    one(
        "kafka.network:type=SocketServer,name=MemoryPoolUsed",
        "Bytes held by requests in progress.",
        lambda scrape: scrape.broker.memory_pool().used_bytes,
    ),
    one(
        "kafka.network:type=SocketServer,name=MemoryPoolAvailable",
        "Bytes that requests may still use under queued.max.request.bytes; Java's largest long if it is unlimited.",
        lambda scrape: _available(scrape.broker.memory_pool().limit_bytes, scrape.broker.memory_pool().used_bytes),
    ),
)


def _available(limit_bytes: int, used_bytes: int) -> int:
    return max(0, limit_bytes - used_bytes) if limit_bytes >= 0 else 2**63 - 1
