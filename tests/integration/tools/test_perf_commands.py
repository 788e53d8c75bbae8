"""The perf tools and kafka-dump-log as processes: Ctrl-C, a closed pipe, a broker that is not there, a secured one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.records import Record, build_batch
from kaspar.testing import Broker
from tests.integration.tools.processes import start

PRODUCER = "kafka-producer-perf-test"
CONSUMER = "kafka-consumer-perf-test"
LATENCY = "kafka-e2e-latency"
DUMP_LOG = "kafka-dump-log"
NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def _run(name: str, *words: str) -> tuple[int, str, str]:
    process = start(name, *words)
    output, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    return process.returncode, output, errors


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (PRODUCER, ("--num-records", "1000000", "--record-size", "10", "--throughput", "1000")),
        (CONSUMER, ("--num-records", "1000000", "--show-detailed-stats", "--reporting-interval", "1")),
        (LATENCY, ("--num-records", "1000000", "--producer-acks", "1", "--record-size", "10")),
    ],
    ids=["producer", "consumer", "latency"],
)
def test_interrupted(broker: Broker, name: str, words: tuple[str, ...]) -> None:
    common = ("--bootstrap-server", broker.bootstrap_servers, "--topic", "interrupted")
    if name == CONSUMER:
        _run(PRODUCER, *common, "--num-records", "10", "--record-size", "10", "--throughput", "-1")
    reporting = ("--reporting-interval", "10") if name == PRODUCER else ()
    process = start(name, *common, *words, *reporting)
    assert process.stdout is not None
    assert process.stdout.readline(), "it has begun"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "")


def test_closed_pipe(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(b"".join(build_batch([Record(1, None, b"x")], base_offset=number) for number in range(20_000)))
    process = start(DUMP_LOG, "--files", os.fspath(log), "--print-data-log")
    assert process.stdout is not None
    assert process.stdout.readline() == f"Dumping {log}\n"
    process.stdout.close()
    assert process.wait(30) == 1
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (PRODUCER, ("--num-records", "1", "--record-size", "10", "--throughput", "-1")),
        (CONSUMER, ("--num-records", "1", "--hide-header")),
        (LATENCY, ("--num-records", "1", "--producer-acks", "1", "--record-size", "10")),
    ],
    ids=["producer", "consumer", "latency"],
)
def test_no_broker(name: str, words: tuple[str, ...]) -> None:
    code, output, errors = _run(name, "--bootstrap-server", NOBODY, "--topic", "t", *words)
    assert (code, output) == (1, "")
    assert errors.startswith("No broker responds: ")


@pytest.mark.long  # the client asks again for three seconds
def test_unknown_topic() -> None:
    with Broker(overrides={"auto.create.topics.enable": "false"}) as broker:
        words = ("--bootstrap-server", broker.bootstrap_servers, "--topic", "t", "--num-records", "1")
        code, output, errors = _run(PRODUCER, *words, "--record-size", "10", "--throughput", "-1")
        assert (code, output) == (1, "")
        assert "Topic t does not exist" in errors
