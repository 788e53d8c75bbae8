"""The metrics of client telemetry (KIP-714), and those that clients have pushed.

Pushed metrics are not declared: their families are formed for each page, by name. If clients disagree on a metric's
kind, only those with the kind of the first client are shown, because a family has one kind.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import accumulate
from typing import Final

from kaspar.base.exposition import CHUNK_LINES, Family, Kind, is_selected
from kaspar.broker.metrics.families import BrokerFamily, Scrape
from kaspar.broker.metrics.view import TelemetryView
from kaspar.broker.telemetry.otlp import Buckets, PointKind
from kaspar.broker.telemetry.series import PREFIX, split_key
from kaspar.broker.telemetry.stats import ClientMetricsStats

_MBEAN: Final = "kafka.server:type=client-metrics"
_HELP: Final = "Pushed by clients (KIP-714)."


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
        "Clients that recently requested a subscription or pushed metrics.",
        lambda scrape: scrape.broker.telemetry().instance_count,
    ),
    _counted(
        "unknown-subscription-request-count",
        "Pushes for an unknown or outdated subscription.",
        lambda stats: stats.unknown_subscription_requests.value,
    ),
    _counted(
        "throttle-count", "Requests that were sent too early, over all clients.", lambda stats: stats.throttled.value
    ),
    _counted("plugin-export-count", "Accepted pushes, over all clients.", lambda stats: stats.exports.value),
    _counted(
        "plugin-error-count", "Pushes that could not be read, over all clients.", lambda stats: stats.errors.value
    ),
    _export_time(
        "plugin-export-time-avg",
        "The average time to read a push in the last one to two minutes, in ms.",
        lambda stats: stats.export_time.distribution().mean(),
    ),
    _export_time(
        "plugin-export-time-max",
        "The maximum time to read a push in the last one to two minutes, in ms.",
        lambda stats: stats.export_time.distribution().maximum(),
    ),
    Family(
        "kaspar_client_telemetry_series",
        Kind.GAUGE,
        "Series that clients have pushed and that are shown on this page; `kaspar.telemetry.max.series` limits them.",
        lambda scrape: [("", sum(len(client.series) for client in scrape.broker.telemetry().clients()))],
    ),
)


_KINDS: Final = {
    PointKind.GAUGE: Kind.GAUGE,
    PointKind.SUM: Kind.GAUGE,
    PointKind.COUNTER: Kind.COUNTER,
    PointKind.HISTOGRAM: Kind.HISTOGRAM,
}


def pushed_page(telemetry: TelemetryView, names: Collection[str] = ()) -> Iterator[bytes]:
    """The pushed metrics, in chunks; with names, only those families."""
    if names and not any(name.startswith(PREFIX) for name in names):
        return
    kinds: dict[str, Kind] = {}
    lines: dict[str, list[str]] = {}
    for client in telemetry.clients():
        for key, value in client.series.items():
            point_kind, metric, own_labels = split_key(key)
            if not is_selected(metric, _KINDS[point_kind], names):
                continue
            if kinds.setdefault(metric, _KINDS[point_kind]) is _KINDS[point_kind]:
                label_text = f"{client.labels},{own_labels}" if own_labels else client.labels
                lines.setdefault(metric, []).extend(_lines(metric, label_text, value))
        yield b""
    for metric, of_metric in lines.items():
        yield f"# HELP {metric} {_HELP}\n# TYPE {metric} {kinds[metric].value}\n".encode()
        for start in range(0, len(of_metric), CHUNK_LINES):
            yield "".join(of_metric[start : start + CHUNK_LINES]).encode()


def _lines(metric: str, label_text: str, value: float | Buckets) -> Iterator[str]:
    if not isinstance(value, Buckets):
        yield f"{metric}{{{label_text}}} {value}\n"
        return
    up_to = [*accumulate(value.counts)]
    for bound, count in zip((*value.bounds, "+Inf"), up_to, strict=True):
        yield f'{metric}_bucket{{{label_text},le="{bound}"}} {count}\n'
    yield f"{metric}_sum{{{label_text}}} {value.total}\n"
    yield f"{metric}_count{{{label_text}}} {up_to[-1]}\n"
