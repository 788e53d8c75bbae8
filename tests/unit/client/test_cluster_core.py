"""The decisions of the cluster client without a shell: what they ask for, and for how long."""

from collections.abc import Callable
from typing import TypeVar

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.cluster_core import RETRY_BACKOFF_S, ClusterCore
from kaspar.client.core import ClientCore
from kaspar.client.steps import Address, Connect, Send, Step, Steps, Wait
from kaspar.protocol.messages import list_offsets, metadata
from kaspar.protocol.schema import Message

A, B, C = ("a", 1), ("b", 2), ("c", 3)
_Result = TypeVar("_Result")


class Shell:
    """Performs steps by a script, and moves the clock instead of waiting."""

    def __init__(self, respond: Callable[[Address, Message], Message]) -> None:
        self.respond = respond
        self.unreachable: set[Address] = set()
        self.connected: set[Address] = set()
        self.steps: list[Step] = []
        self.now_s = 0.0
        self.core = ClusterCore(
            "a:1, b:2", timeout_s=1.0, is_connected=self.connected.__contains__, clock_s=lambda: self.now_s
        )

    def run(self, steps: Steps[_Result]) -> _Result:
        try:
            step = next(steps)
            while True:
                self.steps.append(step)
                try:
                    result = self._perform(step)
                except OSError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as returned:
            value: _Result = returned.value
            return value

    def _perform(self, step: Step) -> object:
        match step:
            case Wait(seconds):
                self.now_s += seconds
                return None
            case Connect(address) | Send(address):
                if address in self.unreachable:
                    raise ConnectionRefusedError
                self.connected.add(address)
                return self.respond(address, step.message) if isinstance(step, Send) else ClientCore()
        raise AssertionError(step)

    def asked(self, kind: type[Message]) -> list[Address]:
        return [step.address for step in self.steps if isinstance(step, Send) and isinstance(step.message, kind)]


def metadata_response(leader_id: int, brokers: dict[int, Address]) -> metadata.MetadataResponse:
    partition = metadata.MetadataResponsePartition(
        partition_index=0, leader_id=leader_id, replica_nodes=(), isr_nodes=()
    )
    return metadata.MetadataResponse(
        brokers=tuple(
            metadata.MetadataResponseBroker(node_id=node_id, host=host, port=port)
            for node_id, (host, port) in brokers.items()
        ),
        topics=(metadata.MetadataResponseTopic(name="t", partitions=(partition,)),),
        controller_id=1,
    )


def offset_response(code: ErrorCode) -> list_offsets.ListOffsetsResponse:
    found = list_offsets.ListOffsetsPartitionResponse(partition_index=0, error_code=code, offset=42)
    topic = list_offsets.ListOffsetsTopicResponse(name="t", partitions=(found,))
    return list_offsets.ListOffsetsResponse(topics=(topic,))


def test_leader_that_moves_is_followed() -> None:
    leaders = iter([1, 2])

    def respond(address: Address, message: Message) -> Message:
        if isinstance(message, metadata.MetadataRequest):
            return metadata_response(next(leaders), {1: B, 2: C})
        return offset_response(ErrorCode.NONE if address == C else ErrorCode.NOT_LEADER_OR_FOLLOWER)

    shell = Shell(respond)
    assert shell.run(shell.core.offset_at("t", 0, -1)) == 42
    assert shell.asked(list_offsets.ListOffsetsRequest) == [B, C]
    assert shell.steps.count(Wait(RETRY_BACKOFF_S)) == 1


@pytest.mark.parametrize("unreachable", [False, True])
def test_retries_end_when_the_time_is_up(unreachable: bool) -> None:
    def respond(address: Address, message: Message) -> Message:
        if isinstance(message, metadata.MetadataRequest):
            return metadata_response(3, {3: C})
        return offset_response(ErrorCode.LEADER_NOT_AVAILABLE)

    shell = Shell(respond)
    shell.unreachable = {C} if unreachable else set()
    with pytest.raises((ConnectionRefusedError, Refused)) as failure:
        shell.run(shell.core.offset_at("t", 0, -1))
    assert isinstance(failure.value, ConnectionRefusedError) is unreachable
    assert 1.0 < shell.now_s < 1.2
    assert len(shell.asked(list_offsets.ListOffsetsRequest)) == len(shell.asked(metadata.MetadataRequest))


def test_final_error_is_not_retried() -> None:
    def respond(address: Address, message: Message) -> Message:
        if isinstance(message, metadata.MetadataRequest):
            return metadata_response(1, {1: A})
        return offset_response(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)

    shell = Shell(respond)
    with pytest.raises(Refused, match="listing offsets of t-0: UNSUPPORTED_FOR_MESSAGE_FORMAT"):
        shell.run(shell.core.offset_at("t", 0, -1))
    assert shell.now_s == 0


def test_brokers_with_a_connection_are_asked_first() -> None:
    shell = Shell(lambda address, message: metadata_response(1, {1: A}))
    shell.connected.add(B)
    shell.run(shell.core.refresh_metadata([]))
    assert shell.steps[0] == Connect(B)
    shell.unreachable = {B}
    shell.connected.clear()
    shell.steps.clear()
    shell.run(shell.core.refresh_metadata([]))
    assert shell.asked(metadata.MetadataRequest) == [A]


def test_metadata_is_refreshed_after_a_broker_was_lost() -> None:
    shell = Shell(lambda address, message: metadata_response(3, {1: A, 3: C}))
    where = TopicPartition("t", 0)
    for _ in range(2):
        assert shell.run(shell.core.leader_of(where)) == 3
    assert len(shell.asked(metadata.MetadataRequest)) == 1
    shell.unreachable = {C}
    with pytest.raises(ConnectionRefusedError):
        shell.run(shell.core.request_at(C, metadata.MetadataRequest(topics=None), metadata.MetadataResponse))
    assert shell.run(shell.core.leader_of(where)) == 3
    assert shell.asked(metadata.MetadataRequest) == [A, C, A]
