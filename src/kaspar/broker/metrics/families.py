"""How a metric is declared: a family of samples, read from one scrape of the broker.

Names are those that the usual rules of Prometheus' JMX exporter give to Kafka's MBeans, because dashboards and alerts
use them: `kafka.server:type=ReplicaManager,name=LeaderCount` becomes kafka_server_replicamanager_leadercount; a name
that ends in PerSec becomes a counter that ends in _total; a histogram becomes a summary with quantiles of the last
minutes. Metrics that only Kaspar has start with kaspar_, and those that every process has with process_.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kaspar.base.exposition import Family, Kind, Sample, escape_label, labels
from kaspar.broker.metrics.broker import BrokerMetrics
from kaspar.broker.metrics.topics import TopicMetrics
from kaspar.broker.metrics.view import (
    BrokerView,
    CleanerView,
    ControllerView,
    GroupsView,
    ListenerView,
    LogView,
    PartitionView,
    QuotaUsageView,
    ReplicationView,
    TransactionsView,
)
from kaspar.network.request_metrics import RequestReading


class Scrape:
    """One reading of the metrics page. Values that several families need are read and computed once."""

    def __init__(self, metrics: BrokerMetrics, broker: BrokerView) -> None:
        self.metrics = metrics
        self.broker = broker

    @functools.cached_property
    def requests(self) -> list[RequestReading]:
        return self.metrics.requests.read()

    @functools.cached_property
    def topics(self) -> tuple[list[tuple[str, TopicMetrics]], TopicMetrics]:
        """The label text and counters of each topic, and the sums over all topics."""
        each, every = self.metrics.topics.read()
        return [(labels(topic=topic), metrics) for topic, metrics in each], every

    @functools.cached_property
    def logs(self) -> list[tuple[str, LogView]]:
        return [(_partition_label(log), log) for log in self.broker.logs()]

    @functools.cached_property
    def partitions(self) -> list[tuple[str, PartitionView]]:
        return [(_partition_label(partition), partition) for partition in self.broker.partitions()]

    @functools.cached_property
    def replication(self) -> ReplicationView:
        return self.broker.replication()

    @functools.cached_property
    def controller(self) -> ControllerView | None:
        return self.broker.controller()

    @functools.cached_property
    def groups(self) -> GroupsView:
        return self.broker.groups()

    @functools.cached_property
    def cleaner(self) -> CleanerView:
        return self.broker.cleaner()

    @functools.cached_property
    def quota_usage(self) -> Mapping[str, Sequence[QuotaUsageView]]:
        return self.broker.quota_usage()

    @functools.cached_property
    def transactions(self) -> TransactionsView:
        return self.broker.transactions()


def _partition_label(item: LogView | PartitionView) -> str:
    topic, partition = item.topic_partition
    return f'{{topic="{escape_label(topic)}",partition="{partition}"}}'


BrokerFamily = Family[Scrape]


def prometheus_name(mbean: str) -> tuple[str, Kind]:
    """The JMX exporter's usual name for an MBean written as `kafka.server:type=ReplicaManager,name=LeaderCount`."""
    domain, _, keys = mbean.partition(":")
    named = dict(key.split("=") for key in keys.split(",") if "=" in key)
    start = f"{domain.replace('.', '_')}_{named['type']}_".lower()
    if named["name"].endswith("PerSec"):
        return f"{start}{named['name'].removesuffix('PerSec').lower()}_total", Kind.COUNTER
    return start + named["name"].lower().replace("-", "_"), Kind.GAUGE


def one(mbean: str, text: str, read: Callable[[Scrape], float], *, name: str = "") -> BrokerFamily:
    """A metric with one sample, without labels."""
    usual_name, kind = prometheus_name(mbean)
    return Family(name or usual_name, kind, text, lambda scrape: [("", read(scrape))], (), mbean)


def many(
    mbean: str, text: str, label_names: tuple[str, ...], read: Callable[[Scrape], Iterable[Sample]]
) -> BrokerFamily:
    name, kind = prometheus_name(mbean)
    return Family(name, kind, text, read, label_names, mbean)


SOCKET_SERVER: Final = "kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*"


def listener_family(
    name: str, kind: Kind, text: str, read: Callable[[ListenerView], float], kafka_name: str = ""
) -> BrokerFamily:
    """A metric that Kafka has for each listener and network thread; here one thread serves all listeners."""
    return Family(
        name,
        kind,
        text,
        lambda scrape: (
            (labels(listener=listener.name, networkProcessor=0), read(listener))
            for listener in scrape.broker.listeners()
        ),
        ("listener", "networkProcessor"),
        f"{SOCKET_SERVER} {kafka_name}" if kafka_name else "",
    )


def own(name: str, kind: Kind, text: str, read: Callable[[Scrape], float]) -> BrokerFamily:
    """A metric that Kafka does not have."""
    return Family(name, kind, text, lambda scrape: [("", read(scrape))])
