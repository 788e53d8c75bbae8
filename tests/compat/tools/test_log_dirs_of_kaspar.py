"""kafka-reassign-partitions, Kafka's and ours, moves replicas between the log directories of a Kaspar broker."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from tests.compat.tools.comparing import REASSIGN, run_ours
from tests.peers.kafka_tools import Done, KafkaTools
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

Tool = Callable[..., Done]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KasparProcess]:
    folder = tmp_path_factory.mktemp("kaspar")
    with KasparProcess(folder, overrides={"log.dirs": f"{folder / 'one'},{folder / 'two'}"}) as running:
        yield running


@pytest.fixture(params=["kafka", "ours"])
def tool(request: pytest.FixtureRequest) -> Tool:
    if request.param == "ours":
        return lambda *arguments: run_ours(REASSIGN, *arguments)
    tools: KafkaTools = request.getfixturevalue("kafka_tools")
    return lambda *arguments: tools.run(REASSIGN.kafka_class, *arguments)


def plan_of(folder: Path, topic: str, *paths: Path) -> Path:
    partitions = [
        {"topic": topic, "partition": number, "replicas": [1], "log_dirs": [str(path)]}
        for number, path in enumerate(paths)
    ]
    file = folder / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return file


def test_replicas_move_to_the_directories_of_a_plan(
    broker: KasparProcess, tool: Tool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    topic = f"moved-{request.node.callspec.id}"
    one, two = broker.folder / "one", broker.folder / "two"
    with RawClient(broker.port) as client:
        assert client.create_topic(topic, partitions=2) == ErrorCode.NONE
        for number in (0, 1):
            assert client.produce(topic, [b"value"], partition=number).error_code == ErrorCode.NONE
    for first, second in ((one, two), (two, one)):
        plan = plan_of(tmp_path, topic, first, second)
        words = ("--bootstrap-server", broker.bootstrap, "--reassignment-json-file", plan)
        done = tool(*words, "--execute", "--replica-alter-log-dirs-throttle", "1000000")
        assert done.code == 0, done
        wait_until(
            lambda first=first, second=second: (first / f"{topic}-0").exists() and (second / f"{topic}-1").exists(),  # type: ignore[misc]
            "the replicas are where the plan has them",
        )
        wait_until(lambda words=words: "is still in progress" not in tool(*words, "--verify").output, "it is verified")  # type: ignore[misc]
        verified = tool(*words, "--verify")
        assert verified.code == 0, verified
        for number in (0, 1):
            assert f"Reassignment of replica {topic}-{number}-1 completed successfully." in verified.output
    with RawClient(broker.port) as client:
        assert [client.read_values(topic, partition=number) for number in (0, 1)] == [[b"value"], [b"value"]]


def test_unknown_directory_is_refused(broker: KasparProcess, tool: Tool, tmp_path: Path) -> None:
    with RawClient(broker.port) as client:
        client.create_topic("stays")
    words = (
        "--bootstrap-server",
        broker.bootstrap,
        "--reassignment-json-file",
        plan_of(tmp_path, "stays", Path("/nowhere")),
    )
    done = tool(*words, "--execute", "--timeout", "100")
    assert done.code == 1
    assert "LogDirNotFoundException" in done.output
