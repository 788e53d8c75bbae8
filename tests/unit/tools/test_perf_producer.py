"""What kafka-producer-perf-test sends and reports, without a broker."""

import pytest

from kaspar.base.errors import InvalidSetting
from kaspar.records import Codec
from kaspar.tools.perf.payloads import CountingNumbers, PickedValues, RandomLetters
from kaspar.tools.perf.producer_settings import producer_settings
from kaspar.tools.perf.producer_statistics import Statistics


def test_percentiles_are_those_of_the_sorted_latencies() -> None:
    statistics = Statistics(0, 5000, print, steady=False)
    for latency_ms in range(1000):
        statistics.record(1, 10, latency_ms, 1)
    assert statistics.percentiles() == [500, 950, 990, 999]


def test_total_line() -> None:
    statistics = Statistics(0, 5000, print, steady=True)
    statistics.record(3, 3 << 20, 4, 10)
    statistics.record(1, 1 << 20, 8, 20)
    assert statistics.total_line(2000) == (
        "4 steady state records sent, 2.000000 records/sec (2.00 MB/sec), 5.00 ms avg latency, 8.00 ms max latency, "
        "4 ms 50th, 8 ms 95th, 8 ms 99th, 8 ms 99.9th."
    )


def test_a_line_for_each_interval() -> None:
    lines: list[str] = []
    statistics = Statistics(0, 1000, lines.append, steady=False)
    statistics.record(5, 5 << 20, 10, 999)
    assert lines == []
    statistics.record(5, 5 << 20, 20, 1000)
    assert lines == ["10 records sent, 10.0 records/sec (10.00 MB/sec), 15.0 ms avg latency, 20.0 ms max latency."]
    statistics.silent = True
    statistics.record(1, 1, 1, 2000)
    assert len(lines) == 1


def test_steady_state_is_announced_once() -> None:
    lines: list[str] = []
    statistics = Statistics(0, 10, lines.append, steady=True)
    statistics.record(1, 1, 1, 10)
    statistics.record(1, 1, 1, 20)
    assert [line == "In steady state." for line in lines] == [True, False, False]


def test_payloads_count_their_bytes() -> None:
    for payloads, sizes in ((RandomLetters(7), {7}), (PickedValues([b"a", b"bcd"]), {1, 3}), (CountingNumbers(), {1})):
        rows = payloads.take(10)
        assert rows.last - rows.first == 10
        each = {rows.ends[row + 1] - rows.ends[row] for row in range(rows.first, rows.last)}
        assert each <= sizes


def test_payloads_begin_again() -> None:
    payloads = RandomLetters(1 << 20)
    taken = [payloads.take(3) for _ in range(3)]
    assert [(rows.first, rows.last) for rows in taken] == [(0, 3), (3, 4), (0, 3)]


def test_settings_have_the_defaults_of_kafka() -> None:
    settings = producer_settings({})
    assert settings.idempotent
    assert (settings.terms.acks, settings.batch_size, settings.linger_ms) == (-1, 16384, 5)
    assert not producer_settings({"acks": "1"}).idempotent
    assert producer_settings({"compression.type": "zstd", "compression.zstd.level": "3"}).level == 3
    assert producer_settings({"compression.type": "gzip", "compression.gzip.level": "-1"}).codec is Codec.GZIP


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"linger.ms": "soon"}, "Invalid value soon for configuration linger.ms: Not a number of type LONG"),
        ({"acks": "2"}, "Invalid value 2 for configuration acks: String must be one of: all, -1, 0, 1"),
        ({"enable.idempotence": "true", "acks": "0"}, "Must set acks to all"),
        ({"transactional.id": "x", "enable.idempotence": "false"}, "Cannot set a transactional.id without"),
    ],
)
def test_wrong_settings(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting, match=sentence):
        producer_settings(properties)
