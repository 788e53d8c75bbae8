"""Transactional batches: what a leader asks the coordinator, which requests wait, and which errors producers get."""

import asyncio
import random
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.records import Codec
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.broker.transactions import Coordinator, P, Q, Question, batch_of, end, produce
from tests.unit.storage.logs import make_batch, read_values

NOISE = random.Random(1).randbytes(100_000)


def slow_batch(sequence: int) -> bytearray:
    """So much to inflate that it is checked in a thread."""
    return make_batch(
        [NOISE] * 2,
        codec=Codec.GZIP,
        producer_id=P.producer_id,
        producer_epoch=P.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )


def test_a_transactional_batch_in_a_request_without_a_transactional_id_refuses_all_of_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            partitions = await create_topic(broker, "t", 2)
            client = Client(broker)
            produce(client, ("t", 0, make_batch()), ("t", 1, batch_of(P, 0)), transactional_id=None)
            codes = [response.error_code for response in await client.produced()]
            assert codes == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
            assert [partition.log.log_end_offset for partition in partitions] == [0, 0]
            produce(client, ("t", 1, batch_of(P, 0)), transactional_id=None, acks=0)
            await until(client.transport.is_closing)

    run(scenario())


def test_a_request_holds_batches_of_one_transaction(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t", 2)
            coordinator = Coordinator(broker)
            client = Client(broker)
            produce(client, ("t", 0, batch_of(P, 0)), ("t", 1, batch_of(Q, 0)))
            codes = [response.error_code for response in await client.produced()]
            assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
            assert not coordinator.asked

    run(scenario())


@pytest.mark.parametrize(("version", "add"), [(11, False), (12, True)])
def test_the_coordinator_is_asked_once_for_each_transaction_and_request(
    tmp_path: Path, version: int, add: bool
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            first, _ = await create_topic(broker, "t", 2)
            coordinator = Coordinator(broker)
            client = Client(broker)
            produce(client, ("t", 0, batch_of(P, 0)), ("t", 1, batch_of(P, 0)), version=version)
            assert [response.error_code for response in await client.produced()] == [0, 0]
            both = frozenset({TopicPartition("t", 0), TopicPartition("t", 1)})
            assert coordinator.asked == [Question("t-id", P, both, add)]
            produce(client, ("t", 0, batch_of(P, 1)), version=version)
            assert [response.base_offset for response in await client.produced()] == [1]
            assert len(coordinator.asked) == 1, "the transaction is open there"
            assert await end(broker, first, P, committed=True) is ErrorCode.NONE
            produce(client, ("t", 0, batch_of(P, 2)), version=version)
            assert [response.base_offset for response in await client.produced()] == [3]
            assert len(coordinator.asked) == 2

    run(scenario())


def test_a_producer_under_verification_delays_no_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            coordinator = Coordinator(broker)
            waiting, other, plain = Client(broker), Client(broker), Client(broker)
            produce(other, ("t", 0, batch_of(Q, 0)), transactional_id="other")
            await other.produced()
            coordinator.hold()
            produce(waiting, ("t", 0, batch_of(P, 0)))
            await until(lambda: len(coordinator.asked) == 2)
            produce(other, ("t", 0, batch_of(Q, 1)), transactional_id="other")
            plain.produce(("t", 0, make_batch()))
            assert (await other.produced())[0].base_offset == 1
            assert (await plain.produced())[0].base_offset == 2
            assert not waiting.look()
            coordinator.respond()
            assert (await waiting.produced())[0].base_offset == 3
            assert partition.log.log_end_offset == 4

    run(scenario())


@pytest.mark.parametrize("slow", [0, 1, 2, None])
def test_batches_of_one_producer_are_written_in_the_order_in_which_they_came(tmp_path: Path, slow: int | None) -> None:
    """Also where one of them takes long to check, and where they come by different connections."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            coordinator = Coordinator(broker)
            coordinator.hold()
            clients = [Client(broker), Client(broker)]
            sequence = 0
            for number in range(4):
                batch = slow_batch(sequence) if number == slow else batch_of(P, sequence, b"1", b"2")
                produce(clients[number % 2], ("t", 0, batch))
                sequence += 2
            await until(lambda: bool(coordinator.asked))
            coordinator.respond()
            offsets = [(await clients[number % 2].produced())[0].base_offset for number in range(4)]
            assert offsets == [0, 2, 4, 6]
            assert len(coordinator.asked) == 1
            assert partition.log.producers.in_transaction(*P)
            assert broker.backlog.waiting_count == broker.backlog.waiting_bytes == 0

    run(scenario())


@pytest.mark.parametrize(
    ("code", "version", "expected"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_TXN_STATE, 11, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 12, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_a_producer_gets_an_error_that_its_version_understands(
    tmp_path: Path, code: ErrorCode, version: int, expected: ErrorCode
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            Coordinator(broker).code = code
            client = Client(broker)
            produce(client, ("t", 0, batch_of(P, 0)), version=version)
            (response,) = await client.produced()
            assert response.error_code == expected
            assert response.log_start_offset == -1, "no log has looked at it"
            assert partition.log.log_end_offset == 0

    run(scenario())


def test_a_verification_that_completes_after_the_marker_allows_no_append(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            coordinator = Coordinator(broker)
            coordinator.hold()
            client = Client(broker)
            produce(client, ("t", 0, batch_of(P, 0)))
            await until(lambda: bool(coordinator.asked))
            after = ProducerIdAndEpoch(P.producer_id, P.producer_epoch + 1)
            assert await end(broker, partition, after, committed=False, transaction_version=2) is ErrorCode.NONE
            coordinator.respond()
            assert [response.error_code for response in await client.produced()] == [ErrorCode.INVALID_TXN_STATE]
            assert partition.log.log_end_offset == 1, "the marker alone"
            assert partition.last_stable_offset == 1

    run(scenario())


def test_after_a_refusal_the_ones_behind_it_do_not_overtake_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            coordinator = Coordinator(broker)
            coordinator.hold()
            client = Client(broker)
            for sequence in range(2):
                produce(client, ("t", 0, batch_of(P, sequence)))
            await until(lambda: bool(coordinator.asked))
            coordinator.respond(ErrorCode.NOT_COORDINATOR)
            (first,) = await client.produced()
            assert first.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            coordinator.code = ErrorCode.NONE
            (second,) = await client.produced()
            assert second.error_code in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
            for sequence in range(2):
                produce(client, ("t", 0, batch_of(P, sequence, b"%d" % sequence)))
                assert [response.error_code for response in await client.produced()] == [0]
            assert read_values(partition.log) == [(0, b"0"), (1, b"1")]

    run(scenario())


@pytest.mark.parametrize("transactional_id", ["t-id", "another"])
@pytest.mark.parametrize("version", [11, 12])
def test_a_refused_claim_to_be_another_producer_disturbs_that_producer_in_nothing(
    tmp_path: Path, version: int, transactional_id: str
) -> None:
    """With an epoch that is far ahead, while the victim's own batch is asked about and when it is not."""

    async def scenario() -> None:
        async with running(tmp_path) as broker:
            (partition,) = await create_topic(broker, "t")
            coordinator = Coordinator(broker)
            thief, victim = Client(broker), Client(broker)
            claim = ProducerIdAndEpoch(P.producer_id, 32767)

            async def steal() -> None:
                coordinator.code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
                produce(thief, ("t", 0, batch_of(claim, 0)), version=version, transactional_id=transactional_id)
                assert [response.error_code for response in await thief.produced()] == [
                    ErrorCode.INVALID_PRODUCER_ID_MAPPING
                ]
                coordinator.code = ErrorCode.NONE

            await steal()
            produce(victim, ("t", 0, batch_of(P, 0)), version=version)
            assert [response.error_code for response in await victim.produced()] == [0]
            await steal()
            produce(victim, ("t", 0, batch_of(P, 1)), version=version)
            assert [response.error_code for response in await victim.produced()] == [0]
            assert await end(broker, partition, P, committed=True) is ErrorCode.NONE
            coordinator.hold()
            asked = len(coordinator.asked)
            produce(victim, ("t", 0, batch_of(P, 2)), version=version)
            await until(lambda: len(coordinator.asked) == asked + 1)
            if transactional_id == "another":  # a request with both ids queues behind the producer
                produce(thief, ("t", 0, batch_of(claim, 0)), version=version, transactional_id=transactional_id)
                await until(lambda: len(coordinator.asked) == asked + 2)
            coordinator.respond()
            assert [response.error_code for response in await victim.produced()] == [0]

    run(scenario())


def test_an_epoch_that_is_over_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            coordinator = Coordinator(broker)
            client = Client(broker)
            produce(client, ("t", 0, batch_of(P, 0)))
            await client.produced()
            before = ProducerIdAndEpoch(P.producer_id, P.producer_epoch - 1)
            produce(client, ("t", 0, batch_of(before, 0)))
            assert [response.error_code for response in await client.produced()] == [ErrorCode.INVALID_PRODUCER_EPOCH]
            assert len(coordinator.asked) == 1

    run(scenario())


@pytest.mark.parametrize(("version", "asked"), [(11, 0), (12, 1)])
def test_verification_can_be_switched_off_for_older_clients(tmp_path: Path, version: int, asked: int) -> None:
    async def scenario() -> None:
        async with running(tmp_path, transaction_partition_verification_enable="false") as broker:
            await create_topic(broker, "t")
            coordinator = Coordinator(broker)
            client = Client(broker)
            produce(client, ("t", 0, batch_of(P, 0)), version=version)
            assert [response.error_code for response in await client.produced()] == [0]
            assert len(coordinator.asked) == asked

    run(scenario())


def test_waiting_for_a_silent_coordinator_times_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, request_timeout_ms="50") as broker:
            await create_topic(broker, "t")
            Coordinator(broker).hold()
            client = Client(broker)
            produce(client, ("t", 0, batch_of(P, 0)))
            assert [response.error_code for response in await client.produced()] == [ErrorCode.NOT_ENOUGH_REPLICAS]

    run(scenario())


def test_a_bug_met_on_the_way_closes_the_connection_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            coordinator = Coordinator(broker)
            coordinator.hold()
            coordinator.problem = ZeroDivisionError("a bug")
            one, other = Client(broker), Client(broker)
            produce(one, ("t", 0, batch_of(P, 0)))
            await until(lambda: bool(coordinator.asked))
            produce(other, ("t", 0, batch_of(P, 0)))
            coordinator.respond()
            await until(one.transport.is_closing)
            coordinator.problem = None
            await until(lambda: other.transport.is_closing() or bool(other.look()))
            third = Client(broker)
            produce(third, ("t", 0, batch_of(P, 0)))
            assert [response.error_code for response in await third.produced()] == [0]
            assert broker.backlog.waiting_count == 0

    run(scenario())


def test_a_bug_met_while_writing_keeps_nobody_waiting_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            first, _ = await create_topic(broker, "t", 2)
            Coordinator(broker)
            client = Client(broker)
            with monkeypatch.context() as patch:
                patch.setattr(type(first), "append_as_leader", broken)
                produce(client, ("t", 0, batch_of(P, 0)), ("t", 1, batch_of(P, 0)))
                await until(client.transport.is_closing)
            client = Client(broker)
            produce(client, ("t", 0, batch_of(P, 0)), ("t", 1, batch_of(P, 0)))
            assert [response.error_code for response in await client.produced()] == [0, 0]
            assert broker.backlog.waiting_count == 0

    def broken(*arguments: object, **named: object) -> None:
        raise RuntimeError("a bug")

    run(scenario())


def test_a_stopping_broker_completes_requests_under_verification(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            coordinator = Coordinator(broker)
            coordinator.hold()
            client = Client(broker)
            produce(client, ("t", 0, batch_of(P, 0)))
            produce(client, ("t", 0, batch_of(P, 1)))
            await until(lambda: bool(coordinator.asked))
            stopping = asyncio.ensure_future(broker.stop())
            codes = [(await client.produced())[0].error_code for _ in range(2)]
            assert codes == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
            await stopping
            assert broker.backlog.waiting_count == 0

    run(scenario())


def test_a_bad_batch_is_refused_for_what_it_is_when_its_transaction_is_known(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as broker:
            await create_topic(broker, "t")
            Coordinator(broker)
            client = Client(broker)
            damaged = batch_of(P, 0)
            damaged[-1] ^= 1
            produce(client, ("t", 0, damaged))
            assert [response.error_code for response in await client.produced()] == [ErrorCode.CORRUPT_MESSAGE]
            produce(client, ("t", 0, batch_of(P, 0)))
            assert [response.error_code for response in await client.produced()] == [0]

    run(scenario())
