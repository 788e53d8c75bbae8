"""What clients push is read; what is no such thing is refused, whatever it is."""

import random
from itertools import pairwise

import pytest

from kaspar.base.errors import MalformedBytes
from kaspar.broker.telemetry.otlp import Buckets, Point, PointKind, read_metrics
from tests.peers.otlp import gauge, histogram, metrics_data, padding, total

EVERYTHING = metrics_data(
    gauge("a", 1.5, {"topic": "t", "partition": "3"}),
    gauge("b", -7),
    total("c", 2, delta=True),
    total("d", 2.5, delta=False, monotonic=False),
    histogram("e", [1.0, 10.0], [4, 5, 6], 123.5),
)


def test_every_kind_of_point_is_read() -> None:
    assert list(read_metrics(EVERYTHING)) == [
        Point("a", PointKind.GAUGE, False, (("topic", "t"), ("partition", "3")), 1.5),
        Point("b", PointKind.GAUGE, False, (), -7),
        Point("c", PointKind.COUNTER, True, (), 2),
        Point("d", PointKind.SUM, False, (), 2.5),
        Point("e", PointKind.HISTOGRAM, True, (), Buckets((1.0, 10.0), (4, 5, 6), 123.5)),
    ]


def test_nothing_has_no_points() -> None:
    assert list(read_metrics(b"")) == []
    assert list(read_metrics(metrics_data())) == []


def test_unknown_fields_are_skipped() -> None:
    assert len(list(read_metrics(padding(20_000) + EVERYTHING + b"\xf8\x07\x01"))) == 5


def test_histograms_need_a_bucket_for_each_bound() -> None:
    for bounds, counts in (([1.0], [1]), ([2.0, 1.0], [1, 1, 1]), ([float("nan")], [1, 1]), ([1.0, 1.0], [1, 1, 1])):
        with pytest.raises(MalformedBytes):
            list(read_metrics(metrics_data(histogram("h", bounds, counts, 1.0))))


def test_a_histogram_may_have_no_buckets() -> None:
    number = b"\x21" + (7).to_bytes(8, "little")  # its count
    metric = b"\x0a\x01h" + b"\x4a\x0b" + b"\x0a\x09" + number
    assert [point.value for point in read_metrics(metrics_data(metric))] == [Buckets((), (7,), 0.0)]


@pytest.mark.parametrize(
    "garbage",
    [b"\xff" * 20, b"\x0a\x05", b"\x0b", b"\x08\x01\x0a", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"],
    ids=["endless number", "too short", "a group", "tag alone", "negative size"],
)
def test_garbage_is_refused(garbage: bytes) -> None:
    with pytest.raises(MalformedBytes):
        list(read_metrics(garbage))


def test_bytes_of_any_kind_are_read_or_refused() -> None:
    rng = random.Random(714)
    for _ in range(3000):
        damaged = bytearray(EVERYTHING)
        for _ in range(rng.randrange(1, 6)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        del damaged[rng.randrange(len(damaged) // 2, len(damaged) + 1) :]
        for data in (bytes(damaged), rng.randbytes(rng.randrange(64))):
            try:
                points = list(read_metrics(data))
            except MalformedBytes:
                continue
            for point in points:
                if isinstance(point.value, Buckets):
                    assert all(low < high for low, high in pairwise(point.value.bounds))
