"""The log files of a broker's process: those that Kafka has, with levels that change while it runs."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.log_files import renamed_files
from kaspar.config import AlterOperation
from kaspar.config.broker.authorization import STANDARD_AUTHORIZER
from kaspar.controller.events import ResourceType
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kaspar.records import Record, build_batch
from tests.integration.commands import refusal
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient

SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "kaspar.log.max.backups": "2",
    "log.cleaner.backoff.ms": "50",
}
_REQUEST = re.compile(r"completed request request=(\w+) .*client=(\S+) .*total_ms=([\d.]+) .*remote_ms=([\d.]+)")


class Logs:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def text(self, name: str) -> str:
        file = self.folder / name
        return "".join(each.read_text() for each in (*renamed_files(file), file))

    def wait_for(self, name: str, words: str) -> None:
        wait_until(lambda: words in self.text(name), f"{name} has: {words}")

    def requests(self) -> list[tuple[str, ...]]:
        return _REQUEST.findall(self.text("kafka-request.log"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedBroker]:
    folder = tmp_path_factory.mktemp("logs")
    with ObservedBroker(folder / "broker", overrides=SETTINGS | {"kaspar.log.dir": str(folder / "logs")}) as running:
        yield running


@pytest.fixture
def logs(broker: ObservedBroker) -> Logs:
    return Logs(broker.folder.parent / "logs")


def set_level(client: RawClient, logger: str, level: str | None) -> None:
    operation = AlterOperation.SET if level else AlterOperation.DELETE
    config = AlterableConfig(name=logger, config_operation=operation, value=level)
    resource = AlterConfigsResource(resource_type=ResourceType.BROKER_LOGGER, resource_name="1", configs=(config,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (response,) = client.call(request, IncrementalAlterConfigsResponse).responses
    assert response.error_code == ErrorCode.NONE, response.error_message


def test_what_kafka_has_in_files_of_their_own_is_there_and_not_in_the_servers(
    broker: ObservedBroker, logs: Logs
) -> None:
    with broker.client() as client:
        assert client.create_topic("orders", partitions=3) == 0
        logs.wait_for("state-change.log", "a topic is created topic=orders partitions=3")
        assert client.delete_topic("orders") == 0
        logs.wait_for("state-change.log", "a topic is deleted topic=orders")
        set_level(client, "kafka.authorizer.logger", "DEBUG")
        assert client.create_topic("audited") == 0
        logs.wait_for("kafka-authorizer.log", "allowed")
        set_level(client, "kafka.authorizer.logger", None)
    logs.wait_for("server.log", "the broker is ready")
    for name in ("server.log", "controller.log", "log-cleaner.log"):
        assert "state.change.logger" not in logs.text(name)
        assert "authorizer.logger" not in logs.text(name)
    assert not broker.log_lines("state.change.logger")
    assert "the broker is ready" not in logs.text("controller.log")


def test_the_terminal_has_what_the_controller_and_the_cleaner_say(broker: ObservedBroker, logs: Logs) -> None:
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "internal.segment.bytes": "1000"}
    with broker.client() as client:
        assert client.create_topic("compacted", configs=configs) == 0
        for _ in range(5):
            record = Record(time.time_ns() // 1_000_000, b"key", bytes(600))
            assert client.produce_batch("compacted", bytes(build_batch([record]))).error_code == 0
    logs.wait_for("log-cleaner.log", "partition=compacted-0")
    wait_until(lambda: bool(broker.log_lines("partition=compacted-0")), "it is on the terminal")
    assert "compacted-0" not in logs.text("server.log")


def test_requests_are_logged_while_their_logger_is_at_debug(broker: ObservedBroker, logs: Logs) -> None:
    with broker.client() as client:
        assert client.create_topic("events") == 0
        assert not logs.requests()
        set_level(client, "kafka.request.logger", "DEBUG")
        assert client.produce("events", [b"x"]).error_code == 0
        assert len(client.read_values("events")) == 1
        wait_until(lambda: {"Produce", "Fetch"} <= {each[0] for each in logs.requests()}, "both are logged")
        for _, _, total_ms, remote_ms in logs.requests():
            assert 0 < float(total_ms) < 60_000
            assert float(remote_ms) <= float(total_ms)
        set_level(client, "kafka.request.logger", None)
        logged = len(logs.requests())
        client.topics()
        set_level(client, "state.change.logger", "DEBUG")
        assert client.create_topic("later") == 0
        logs.wait_for("state-change.log", "a partition is created partition=later-0 leader=1 isr=[1]")
        assert len(logs.requests()) == logged
        set_level(client, "state.change.logger", None)


def test_files_that_logrotate_renames_are_begun_anew(broker: ObservedBroker, logs: Logs) -> None:
    file = logs.folder / "state-change.log"
    with broker.client() as client:
        assert client.create_topic("before") == 0
        logs.wait_for("state-change.log", "topic=before")
        file.rename(file.with_name("state-change.log.1"))

        def created_anew() -> bool:
            assert client.create_topic("after") == 0
            assert client.delete_topic("after") == 0
            return file.exists()

        wait_until(created_anew, "the file is there again")


def test_a_folder_that_cannot_be_made_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = tmp_path / "server.properties"
    settings.write_text(f"node.id=1\nlog.dirs={tmp_path / 'data'}\nkaspar.log.dir={tmp_path / 'file' / 'logs'}\n")
    assert refusal(settings) == (
        f"the folder of kaspar.log.dir, {tmp_path / 'file' / 'logs'}, cannot be created: Not a directory"
    )
