"""`kaspar bench`: small loads on brokers of both kinds."""

import json
from typing import Any

from kaspar.client.admin.groups import list_groups
from kaspar.client.admin.session import Admin
from tests.integration.cli.records.command import Kaspar

LATENCIES = ["avg_ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms"]


def _measured(kaspar: Kaspar, *words: str) -> dict[str, Any]:
    measured = json.loads(kaspar.ok("bench", *words, "--json").output)
    assert isinstance(measured, dict)
    return measured


def test_records_are_written_and_read(kaspar_on_both: Kaspar) -> None:
    topic = kaspar_on_both.new_topic("bench", partitions=3)
    written = _measured(kaspar_on_both, "produce", topic, "-n", "5000", "--size", "200", "-z", "lz4")
    assert (written["records"], written["bytes"]) == (5000, 1_000_000)
    assert written["records_per_s"] > 0
    latencies = [written[name] for name in LATENCIES[1:]]
    assert latencies == sorted(latencies)
    read = _measured(kaspar_on_both, "consume", topic)
    assert (read["records"], read["bytes"]) == (5000, 1_000_000)
    assert "avg_ms" not in read
    assert _measured(kaspar_on_both, "consume", topic, "-n", "100")["records"] == 100


def test_consumer_leaves_no_group(kaspar_on_both: Kaspar) -> None:
    topic = kaspar_on_both.new_topic("bench")
    kaspar_on_both.ok("bench", "produce", topic, "-n", "10")
    kaspar_on_both.ok("bench", "consume", topic)
    with Admin(kaspar_on_both.servers) as admin:
        assert not [group for group in list_groups(admin) if group.group_id.startswith("kaspar-bench-")]


def test_latency_from_producer_to_consumer(kaspar_on_both: Kaspar) -> None:
    topic = kaspar_on_both.new_topic("bench", partitions=2)
    measured = _measured(kaspar_on_both, "latency", topic, "-n", "20")
    assert measured["records"] == 20
    assert 0 < measured["p50_ms"] <= measured["max_ms"]


def test_table_for_people(kaspar: Kaspar) -> None:
    topic = kaspar.name_of("bench")
    heads, values = kaspar.ok("bench", "produce", topic, "--create", "-n", "2000", "--rate", "10000").lines
    assert heads.split() == [
        "RECORDS",
        "SECONDS",
        "RECORDS/S",
        "MB/S",
        "AVG",
        "MS",
        "P50",
        "P95",
        "P99",
        "P99.9",
        "MAX",
    ]
    assert values.split()[0] == "2,000"


def test_too_few_records_are_told(kaspar: Kaspar) -> None:
    topic = kaspar.new_topic("bench")
    kaspar.ok("bench", "produce", topic, "-n", "10")
    done = kaspar.run("bench", "consume", topic, "-n", "11", "--timeout", "0.5")
    assert done.code == 1
    assert done.errors == "kaspar: received only 10 of 11 records within 0.5 s\n"


def test_unknown_topic_and_wrong_setting(kaspar: Kaspar) -> None:
    for what in ("produce", "consume", "latency"):
        assert kaspar.run("bench", what, "no-such-topic").code == 3
    done = kaspar.run("bench", "produce", kaspar.new_topic("bench"), "-X", "linger.ms=soon")
    assert (done.code, len(done.errors.splitlines())) == (1, 1)
    assert "linger.ms" in done.errors
