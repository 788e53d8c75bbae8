"""Scenarios that leave another broker behind: a restart, and a log directory that fails."""

import contextlib
import uuid
from collections.abc import Iterator

from kaspar.base.errors import ErrorCode
from tests.integration.metrics.groups import new_group
from tests.integration.metrics.stage import Stage
from tests.integration.metrics.transactions import new_producer
from tests.peers.observed import wait_until
from tests.peers.raw_offsets import RawOffsets

OFFLINE = "a log directory is offline"


@contextlib.contextmanager
def a_restart(stage: Stage) -> Iterator[None]:
    """After which the coordinators have something to load."""
    with stage.topic() as (client, topic):
        assert RawOffsets(client, new_group()).commit(topic, {0: 5}) == {0: ErrorCode.NONE}
        producer = new_producer(client)
        assert producer.write(topic, b"value").error_code == 0
        assert producer.end(commit=True).error_code == 0
    stage.broker.restart()
    wait_until(lambda: len(stage.broker.log_lines("metrics are served")) == 2, "the new process has its page")
    yield


@contextlib.contextmanager
def a_log_directory_that_fails(stage: Stage) -> Iterator[None]:
    """While a transaction is open on its partitions, whose markers they can no longer take."""
    assert stage.disk is not None
    stage.broker.expect_error(OFFLINE)
    stage.broker.expect_error("a partition has no log")
    with stage.client() as client:
        topic = f"topic-{uuid.uuid4().hex[:8]}"
        assert client.create_topic(topic, partitions=4) == 0
        producer = new_producer(client)
        for partition in range(4):
            assert producer.write(topic, b"value", partition=partition).error_code == 0
        stage.disk.fail()
        codes = {client.produce(topic, [b"x"], partition=partition).error_code for partition in range(4)}
        assert codes == {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}, "new partitions go to both directories"
        stage.broker.wait_for_log(OFFLINE)
        producer.ask_to_end(producer.end_request(commit=True))
        yield
