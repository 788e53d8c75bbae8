"""kill -9 right after a create or delete was asked for: the next start finishes it, or it was never begun."""

from pathlib import Path

import pytest

from kaspar.base.ids import ZERO_UUID
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kaspar.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import request_frame

PARTITIONS = 40
ATTEMPTS = 4


def _folders(broker: ObservedBroker, topic: str) -> int:
    return len(list(broker.data_dir.glob(f"{topic}-*")))


def _wait_for_folders(broker: ObservedBroker, topic: str, count: int) -> None:
    wait_until(lambda: _folders(broker, topic) >= count, "the topic is being made")


def test_created_topic_has_all_its_partitions_or_is_not_there(tmp_path: Path) -> None:
    with ObservedBroker(tmp_path) as broker:
        for attempt in range(ATTEMPTS):
            topic = f"topic-{attempt}"
            wanted = CreatableTopic(
                name=topic, num_partitions=PARTITIONS, replication_factor=1, assignments=(), configs=()
            )
            with broker.client() as client:
                client.send(request_frame(CreateTopicsRequest(topics=(wanted,)), 7))
                # Some of its folders are there, or (the last times) none needs to be.
                if attempt < 2:
                    _wait_for_folders(broker, topic, attempt * 10 + 1)
                broker.kill()
            broker.start()
            with broker.client() as client:
                if topic in client.topics():
                    assert _folders(broker, topic) == PARTITIONS
                    for partition in range(PARTITIONS):
                        assert client.produce(topic, [b"x"], partition=partition).error_code == 0
                else:
                    assert attempt >= 2, "folders were there, so the topic was"
                    assert _folders(broker, topic) == 0
                    assert client.create_topic(topic) == 0


@pytest.mark.parametrize("wait_for_response", [True, False])
def test_deleted_topic_is_gone_or_whole(tmp_path: Path, wait_for_response: bool) -> None:
    settings = {"log.segment.delete.delay.ms": "0"}
    with ObservedBroker(tmp_path, overrides=settings) as broker:
        with broker.client() as client:
            assert client.create_topic("doomed", partitions=PARTITIONS) == 0
            assert client.create_topic("kept") == 0
            for partition in range(PARTITIONS):
                assert client.produce("doomed", [b"x"], partition=partition).error_code == 0
            doomed = DeleteTopicState(name="doomed", topic_id=ZERO_UUID)
            client.send(request_frame(DeleteTopicsRequest(topics=(doomed,), timeout_ms=1000), 6))
            if wait_for_response:
                client.receive()
        broker.kill()
        broker.start()
        with broker.client() as client:
            topics = client.topics()
            if wait_for_response or "doomed" not in topics:
                assert topics == {"kept"}
                wait_until(lambda: _folders(broker, "doomed") == 0, "its folders are removed", seconds=60)
                assert client.create_topic("doomed") == 0, "the name is free"
                assert client.read_values("doomed") == []
            else:
                assert all(client.read_values("doomed", partition=each) == [b"x"] for each in range(PARTITIONS))
            assert client.produce("kept", [b"x"]).base_offset == 0


def test_log_made_at_the_moment_of_a_crash_gets_its_topic_id(tmp_path: Path) -> None:
    """A folder that does not say whose it is would outlive its topic, and give its records to the next of that name."""
    with ObservedBroker(tmp_path) as broker:
        with broker.client() as client:
            assert client.create_topic("orders") == 0
        broker.kill()
        said = broker.data_dir / "orders-0" / "partition.metadata"
        before = said.read_text()
        said.unlink()
        broker.start()
        assert said.read_text() == before
        with broker.client() as client:
            assert client.produce("orders", [b"of the first"]).error_code == 0
            assert client.delete_topic("orders") == 0
            assert client.create_topic("orders") == 0
            assert client.read_values("orders") == []
