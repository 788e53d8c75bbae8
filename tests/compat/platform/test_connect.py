"""A stock Connect worker with the file connectors: alone, and distributed with an exactly-once source."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.compat.platform.reading import read_committed
from tests.compat.scenario import NewTopic, eventually
from tests.peers.java_program import JavaProgram, platform_jars
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess, write_properties
from tests.peers.wire import free_port

STANDALONE = "org.apache.kafka.connect.cli.ConnectStandalone"
DISTRIBUTED = "org.apache.kafka.connect.cli.ConnectDistributed"
START_SECONDS = 90.0

pytestmark = pytest.mark.timeout(240)


def test_a_standalone_worker_copies_a_file_through_a_topic_and_goes_on_after_a_restart(
    broker: BrokerProcess, new_topic: NewTopic, tmp_path: Path
) -> None:
    unless_missing(platform_jars)
    topic = new_topic()
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    worker = worker_settings(broker, free_port()) | {
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "offset.flush.interval.ms": "500",
    }
    files = []
    for name, settings in (("worker", worker), *connectors("alone", topic, source, sink).items()):
        files.append(tmp_path / f"{name}.properties")
        write_properties(files[-1], settings)
    program = JavaProgram(tmp_path, STANDALONE, *files)
    source.write_text("one\ntwo\n")
    with program:
        wait_for_lines(program, sink, ["one", "two"])
        append(source, "three")
        wait_for_lines(program, sink, ["one", "two", "three"])
    append(source, "four")
    with program:
        wait_for_lines(program, sink, ["one", "two", "three", "four"])
    assert [value for _, value in read_committed(broker.bootstrap, topic, 1)] == ["one", "two", "three", "four"]


def test_a_distributed_worker_runs_an_exactly_once_source_and_a_sink(
    broker: BrokerProcess, new_topic: NewTopic, tmp_path: Path
) -> None:
    unless_missing(platform_jars)
    topic = new_topic()
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    port = free_port()
    worker = worker_settings(broker, port) | {
        "group.id": "connect-cluster",
        "exactly.once.source.support": "enabled",
        "scheduled.rebalance.max.delay.ms": "0",
    }
    for purpose in ("config", "offset", "status"):
        worker |= {f"{purpose}.storage.topic": f"connect-{purpose}", f"{purpose}.storage.replication.factor": "1"}
    worker |= {"offset.storage.partitions": "2", "status.storage.partitions": "1"}
    write_properties(tmp_path / "worker.properties", worker)
    program = JavaProgram(tmp_path, DISTRIBUTED, tmp_path / "worker.properties")
    source.write_text("one\ntwo\n")
    with program:
        for name, settings in connectors("distributed", topic, source, sink).items():
            if name == "source":
                settings["exactly.once.support"] = "required"
            create(program, port, f"distributed-{name}", settings)
        wait_for_lines(program, sink, ["one", "two"])
        append(source, "three")
        wait_for_lines(program, sink, ["one", "two", "three"])
        program.kill()
    append(source, "four")
    with program:
        wait_for_lines(program, sink, ["four"], tail=True)  # a sink may repeat what it wrote after its last commit
        tasks = request(port, "GET", "/connectors/distributed-source/status")["tasks"]
        assert [task["state"] for task in tasks] == ["RUNNING"]
    assert [value for _, value in read_committed(broker.bootstrap, topic, 1)] == ["one", "two", "three", "four"]


def worker_settings(broker: BrokerProcess, port: int) -> dict[str, str]:
    text = "org.apache.kafka.connect.storage.StringConverter"
    return {
        "bootstrap.servers": broker.bootstrap,
        "listeners": f"http://127.0.0.1:{port}",
        "key.converter": text,
        "value.converter": text,
        "plugin.discovery": "service_load",
    }


def connectors(name: str, topic: str, source: Path, sink: Path) -> dict[str, dict[str, str]]:
    package = "org.apache.kafka.connect.file"
    return {
        "source": {
            "name": f"{name}-source",
            "connector.class": f"{package}.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(source),
            "topic": topic,
        },
        "sink": {
            "name": f"{name}-sink",
            "connector.class": f"{package}.FileStreamSinkConnector",
            "tasks.max": "1",
            "file": str(sink),
            "topics": topic,
            "consumer.override.session.timeout.ms": "6000",
        },
    }


def append(file: Path, line: str) -> None:
    with file.open("a") as opened:
        opened.write(f"{line}\n")


def wait_for_lines(program: JavaProgram, file: Path, lines: list[str], *, tail: bool = False) -> None:
    """These are all lines of a file, or its last ones."""

    def written() -> list[str]:
        assert program.running, program.log_text()[-5000:]
        return file.read_text().splitlines() if file.exists() else []

    def told() -> str:
        return f"{lines}, but {written()}\n{program.log_text()[-3000:]}"

    eventually(lambda: written()[-len(lines) :] == lines, told, seconds=START_SECONDS)
    assert tail or written() == lines


def create(program: JavaProgram, port: int, name: str, settings: Mapping[str, str]) -> None:
    def created() -> bool:
        assert program.running, program.log_text()[-5000:]
        try:
            request(port, "PUT", f"/connectors/{name}/config", dict(settings))
        except OSError:  # it does not listen yet, or is rebalancing
            return False
        return True

    eventually(created, lambda: f"connector {name}\n{program.log_text()[-3000:]}", seconds=START_SECONDS)


def request(port: int, method: str, path: str, body: object = None) -> Any:
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise OSError(error.read().decode(errors="replace")) from error
