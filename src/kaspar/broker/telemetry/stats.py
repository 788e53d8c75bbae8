"""The statistics of client telemetry (KIP-714)."""

from kaspar.base.metrics import Counter, Histogram


class ClientMetricsStats:
    """Kafka's class of that name, except that these are sums over all clients."""

    def __init__(self) -> None:
        self.unknown_subscription_requests = Counter()
        self.throttled = Counter()
        self.exports = Counter()
        self.errors = Counter()
        self.export_time = Histogram()
        """In seconds."""
