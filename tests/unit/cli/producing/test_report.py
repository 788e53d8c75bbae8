"""What is reported about produced records."""

from kaspar.cli.producing.report import MAX_FAILURES_SHOWN, Report


def test_summary_has_counts_rate_and_partitions() -> None:
    report = Report("orders")
    for partition in (0, 0, 1):
        report.add_delivered(partition, 500)
    assert report.summary(2.0) == "3 records (1.5 kB) to orders in 2.00 s, 2 per second; by partition 0: 2, 1: 1"
    assert report.as_json(2.0) == {
        "topic": "orders",
        "delivered": 3,
        "failed": 0,
        "bytes": 1500,
        "seconds": 2.0,
        "partitions": {"0": 2, "1": 1},
    }


def test_one_record_has_no_rate() -> None:
    report = Report("orders")
    report.add_delivered(0, 5)
    assert report.summary(0.5) == "1 record (5 B) to orders in 0.50 s"


def test_many_failures_are_only_counted() -> None:
    report = Report("orders")
    sentences = [report.add_failed(f"line {number}", "bad") for number in range(100)]
    assert sentences[0] == "line 0: bad"
    assert sentences[MAX_FAILURES_SHOWN : MAX_FAILURES_SHOWN + 2] == [
        "further failures are counted but not shown",
        None,
    ]
    assert report.summary(1.0).endswith("; 100 failed")
