"""The wall clock is set forward and back: no session and no transaction ends of it, and those that should end still do.

The broker's wall clock alone jumps; time goes on as ever. So whatever is measured with the wall clock shows. And no
record is deleted for its age because a clock was wrong for a while.
"""

import random
import threading
import time
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.client import Client
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.chaos.conftest import StartBroker
from tests.chaos.faulty_clock import FaultyClock
from tests.chaos.history import Fate, read_partition
from tests.chaos.pipeline import COORDINATION
from tests.peers.lone_members import LoneConsumerMember, LoneMember
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import EARLIEST
from tests.peers.raw_offsets import commit, committed
from tests.peers.raw_transactions import GROUP, RawProducer, find_coordinator

TOPIC = "orders"
FLEETING = "clicks"
HOUR, DAY = 3600, 86_400
YEAR = 365 * DAY
JUMPS = [HOUR, -HOUR, DAY, -DAY, 5 * DAY]  # shorter than what is kept for days
SETTLE_SECONDS = 1.0  # longer than it takes the broker's timers to come round
LONG_SESSION_MS = 20_000
EXPIRES_SOON = {
    "offsets.retention.minutes": "60",
    "offsets.retention.check.interval.ms": "50",
    "transactional.id.expiration.ms": str(HOUR * 1000),
    "transaction.remove.expired.transaction.cleanup.interval.ms": "50",
    "transaction.two.phase.commit.enable": "true",
    "log.retention.check.interval.ms": "50",
}


@pytest.fixture
def clock(tmp_path: Path) -> FaultyClock:
    return unless_missing(lambda: FaultyClock.prepare(tmp_path))


@pytest.fixture
def broker(start_broker: StartBroker, clock: FaultyClock) -> ObservedBroker:
    sessions = {
        "group.consumer.session.timeout.ms": str(LONG_SESSION_MS),
        "group.consumer.max.session.timeout.ms": str(LONG_SESSION_MS),
    }
    broker = start_broker(overrides=COORDINATION | sessions, environment=clock.environment)
    with broker.client() as client:
        # By default a record from the future, as seen by a clock that went back, is refused: as in Kafka.
        assert client.create_topic(TOPIC, configs={"message.timestamp.type": "LogAppendTime"}) == 0
    return broker


def test_the_clock_of_the_broker_does_jump(broker: ObservedBroker, clock: FaultyClock) -> None:
    """The counter-proof: what the broker writes down is the time that we set."""
    clock.set_ahead(DAY)
    with broker.client() as client:
        assert client.produce(TOPIC, [b"value"]).error_code == ErrorCode.NONE
        (record,) = client.read_all(TOPIC)
    assert abs(record.timestamp / 1000 - time.time() - DAY) < HOUR


def test_jumps_end_no_session_and_no_transaction(
    broker: ObservedBroker, clock: FaultyClock, rng: random.Random
) -> None:
    with broker.client() as client:
        classic = LoneMember(client, "classic", session_timeout_ms=LONG_SESSION_MS)
        classic.join()
        modern = LoneConsumerMember(client, "modern", TOPIC)
        modern.join()
        producer = RawProducer(client, "transfers", timeout_ms=LONG_SESSION_MS)
        producer.begin_life()
        assert commit(client, "readers", TOPIC, {0: 5}) == ErrorCode.NONE
        generation, epoch = classic.generation, modern.epoch
        values = []
        for jump in rng.sample(JUMPS, len(JUMPS)):
            value = f"after a jump of {jump} s".encode()
            assert producer.write(TOPIC, value).error_code == ErrorCode.NONE
            values.append(value)
            clock.set_ahead(jump)
            threading.Event().wait(SETTLE_SECONDS)
            assert classic.heartbeat() == ErrorCode.NONE
            assert modern.heartbeat() == ErrorCode.NONE
        assert (classic.generation, modern.epoch) == (generation, epoch)
        assert committed(client, "readers", TOPIC, 0) == (ErrorCode.NONE, {0: 5})
        assert producer.end(commit=True).error_code == ErrorCode.NONE
    wait_until(lambda: _fates(broker) == dict.fromkeys(values, Fate.COMMITTED), "one transaction over all jumps")


@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forward", "back"])
def test_what_is_to_time_out_does_so_after_a_jump(broker: ObservedBroker, clock: FaultyClock, jump: int) -> None:
    """A clock that went back a day does not give the dead another day."""
    with broker.client() as client:
        silent = LoneMember(client, "classic", session_timeout_ms=600)
        silent.join()
        producer = RawProducer(client, "transfers", timeout_ms=600)
        producer.begin_life()
        assert producer.write(TOPIC, b"abandoned").error_code == ErrorCode.NONE
        clock.set_ahead(jump)
        wait_until(lambda: _fates(broker) == {b"abandoned": Fate.ABORTED}, "the transaction is aborted", seconds=15)
        threading.Event().wait(SETTLE_SECONDS)
        assert silent.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_clock_that_is_a_year_ahead_for_a_while_deletes_no_record(
    start_broker: StartBroker, clock: FaultyClock
) -> None:
    """Neither one that jumps while the broker runs, nor one that is wrong when it starts. What is old by the time that
    has really passed goes meanwhile.
    """
    often = {"log.retention.check.interval.ms": "100"}
    broker = start_broker(overrides=often, environment=clock.environment)
    with broker.client() as client:
        assert client.create_topic(TOPIC, configs={"retention.ms": str(7 * DAY * 1000)}) == 0
        assert client.create_topic(FLEETING, configs={"retention.ms": "1"}) == 0
        assert client.produce(TOPIC, [b"kept"]).error_code == ErrorCode.NONE
    for life in (1, 2):
        clock.set_ahead(YEAR)
        wait_until(lambda: len(broker.log_lines("the clock has jumped ahead")) == life, "the jump is seen")  # noqa: B023
        with broker.client() as client:
            last = client.produce(FLEETING, [b"gone"]).base_offset
            wait_until(lambda: client.offset_at(FLEETING, EARLIEST)[1] > last, "retention goes on")  # noqa: B023
            assert client.read_values(TOPIC) == [b"kept"]
        if life == 1:
            broker.kill()
            broker.start()


def test_a_clock_that_is_a_year_off_for_a_while_forgets_nothing_else_either(
    start_broker: StartBroker, clock: FaultyClock
) -> None:
    """Neither offsets of a group that nobody is in, nor the last batches of a producer, nor a transactional id, nor a
    transaction that waits for its owner: neither while the broker runs, nor when it starts. And what happens while the
    clock is a year behind is not a year old when it is right again.
    """
    broker = start_broker(overrides=COORDINATION | EXPIRES_SOON, environment=clock.environment)
    with broker.client() as client:
        assert client.create_topic(TOPIC, configs={"message.timestamp.type": "LogAppendTime"}) == 0
        find_coordinator(client, "readers", GROUP)
        assert commit(client, "readers", TOPIC, {0: 5}) == ErrorCode.NONE
        idle = RawProducer(client, "idle").begin_life()
        producer_id = client.new_producer_id()
        sent = client.produce(TOPIC, [b"once"], producer_id=producer_id, base_sequence=0)
        assert sent.error_code == ErrorCode.NONE
        waiting = RawProducer(client, "waiting")
        waiting.begin_life()
        assert waiting.write(TOPIC, b"prepared").error_code == ErrorCode.NONE
        prepare = InitProducerIdRequest(
            transactional_id="waiting",
            transaction_timeout_ms=LONG_SESSION_MS,
            producer_id=waiting.producer_id,
            producer_epoch=waiting.epoch,
            enable_2pc=True,
            keep_prepared_txn=True,
        )
        prepared = client.call(prepare, InitProducerIdResponse, 6)
        assert prepared.error_code == ErrorCode.NONE
        clock.set_ahead(-YEAR)
        assert commit(client, "late readers", TOPIC, {0: 7}) == ErrorCode.NONE
        clock.set_ahead(0)
    for life in (1, 2):
        clock.set_ahead(YEAR)
        wait_until(lambda: len(broker.log_lines("the clock has jumped ahead")) >= life, "the jump is seen")  # noqa: B023
        threading.Event().wait(SETTLE_SECONDS)
        with broker.client() as client:
            for group, offset in (("readers", 5), ("late readers", 7)):
                wait_until(lambda: committed(client, group, TOPIC, 0) == (ErrorCode.NONE, {0: offset}), group)  # noqa: B023
            again = client.produce(TOPIC, [b"once"], producer_id=producer_id, base_sequence=0)
            assert (again.error_code, again.base_offset) == (ErrorCode.NONE, sent.base_offset), "it is a retry"
        if life == 1:
            broker.kill()
            broker.start()
    with broker.client() as client:
        assert RawProducer(client, "idle").begin_life().producer_id == idle.producer_id
        waiting.client, waiting.producer_id, waiting.epoch = client, prepared.producer_id, prepared.producer_epoch
        assert waiting.end(commit=True).error_code == ErrorCode.NONE
    wait_until(lambda: _fates(broker)[b"prepared"] is Fate.COMMITTED, "its owner has decided")


def _fates(broker: ObservedBroker) -> dict[bytes, Fate]:
    with Client(broker.bootstrap) as client:
        return {record.value or b"": record.fate for record in read_partition(client, TOPIC, 0).records}
