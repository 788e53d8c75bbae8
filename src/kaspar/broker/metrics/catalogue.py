"""All metrics of a broker in one list, from which the metrics page and the reference page are written."""

from collections.abc import Collection, Iterator
from typing import Final

from kaspar.base.exposition import QUANTILE_LABELS, Kind, render, select
from kaspar.broker.metrics.authentication import AUTHENTICATION
from kaspar.broker.metrics.broker import BrokerMetrics
from kaspar.broker.metrics.cleaner import CLEANER
from kaspar.broker.metrics.coordinators import GROUPS, TRANSACTIONS
from kaspar.broker.metrics.families import BrokerFamily, Scrape
from kaspar.broker.metrics.machine import MACHINE
from kaspar.broker.metrics.quotas import QUOTAS
from kaspar.broker.metrics.replicas import REPLICAS, REPLICATION
from kaspar.broker.metrics.state_metrics import BROKER, CONTROLLER, LOGS, WAITING
from kaspar.broker.metrics.telemetry import TELEMETRY, pushed_page
from kaspar.broker.metrics.traffic import CONNECTIONS, REQUESTS, TOPICS
from kaspar.broker.metrics.view import BrokerView

SECTIONS: Final[dict[str, tuple[BrokerFamily, ...]]] = {
    "Topics": TOPICS,
    "Requests": REQUESTS,
    "Connections and threads": CONNECTIONS,
    "Authentication": AUTHENTICATION,
    "Client quotas": QUOTAS,
    "Client telemetry": TELEMETRY,
    "Logs": LOGS,
    "The log cleaner": CLEANER,
    "Replicas": REPLICAS,
    "Replication": REPLICATION,
    "Groups and committed offsets": GROUPS,
    "Transactions": TRANSACTIONS,
    "Controller": CONTROLLER,
    "Fetch sessions and waiting requests": WAITING,
    "Broker and process": BROKER,
    "The machine": MACHINE,
}
FAMILIES: Final = tuple(family for section in SECTIONS.values() for family in section)


def metrics_page(metrics: BrokerMetrics, broker: BrokerView, names: Collection[str] = ()) -> Iterator[bytes]:
    """The page for Prometheus, in chunks of at most a millisecond or two of work. For any thread.

    With names, only those families are computed, so that a console can read a few every second from a broker with
    thousands of partitions.
    """
    yield from render(select(FAMILIES, names), Scrape(metrics, broker))
    yield from pushed_page(broker.telemetry(), names)


def reference_page() -> str:
    """docs/reference/metrics.md, generated from the declarations."""
    lines = [
        "# Metrics",
        "",
        "Generated from the declarations in `src/kaspar/broker/metrics/`: change them, then run `make generate`.",
        "",
        "A broker shows these at `/metrics`, in Prometheus' text format. The names are the ones that Prometheus' JMX",
        "exporter, with its usual rules for Kafka, gives to Apache Kafka's own metrics, so that dashboards and alerts",
        "made for those work unchanged. What starts with `kaspar_` is Kaspar's own. The last column names the MBean",
        "that has the same number in Apache Kafka.",
        "",
        "A summary has the quantiles "
        + ", ".join(QUANTILE_LABELS)
        + " of the last one to two minutes, at most 3 % off; 0 when",
        "nothing happened in that time. Its `_count` and `_sum` are those since the start.",
        "",
        "Under the same requests, the counters of topics and requests move as Apache Kafka's do, with two exceptions:",
        "a Kafka broker that is its own controller counts a request that it forwards to itself (CreateTopics, say)",
        "twice, and an ApiVersions request of a version below 0 or above 63 is counted here as one of version 0.",
        'A metric that nothing moves on one broker says "Always 0" and why.',
        "",
        "`/metrics?name[]=...&name[]=...` shows only the families of those names, and computes no others.",
        "",
        "What clients push (KIP-714) is there too, under names that start with `kafka_client_`: see",
        "[client telemetry](../telemetry.md).",
    ]
    for title, families in SECTIONS.items():
        lines += [
            "",
            f"## {title}",
            "",
            "| metric | kind | labels | description | in Apache Kafka |",
            "|---|---|---|---|---|",
        ]
        lines += [_reference_row(family) for family in families]
    return "\n".join(lines) + "\n"


def _reference_row(family: BrokerFamily) -> str:
    label_names = [*family.label_names, *(["quantile"] if family.kind is Kind.SUMMARY else [])]
    named = ", ".join(f"`{name}`" for name in label_names)
    kafka = f"`{family.kafka_name}`" if family.kafka_name else ""
    return f"| `{family.name}` | {family.kind.value} | {named} | {family.help} | {kafka} |"
