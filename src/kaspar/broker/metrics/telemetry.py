"""The metrics of client telemetry (KIP-714), and those that clients have pushed.

What clients push has no declaration: families are formed for each page, by name. Should clients disagree on a metric's
kind, the first one's is shown, since a family has one kind.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

from kaspar.base.exposition import Family, Kind, Sample, render
from kaspar.broker.metrics.client_metrics import ClientMetricsStats
from kaspar.broker.metrics.families import BrokerFamily, Scrape
from kaspar.broker.metrics.view import TelemetryView
from kaspar.broker.telemetry.otlp import Buckets
from kaspar.broker.telemetry.series import ClientSeries, SeriesName

_MBEAN: Final = "kafka.server:type=client-metrics"


def _family(attribute: str, kind: Kind, text: str, read: Callable[[Scrape], float]) -> BrokerFamily:
    name = f"kafka_server_client_metrics_{attribute.replace('-', '_')}"
    return Family(name, kind, text, lambda scrape: [("", read(scrape))], (), f"{_MBEAN} {attribute}")


def _counted(attribute: str, text: str, read: Callable[[ClientMetricsStats], float]) -> BrokerFamily:
    return _family(attribute, Kind.COUNTER, text, lambda scrape: read(scrape.metrics.client_metrics))


def _export_time(attribute: str, text: str, read: Callable[[ClientMetricsStats], float]) -> BrokerFamily:
    return _family(attribute, Kind.GAUGE, text, lambda scrape: read(scrape.metrics.client_metrics) * 1000)


TELEMETRY: Final[tuple[BrokerFamily, ...]] = (
    _family(
        "instance-count",
        Kind.GAUGE,
        "Clients that asked which metrics to push, or pushed some, and were heard of lately.",
        lambda scrape: scrape.broker.telemetry().instance_count,
    ),
    _counted(
        "unknown-subscription-request-count",
        "Pushes for a subscription that the client does not have, or no longer.",
        lambda stats: stats.unknown_subscription_requests.value,
    ),
    _counted(
        "throttle-count", "Requests that came before their time, of all clients.", lambda stats: stats.throttled.value
    ),
    _counted("plugin-export-count", "Pushes that were accepted, of all clients.", lambda stats: stats.exports.value),
    _counted("plugin-error-count", "Pushes that could not be read, of all clients.", lambda stats: stats.errors.value),
    _export_time(
        "plugin-export-time-avg",
        "How long it took to read a push on average, in the last one to two minutes, in ms.",
        lambda stats: stats.export_time.distribution().mean(),
    ),
    _export_time(
        "plugin-export-time-max",
        "The longest that it took in the last one to two minutes, in ms.",
        lambda stats: stats.export_time.distribution().maximum(),
    ),
    Family(
        "kaspar_client_telemetry_series",
        Kind.GAUGE,
        "Series that clients have pushed and that are shown on this page; `kaspar.telemetry.max.series` limits them.",
        lambda scrape: [("", sum(len(client.series) for client in scrape.broker.telemetry().clients()))],
    ),
)


def pushed_page(telemetry: TelemetryView) -> Iterator[bytes]:
    """What clients have pushed, in chunks."""
    by_metric: dict[str, list[tuple[ClientSeries, SeriesName]]] = {}
    for client in telemetry.clients():
        for name in client.series:
            by_metric.setdefault(name.metric, []).append((client, name))
        yield b""
    for metric, members in by_metric.items():
        client, name = members[0]
        first = client.series[name]
        text = f"{first.otlp_name} of clients that push it."
        yield from render([Family(metric, first.kind, text, _samples_of(first.kind))], members)


def _samples_of(kind: Kind) -> Callable[[list[tuple[ClientSeries, SeriesName]]], Iterator[Sample]]:
    def samples(members: list[tuple[ClientSeries, SeriesName]]) -> Iterator[Sample]:
        for client, name in members:
            sample = client.series[name]
            if sample.kind is not kind:
                continue
            label_text = f"{client.labels},{name.labels}" if name.labels else client.labels
            if isinstance(sample.value, Buckets):
                yield from _bucket_samples(sample.value, label_text)
            else:
                yield f"{{{label_text}}}", sample.value

    return samples


def _bucket_samples(buckets: Buckets, label_text: str) -> Iterator[Sample]:
    up_to = [*accumulate(buckets.counts)]
    for bound, count in zip((*buckets.bounds, "+Inf"), up_to, strict=True):
        yield f'_bucket{{{label_text},le="{bound}"}}', count
    yield f"_sum{{{label_text}}}", buckets.total
    yield f"_count{{{label_text}}}", up_to[-1]
