"""Reads OpenTelemetry's MetricsData, as far as Kafka's clients use it: gauges, sums and histograms.

The opentelemetry-proto package is not used, because few fields are needed, and protobuf would be a dependency of
brokers for a single API. The field numbers are those of opentelemetry/proto/metrics/v1/metrics.proto.

The bytes are not trusted: points are read one by one, and malformed ones raise MalformedBytes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from kaspar.base.errors import MalformedBytes
from kaspar.broker.telemetry.protobuf import (
    counts_of,
    double_of,
    doubles_of,
    fields,
    messages,
    number_in,
    octets_of,
    signed_of,
    text_of,
)

_DELTA: Final = 1

Attributes: TypeAlias = tuple[tuple[str, str], ...]


class PointKind(Enum):
    GAUGE = "g"
    SUM = "s"
    COUNTER = "c"
    """A monotonic sum."""
    HISTOGRAM = "h"


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of a histogram: `counts` has one more element than `bounds`."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Point:
    metric: str
    kind: PointKind
    is_delta: bool
    attributes: Attributes
    value: float | Buckets


def read_metrics(data: bytes) -> Iterator[Point]:
    """The points of all metrics. Raises MalformedBytes."""
    for resource in messages(data, 1):
        for scope in messages(resource, 2):
            for metric in messages(scope, 2):
                yield from _points(metric)


def _points(metric: bytes) -> Iterator[Point]:
    name, content, field_of_content = "", b"", 0
    for field, value in fields(metric):
        if field == 1:
            name = text_of(value)
        elif field in (5, 7, 9):
            content, field_of_content = octets_of(value), field
    match field_of_content:
        case 5:
            for point in messages(content, 1):
                yield _number(name, PointKind.GAUGE, is_delta=False, point=point)
        case 7:
            kind = PointKind.COUNTER if number_in(content, 3) else PointKind.SUM
            is_delta = number_in(content, 2) == _DELTA
            for point in messages(content, 1):
                yield _number(name, kind, is_delta=is_delta, point=point)
        case 9:
            is_delta = number_in(content, 2) == _DELTA
            for point in messages(content, 1):
                yield _histogram(name, is_delta=is_delta, point=point)


def _number(name: str, kind: PointKind, *, is_delta: bool, point: bytes) -> Point:
    number = 0.0
    attributes = []
    for field, value in fields(point):
        if field == 4:
            number = double_of(value)
        elif field == 6:
            number = signed_of(value)
        elif field == 7:
            attributes.append(_attribute(octets_of(value)))
    return Point(name, kind, is_delta, tuple(attributes), number)


def _histogram(name: str, *, is_delta: bool, point: bytes) -> Point:
    total = 0.0
    all_of_them = 0
    counts: list[int] = []
    bounds: list[float] = []
    attributes = []
    for field, value in fields(point):
        if field == 4:
            all_of_them = sum(counts_of(value))
        elif field == 5:
            total = double_of(value)
        elif field == 6:  # packed, or one at a time
            counts += counts_of(value)
        elif field == 7:
            bounds += doubles_of(value)
        elif field == 9:
            attributes.append(_attribute(octets_of(value)))
    if not counts and not bounds:  # it only has count and sum
        counts = [all_of_them]
    if len(counts) != len(bounds) + 1 or not all(map(math.isfinite, bounds)) or bounds != sorted(set(bounds)):
        raise MalformedBytes(f"a histogram has {len(counts)} buckets and {len(bounds)} bounds, or not in order")
    buckets = Buckets(tuple(bounds), tuple(counts), total)
    return Point(name, PointKind.HISTOGRAM, is_delta, tuple(attributes), buckets)


def _attribute(key_value: bytes) -> tuple[str, str]:
    key = text = ""
    for field, value in fields(key_value):
        if field == 1:
            key = text_of(value)
        elif field == 2:
            text = _any_value(octets_of(value))
    return key, text


def _any_value(message: bytes) -> str:
    for field, value in fields(message):
        match field:
            case 1:
                return text_of(value)
            case 2:
                return "true" if value else "false"
            case 3 if isinstance(value, int):
                return str(value - (1 << 64) if value >> 63 else value)
            case 4:
                return str(double_of(value))
    return ""
