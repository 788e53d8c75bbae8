"""The numbers of `kaspar bench`."""

from kaspar.cli.bench.results import Latencies, Throughput, columns_of
from kaspar.cli.output import aligned


def test_percentiles_are_latencies_that_were_seen() -> None:
    latencies = Latencies()
    for latency_ms in range(1, 1001):
        latencies.add(float(latency_ms))
    assert latencies.row() == {
        "avg_ms": 500.5,
        "p50_ms": 500.0,
        "p95_ms": 950.0,
        "p99_ms": 990.0,
        "p999_ms": 999.0,
        "max_ms": 1000.0,
    }


def test_one_latency_is_all_of_them() -> None:
    latencies = Latencies()
    latencies.add(3, 5)
    assert set(latencies.row().values()) == {3}
    assert Latencies().row() == {}


def test_throughput_is_per_second() -> None:
    row = Throughput(records=5000, size=10_000_000, seconds=2.0).row()
    assert (row["records_per_s"], row["mb_per_s"]) == (2500, 5.0)


def test_table_has_the_columns_that_were_measured() -> None:
    row = Throughput(1_000_000, 100_000_000, 0.5).row()
    lines = aligned(columns_of(row), [row])
    assert lines == ["  RECORDS  SECONDS  RECORDS/S   MB/S", "1,000,000      0.5  2,000,000  200.0"]
