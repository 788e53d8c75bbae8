"""Coordinators of a real broker: loading after a crash is reported as loading, and a stop leaves no request waiting."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from tests.peers.observed import ObservedBroker
from tests.peers.raw_groups import RawMember
from tests.peers.raw_offsets import FetchedOffset, GroupRefused, RawOffsets

PARTITIONS = 100
GROUPS = 200
ROUNDS = 6
ONE_COORDINATOR = {
    "offsets.topic.num.partitions": "1",
    "offsets.load.buffer.size": "1024",  # a batch at a time: loading outlasts a client's first requests
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ObservedBroker]:
    with ObservedBroker(tmp_path, overrides=ONE_COORDINATOR) as running:
        yield running


def test_while_a_coordinator_loads_no_offset_is_missing_and_members_count_as_alive(broker: ObservedBroker) -> None:
    with broker.client() as client:
        assert client.create_topic("t", partitions=PARTITIONS) == 0
        for round_number in range(ROUNDS):
            for number in range(GROUPS):
                offsets = RawOffsets(client, f"group-{number}")
                codes = offsets.commit("t", {partition: round_number * 1000 + partition for partition in range(100)})
                assert set(codes.values()) == {ErrorCode.NONE}
    broker.kill()
    broker.start()
    refusals: list[ErrorCode] = []
    heartbeats: list[ErrorCode] = []
    served_meanwhile = 0
    with broker.client() as client, RawMember(broker.port, "group-7") as member:
        while True:
            try:
                fetched = RawOffsets(client, "group-7").fetch("t", 0, 99)
                break
            except GroupRefused as refused:
                refusals.append(refused.code)
                heartbeats.append(member.heartbeat())
                served_meanwhile += client.metadata("t").topics[0].error_code == ErrorCode.NONE
    newest = (ROUNDS - 1) * 1000
    assert fetched == {0: FetchedOffset(newest, leader_epoch=-1), 99: FetchedOffset(newest + 99, leader_epoch=-1)}
    assert set(refusals) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    assert ErrorCode.NONE in heartbeats
    assert set(heartbeats) <= {ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID}  # the latter if loading ended in between
    assert served_meanwhile == len(refusals), "the event loop serves others while a coordinator is loaded"
    broker.wait_for_log("loaded a coordinator's partition")
    (line,) = broker.log_lines("loaded a coordinator's partition")
    assert f"records={PARTITIONS * GROUPS * ROUNDS} " in line


def test_requests_that_wait_for_a_coordinator_get_a_response_when_the_broker_stops(broker: ObservedBroker) -> None:
    with broker.client() as client:
        RawOffsets(client, "group")  # finds the coordinator, so that there is one
    with RawMember(broker.port, "group") as first, RawMember(broker.port, "group") as second:
        first.join()
        first.sync({first.member_id: b"all"})
        second.ask_to_join()  # its response waits until the first member rejoins, which it does not do
        assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        broker.stop()
        assert second.join_response().error_code == ErrorCode.NOT_COORDINATOR
