"""The perf tools and kafka-dump-log as processes: Ctrl-C, a closed pipe, a broker that is not there, a secured one."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.records import Record, build_batch
from kaspar.testing import Broker

PRODUCER = "kaspar.tools.perf.producer_command"
CONSUMER = "kaspar.tools.perf.consumer_command"
LATENCY = "kaspar.tools.perf.latency_command"
DUMP_LOG = "kaspar.tools.dump_log.command"
NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def _start(module: str, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", module, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _run(module: str, *words: str) -> tuple[int, str, str]:
    process = _start(module, *words)
    output, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    return process.returncode, output, errors


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (PRODUCER, ("--num-records", "1000000", "--record-size", "10", "--throughput", "1000")),
        (CONSUMER, ("--num-records", "1000000", "--show-detailed-stats", "--reporting-interval", "1")),
        (LATENCY, ("--num-records", "1000000", "--producer-acks", "1", "--record-size", "10")),
    ],
    ids=["producer", "consumer", "latency"],
)
def test_interrupted(broker: Broker, module: str, words: tuple[str, ...]) -> None:
    common = ("--bootstrap-server", broker.bootstrap_servers, "--topic", "interrupted")
    if module == CONSUMER:
        _run(PRODUCER, *common, "--num-records", "10", "--record-size", "10", "--throughput", "-1")
    reporting = ("--reporting-interval", "10") if module == PRODUCER else ()
    process = _start(module, *common, *words, *reporting)
    assert process.stdout is not None
    assert process.stdout.readline(), "it has begun"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "")


def test_closed_pipe(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(b"".join(build_batch([Record(1, None, b"x")], base_offset=number) for number in range(20_000)))
    process = _start(DUMP_LOG, "--files", os.fspath(log), "--print-data-log")
    assert process.stdout is not None
    assert process.stdout.readline() == f"Dumping {log}\n"
    process.stdout.close()
    assert process.wait(30) == 1
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (PRODUCER, ("--num-records", "1", "--record-size", "10", "--throughput", "-1")),
        (CONSUMER, ("--num-records", "1", "--hide-header")),
        (LATENCY, ("--num-records", "1", "--producer-acks", "1", "--record-size", "10")),
    ],
    ids=["producer", "consumer", "latency"],
)
def test_no_broker(module: str, words: tuple[str, ...]) -> None:
    code, output, errors = _run(module, "--bootstrap-server", NOBODY, "--topic", "t", *words)
    assert (code, output) == (1, "")
    assert errors.startswith("No broker responds: ")


@pytest.mark.long  # the client asks again for three seconds
def test_unknown_topic() -> None:
    with Broker(overrides={"auto.create.topics.enable": "false"}) as broker:
        words = ("--bootstrap-server", broker.bootstrap_servers, "--topic", "t", "--num-records", "1")
        code, output, errors = _run(PRODUCER, *words, "--record-size", "10", "--throughput", "-1")
        assert (code, output) == (1, "")
        assert "Topic t does not exist" in errors
