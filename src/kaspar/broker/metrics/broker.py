"""All that a broker writes down while it works, in one place."""

from kaspar.base.metrics import Counter, Histogram
from kaspar.broker.metrics.requests import RequestMetricsByApi
from kaspar.broker.metrics.topics import BrokerTopicMetrics
from kaspar.broker.stalls import LoopStalls


class BrokerMetrics:
    """Written by the event loop's thread. `rotate()` is due once in WINDOW_SECONDS; `LoopMonitor` calls it."""

    def __init__(self, *, version: str, start_time_ms: int) -> None:
        self.version = version
        self.start_time_ms = start_time_ms
        self.requests = RequestMetricsByApi()
        self.topics = BrokerTopicMetrics()
        self.stalls = LoopStalls()
        self.log_flush_time = Histogram()
        """Each fsync of a log, in seconds; recorded on the event loop, never by the thread that syncs."""
        self.malformed_requests = Counter()
        """Connections closed because their bytes were not a request."""
        self.verification_time = Histogram()
        """How long a transaction's coordinator was asked about partitions, in seconds."""
        self.verification_failures = Counter()
        """Partitions to which it did not say yes."""

    def rotate(self) -> None:
        self.requests.rotate()
        self.log_flush_time.rotate()
        self.verification_time.rotate()
