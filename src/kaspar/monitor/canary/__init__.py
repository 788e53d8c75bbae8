"""The end-to-end monitor: does what clients do, on every broker, and measures it (the job of LinkedIn's Kafka Monitor).

    canary = Canary(CanarySettings(), {"bootstrap.servers": "localhost:9092"})
    await canary.start()
    report = canary.report()

A topic has a partition that each broker leads. One small record a second is written to each by an idempotent producer
with acks=all, and read back. What is acknowledged must be readable, once, in order and soon; the ledger keeps account.
Only the wire protocol is used, so it works with Apache Kafka, too.
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
