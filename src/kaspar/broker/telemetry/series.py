"""The metrics that one client has pushed, as Prometheus' series.

- The metric `org.apache.kafka.producer.record.send.total` becomes kafka_client_producer_record_send_total. Any other
  name is kept as a whole after `kafka_client_`. A monotonic sum is a counter, whose name ends in _total.
- Deltas are added up. Clients push all their metrics each time, so a gauge that is not in the last push is removed.
- Attributes become labels, but cannot replace labels that the broker sets.
- Names and labels are repeated on every line, so their length is limited. Series that exceed it are dropped.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kaspar.base.exposition import escape_label
from kaspar.base.ids import uuid_to_text
from kaspar.broker.telemetry.otlp import Attributes, Buckets, Point, PointKind
from kaspar.broker.telemetry.subscriptions import ClientAttributes

PREFIX: Final = "kafka_client_"
MAX_NAME_LENGTH: Final = 256
MAX_LABELS_LENGTH: Final = 1024
MAX_VALUE_LENGTH: Final = 256
MAX_BUCKETS: Final = 64

CLIENT_LABELS: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "principal",
)
_RESERVED: Final = frozenset({*CLIENT_LABELS, "le", "quantile"})
_KAFKAS: Final = "org.apache.kafka."
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_]")


Series: TypeAlias = Mapping[str, float | Buckets]
"""By `series_key`. There may be a hundred thousand series, so they are strings and numbers, which the garbage collector
does not have to visit.
"""


def series_key(kind: PointKind, metric: str, labels: str) -> str:
    """`labels` are the metric's own labels, as in `a="1",b="2"`."""
    return f"{kind.value}{metric}{{{labels}"


def split_key(key: str) -> tuple[PointKind, str, str]:
    metric, _, labels = key[1:].partition("{")
    return PointKind(key[0]), metric, labels


@dataclass(frozen=True, slots=True)
class ClientSeries:
    """The metrics that one client has pushed. Never changed: the next push replaces it."""

    labels: str
    """The client's labels, as in `client_id="c",client_instance_id="i"`."""
    series: Series


@dataclass(frozen=True, slots=True)
class Updated:
    series: Series
    left_out: int
    """Points that did not fit, or that cannot be shown."""


def updated(before: Series, points: Iterable[Point], max_series: int) -> Updated:
    after = {key: value for key, value in before.items() if not key.startswith(PointKind.GAUGE.value)}
    left_out = 0
    for point in points:
        metric, labels = _metric_of(point), _own_labels(point.attributes)
        key = series_key(point.kind, metric, labels)
        value = _value_of(point, after.get(key))
        if (
            value is None
            or (key not in after and len(after) >= max_series)
            or len(metric) > MAX_NAME_LENGTH
            or len(labels) > MAX_LABELS_LENGTH
        ):
            left_out += 1
            continue
        after[key] = value
    return Updated(after, left_out)


def client_labels(client: ClientAttributes) -> str:
    values = (
        client.client_id or "",
        uuid_to_text(client.client_instance_id),
        client.client_software_name,
        client.client_software_version,
        client.principal,
    )
    return ",".join(
        f'{name}="{escape_label(value[:MAX_VALUE_LENGTH])}"' for name, value in zip(CLIENT_LABELS, values, strict=True)
    )


def _metric_of(point: Point) -> str:
    name = PREFIX + _NOT_IN_NAMES.sub("_", point.metric.removeprefix(_KAFKAS))
    return f"{name}_total" if point.kind is PointKind.COUNTER and not name.endswith("_total") else name


def _own_labels(attributes: Attributes) -> str:
    named: dict[str, str] = {}
    for key, value in attributes:
        name = _NOT_IN_NAMES.sub("_", key).lstrip("_")
        if name in _RESERVED or name[:1].isdigit():
            name = f"exported_{name}"
        if name:
            named.setdefault(name, value[:MAX_VALUE_LENGTH])
    return ",".join(f'{name}="{escape_label(named[name])}"' for name in sorted(named))


def _value_of(point: Point, known: float | Buckets | None) -> float | Buckets | None:
    """The value to keep; None if it cannot be shown."""
    value, before = point.value, known if point.is_delta else None
    if isinstance(value, Buckets):
        if len(value.counts) > MAX_BUCKETS or not math.isfinite(value.total):
            return None
        if not isinstance(before, Buckets) or before.bounds != value.bounds:
            return value
        counts = tuple(one + more for one, more in zip(before.counts, value.counts, strict=True))
        return Buckets(value.bounds, counts, before.total + value.total)
    if point.kind is not PointKind.GAUGE and not math.isfinite(value):
        return None
    if point.kind is PointKind.COUNTER and value < 0:
        return None
    return value if before is None or isinstance(before, Buckets) else before + value
