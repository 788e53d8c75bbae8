"""All that a broker records while it works, in one place."""

from kaspar.base.metrics import Counter, Histogram
from kaspar.base.stalls import LoopStalls
from kaspar.broker.metrics.topics import BrokerTopicMetrics
from kaspar.broker.telemetry.stats import ClientMetricsStats
from kaspar.controller.metrics import ControllerMetrics
from kaspar.network.request_metrics import RequestMetricsByApi


class BrokerMetrics:
    """Written by the event loop's thread. `rotate()` is due once in WINDOW_SECONDS; `LoopMonitor` calls it."""

    def __init__(self, *, version: str, start_time_ms: int) -> None:
        self.version = version
        self.start_time_ms = start_time_ms
        self.requests = RequestMetricsByApi()
        self.topics = BrokerTopicMetrics()
        self.controller = ControllerMetrics()
        """Of this broker's controller, while it controls."""
        self.stalls = LoopStalls()
        self.log_flush_time = Histogram()
        """Each fsync of a log, in seconds; recorded on the event loop, never by the thread that syncs."""
        self.new_active_controllers = Counter()
        """Controllers that this broker has seen begin."""
        self.malformed_requests = Counter()
        """Connections closed because their bytes were not a request."""
        self.verification_time = Histogram()
        """How long verifying partitions with the transaction coordinator took, in seconds."""
        self.client_metrics = ClientMetricsStats()
        self.verification_failures = Counter()
        """Partitions that it did not confirm."""

    def rotate(self) -> None:
        self.requests.rotate()
        self.controller.rotate()
        self.log_flush_time.rotate()
        self.verification_time.rotate()
        self.client_metrics.export_time.rotate()
