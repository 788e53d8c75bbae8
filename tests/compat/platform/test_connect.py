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
from tests.peers.brokers import Brokers
from tests.peers.java_program import JavaProgram, platform_jars
from tests.peers.missing import unless_missing
from tests.peers.process import write_properties
from tests.peers.wire import free_port

STANDALONE = "org.apache.kafka.connect.cli.ConnectStandalone"
DISTRIBUTED = "org.apache.kafka.connect.cli.ConnectDistributed"
START_SECONDS = 90.0

pytestmark = pytest.mark.timeout(240)


def test_a_standalone_worker_copies_a_file_through_a_topic_and_goes_on_after_a_restart(
    broker: Brokers, new_topic: NewTopic, tmp_path: Path
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
    broker: Brokers, new_topic: NewTopic, tmp_path: Path
) -> None:
    unless_missing(platform_jars)
    topic = new_topic()
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    port = free_port()
    program = distributed_worker(broker, port, "connect-cluster", tmp_path)
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


@pytest.mark.long
def test_tasks_move_to_the_other_worker_when_one_is_killed(
    broker: Brokers, new_topic: NewTopic, tmp_path: Path
) -> None:
    unless_missing(platform_jars)
    topic = new_topic()
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    ports = [free_port() for _ in range(2)]
    workers = [distributed_worker(broker, port, "connect-of-two", tmp_path / f"worker-{port}") for port in ports]
    source.write_text("one\n")
    with workers[0], workers[1]:
        for name, settings in connectors("two", topic, source, sink).items():
            if name == "source":
                settings["exactly.once.support"] = "required"
            create(workers[0], ports[0], f"two-{name}", settings)
        wait_for_lines(workers[0], sink, ["one"])
        for number, killed in enumerate((0, 1, 0)):
            workers[killed].kill()
            append(source, f"line-{number}")
            wait_for_lines(workers[1 - killed], sink, [f"line-{number}"], tail=True)
            workers[killed].start()
            wait_for_workers(workers[killed], ports[killed])
    values = [value for _, value in read_committed(broker.bootstrap, topic, 1)]
    assert values == ["one", "line-0", "line-1", "line-2"]


def wait_for_workers(program: JavaProgram, port: int) -> None:
    """A restarted worker responds, so it is in the group again."""

    def responds() -> bool:
        assert program.running, program.log_text()[-5000:]
        try:
            return {"two-source", "two-sink"} <= set(request(port, "GET", "/connectors"))
        except OSError:
            return False

    eventually(responds, program.log_text, seconds=START_SECONDS)


def distributed_worker(broker: Brokers, port: int, cluster: str, folder: Path) -> JavaProgram:
    settings = worker_settings(broker, port) | {
        "group.id": cluster,
        "exactly.once.source.support": "enabled",
        "scheduled.rebalance.max.delay.ms": "0",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "500",
        "offset.storage.partitions": "2",
        "status.storage.partitions": "1",
    }
    for purpose in ("config", "offset", "status"):
        settings |= {f"{purpose}.storage.topic": f"{cluster}-{purpose}", f"{purpose}.storage.replication.factor": "-1"}
    folder.mkdir(exist_ok=True)
    write_properties(folder / "worker.properties", settings)
    return JavaProgram(folder, DISTRIBUTED, folder / "worker.properties")


def worker_settings(broker: Brokers, port: int) -> dict[str, str]:
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

    def progress() -> str:
        return f"{lines}, but {written()}\n{program.log_text()[-3000:]}"

    eventually(lambda: written()[-len(lines) :] == lines, progress, seconds=START_SECONDS)
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
        with urllib.request.urlopen(asked, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            raise OSError(error.read().decode(errors="replace")) from error
