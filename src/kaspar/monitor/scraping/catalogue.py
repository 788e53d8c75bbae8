"""The series read from a broker's metrics page, by the names that jmx_exporter's rules give Kafka's metrics."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kaspar.monitor.scraping.exposition import Sample


class Joined(Enum):
    """How the values of brokers are combined to that of the cluster."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"

    def of(self, values: Iterable[float]) -> float:
        functions: Mapping[Joined, Callable[[Iterable[float]], float]] = {
            Joined.SUM: sum,
            Joined.MAX: max,
            Joined.MIN: min,
        }
        return functions[self](values)


@dataclass(frozen=True, slots=True)
class Measure:
    """One series, and the samples of a family that belong to it."""

    name: str
    family: str
    labels: Mapping[str, str] | None = None
    """A sample must have exactly these labels. None sums all samples of the family."""
    is_counter: bool = False
    joined: Joined = Joined.SUM

    def accepts(self, sample: Sample) -> bool:
        return self.labels is None or sample.labels == self.labels


def _counter(name: str, family: str, *, all_labels: bool = False) -> Measure:
    return Measure(name, family, None if all_labels else {}, is_counter=True)


def _p99(name: str, request: str) -> Measure:
    labels = {"request": request, "quantile": "0.99"}
    return Measure(name, "kafka_network_requestmetrics_totaltimems", labels, joined=Joined.MAX)


MEASURES: Final = (
    _counter("messages_in", "kafka_server_brokertopicmetrics_messagesin_total"),
    _counter("bytes_in", "kafka_server_brokertopicmetrics_bytesin_total"),
    _counter("bytes_out", "kafka_server_brokertopicmetrics_bytesout_total"),
    _counter("replication_bytes_in", "kafka_server_brokertopicmetrics_replicationbytesin_total"),
    _counter("requests", "kafka_network_requestmetrics_requests_total", all_labels=True),
    _counter("failed_produce", "kafka_server_brokertopicmetrics_failedproducerequests_total"),
    _counter("failed_fetch", "kafka_server_brokertopicmetrics_failedfetchrequests_total"),
    _counter("isr_shrinks", "kafka_server_replicamanager_isrshrinks_total"),
    _counter("cpu", "process_cpu_seconds_total"),
    _p99("produce_p99_ms", "Produce"),
    _p99("fetch_p99_ms", "FetchConsumer"),
    Measure("under_replicated", "kafka_server_replicamanager_underreplicatedpartitions", {}),
    Measure("offline_partitions", "kafka_controller_kafkacontroller_offlinepartitionscount", {}),
    Measure("connections", "kafka_server_socket_server_metrics_connection_count"),
    Measure("idle_fraction", "kafka_network_socketserver_networkprocessoravgidle_percent", {}, joined=Joined.MIN),
    Measure("memory_bytes", "process_resident_memory_bytes", {}),
)
"""Counters become rates: `messages_in` is in records per second, `cpu` in cores."""

FAMILIES: Final = tuple(dict.fromkeys(each.family for each in MEASURES))
_BY_FAMILY: Final[Mapping[str, tuple[Measure, ...]]] = {
    family: tuple(each for each in MEASURES if each.family == family) for family in FAMILIES
}


def values_of(samples: Iterable[Sample]) -> dict[str, float]:
    """The value of each measure on the page; counters are not converted."""
    values: dict[str, float] = {}
    for sample in samples:
        for measure in _BY_FAMILY.get(sample.name, ()):
            if measure.accepts(sample) and sample.value == sample.value:  # NaN means that nothing was measured
                values[measure.name] = values.get(measure.name, 0.0) + sample.value
    return values
