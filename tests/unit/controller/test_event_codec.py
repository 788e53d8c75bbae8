"""Events and replies that travel between brokers arrive as they were sent, and nothing else is accepted."""

import uuid
from types import MappingProxyType
from typing import Any

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, LeaderEpoch, ProducerId
from kaspar.controller.event_codec import decode_event, decode_reply, encode_event, encode_reply
from kaspar.controller.events import (
    DONE,
    AllocateProducerIds,
    AlterPartitions,
    BrokersSeen,
    ControllerEvent,
    CreatedTopic,
    CreateTopics,
    FenceBrokers,
    IsrChange,
    IsrOutcome,
    LogsRemoved,
    NewTopic,
    Outcome,
    ProducerIdBlock,
)
from kaspar.metadata.image import PartitionImage

ONE, TWO = BrokerId(1), BrokerId(2)
CHANGE = IsrChange(uuid.uuid4(), 3, LeaderEpoch(4), 5, (ONE, TWO))
PARTITION = PartitionImage((ONE, TWO), (ONE,), ONE, LeaderEpoch(4), 6, (TWO,), (), (uuid.uuid4(), uuid.uuid4()))
TOPIC = NewTopic("t", 2, -1, ((0, (1, 2)), (1, (2, 1))), (("retention.ms", "1"), ("cleanup.policy", None)))


@pytest.mark.parametrize(
    ("event", "reply"),
    [
        (
            CreateTopics((TOPIC,), validate_only=True),
            (CreatedTopic("t", Outcome(ErrorCode.INVALID_CONFIG, "no"), uuid.uuid4(), 2, 2, {"a": "b"}),),
        ),
        (AllocateProducerIds(ONE), ProducerIdBlock(ProducerId(3000), 1000)),
        (AlterPartitions(ONE, 7, (CHANGE,)), (IsrOutcome(CHANGE, DONE, PARTITION), IsrOutcome(CHANGE, DONE))),
        (LogsRemoved(TWO, (uuid.uuid4(),)), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_event_and_its_reply_arrive_as_they_were_sent(event: ControllerEvent[Any], reply: object) -> None:
    assert decode_event(*encode_event(event)) == event
    assert decode_reply(event, encode_reply(reply)) == reply


def test_settings_that_are_a_view_can_be_sent() -> None:
    reply = (CreatedTopic("t", DONE, configs=MappingProxyType({"a": "b"})),)
    assert decode_reply(CreateTopics(()), encode_reply(reply)) == (CreatedTopic("t", DONE, configs={"a": "b"}),)


@pytest.mark.parametrize(
    ("name", "payload", "code"),
    [
        ("NoSuchEvent", b"", ErrorCode.UNSUPPORTED_VERSION),
        (*encode_event(BrokersSeen({})), ErrorCode.UNSUPPORTED_VERSION),
        (*encode_event(FenceBrokers(((ONE, 1),))), ErrorCode.UNSUPPORTED_VERSION),
        ("CreateTopics", b"", ErrorCode.INVALID_REQUEST),
        ("CreateTopics", encode_reply({"topics": 3}), ErrorCode.INVALID_REQUEST),
        ("CreateTopics", b"\xc1" * 100, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_no_event_is_refused(name: str, payload: bytes, code: ErrorCode) -> None:
    with pytest.raises(Refused) as refused:
        decode_event(name, payload)
    assert refused.value.code is code


def test_a_reply_of_another_shape_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        decode_reply(AllocateProducerIds(ONE), encode_reply([1, 2, 3]))
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
