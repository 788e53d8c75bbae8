"""Coordinators of a real broker: loading after a crash is told as loading, and a stop leaves nobody waiting."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from tests.peers.observed import ObservedBroker
from tests.peers.raw_groups import RawMember
from tests.peers.raw_offsets import GroupRefused, RawOffsets, Told

PARTITIONS = 100
GROUPS = 200
ROUNDS = 6
ONE_COORDINATOR = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ObservedBroker]:
    with ObservedBroker(tmp_path, overrides=ONE_COORDINATOR) as running:
        yield running


def test_while_offsets_are_loaded_nobody_is_told_that_there_are_none(broker: ObservedBroker) -> None:
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
    answered_meanwhile = 0
    with broker.client() as client:
        while True:
            try:
                told = RawOffsets(client, "group-7").fetch("t", 0, 99)
                break
            except GroupRefused as refused:
                refusals.append(refused.code)
                answered_meanwhile += client.metadata("t").topics[0].error_code == ErrorCode.NONE
    newest = (ROUNDS - 1) * 1000
    assert told == {0: Told(newest, leader_epoch=-1), 99: Told(newest + 99, leader_epoch=-1)}
    assert set(refusals) == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    assert answered_meanwhile == len(refusals), "the event loop serves others while a coordinator is loaded"
    (line,) = broker.log_lines("loaded a coordinator's partition")
    assert f"records={PARTITIONS * GROUPS * ROUNDS} " in line


def test_who_waits_for_a_coordinator_is_answered_when_the_broker_stops(broker: ObservedBroker) -> None:
    with broker.client() as client:
        RawOffsets(client, "group")  # finds the coordinator, so that there is one
    with RawMember(broker.port, "group") as first, RawMember(broker.port, "group") as second:
        first.join()
        first.sync({first.member_id: b"all"})
        second.ask_to_join()  # and is answered when the first has come again, which it does not do
        assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        broker.stop()
        assert second.join_answer().error_code == ErrorCode.NOT_COORDINATOR
