"""The end-to-end monitor: produces to and consumes from every broker and measures both, like LinkedIn's Kafka Monitor.

    canary = Canary(CanarySettings(), {"bootstrap.servers": "localhost:9092"})
    await canary.start()
    report = canary.report()

Its topic has a partition for each broker to lead. An idempotent producer with acks=all writes one small record a second
to each, which is then read back. The ledger checks that acknowledged records can be read exactly once, in order and
soon. Only the wire protocol is used, so the canary also works with Apache Kafka.
"""

from kaspar.monitor.canary.canary import Canary
from kaspar.monitor.canary.report import CanaryReport, CanaryStatus, Counts, Latencies, Measured, PartitionReport
from kaspar.monitor.canary.settings import CanarySettings

__all__ = [
    "Canary",
    "CanaryReport",
    "CanarySettings",
    "CanaryStatus",
    "Counts",
    "Latencies",
    "Measured",
    "PartitionReport",
]
