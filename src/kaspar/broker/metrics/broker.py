"""Everything that a broker records while it works, in one place."""

from kaspar.base.metrics import Counter, Histogram
from kaspar.base.stalls import LoopStalls
from kaspar.broker.metrics.topics import BrokerTopicMetrics
from kaspar.broker.telemetry.stats import ClientMetricsStats
from kaspar.controller.metrics import ControllerMetrics
from kaspar.network.request_metrics import RequestMetricsByApi


class BrokerMetrics:
    """Written by the event loop's thread. `LoopMonitor` calls `rotate()` once in WINDOW_SECONDS."""

    def __init__(self, *, version: str, start_time_ms: int) -> None:
        self.version = version
        self.start_time_ms = start_time_ms
        self.requests = RequestMetricsByApi()
        self.topics = BrokerTopicMetrics()
        self.controller = ControllerMetrics()
        """The metrics of the controller, while it runs on this broker."""
        self.stalls = LoopStalls()
        self.log_flush_time = Histogram()
        """The duration of each fsync of a log, in seconds; recorded on the event loop, not by the thread that syncs."""
        self.new_active_controllers = Counter()
        """The number of controllers that this broker has seen take over."""
        self.malformed_requests = Counter()
        """Connections closed because their bytes were not a request."""
        self.verification_time = Histogram()
        """How long verifying partitions with the transaction coordinator took, in seconds."""
        self.client_metrics = ClientMetricsStats()
        self.verification_failures = Counter()
        """Partitions that the coordinator did not confirm."""

    def rotate(self) -> None:
        self.requests.rotate()
        self.controller.rotate()
        self.log_flush_time.rotate()
        self.verification_time.rotate()
        self.client_metrics.export_time.rotate()
