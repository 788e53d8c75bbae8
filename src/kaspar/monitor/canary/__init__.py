"""The end-to-end monitor: produces to and consumes from every broker and measures it, like LinkedIn's Kafka Monitor.

    canary = Canary(CanarySettings(), {"bootstrap.servers": "localhost:9092"})
    await canary.start()
    report = canary.report()

A topic has a partition that each broker leads. One small record a second is written to each by an idempotent producer
with acks=all, and read back. Acknowledged records must be readable exactly once, in order and soon; the ledger checks
that. Only the wire protocol is used, so it also works with Apache Kafka.
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
