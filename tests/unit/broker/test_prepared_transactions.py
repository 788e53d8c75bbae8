"""While a transaction is prepared, whoever still has the epoch of its records writes nothing more into it."""

import random
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.broker.server import Broker
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kaspar.records import Codec
from tests.unit.broker.running import Client, create_topic, run, running, until
from tests.unit.broker.transactions import batch_of, produce
from tests.unit.storage.logs import make_batch

TRANSACTIONAL_ID = "t-id"
NOISE = random.Random(1).randbytes(100_000)
SETTINGS = {
    "transaction_two_phase_commit_enable": "true",
    "transaction_state_log_num_partitions": "1",
    "offsets_topic_num_partitions": "1",
}


async def coordinated(broker: Broker) -> None:
    await broker.transactions.runtime.ensure_topic()
    await broker.groups.runtime.ensure_topic()
    await until(lambda: bool(broker.transactions.runtime.active_shards() and broker.groups.runtime.active_shards()))


async def init(client: Client, *, prepare: ProducerIdAndEpoch | None = None) -> ProducerIdAndEpoch:
    producer_id, producer_epoch = prepare or (-1, -1)
    client.send(
        InitProducerIdRequest(
            transactional_id=TRANSACTIONAL_ID,
            transaction_timeout_ms=60_000,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            enable_2pc=prepare is not None,
            keep_prepared_txn=prepare is not None,
        ),
        version=6,
    )
    answer = await client.answer(InitProducerIdResponse)
    assert answer.error_code == ErrorCode.NONE
    return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


def slow_batch(producer: ProducerIdAndEpoch, sequence: int) -> bytearray:
    return make_batch(
        [NOISE],
        codec=Codec.GZIP,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )


def test_the_epoch_of_a_prepared_transactions_records_is_fenced_at_its_partitions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            written, untouched = await create_topic(broker, "t", 2)
            await coordinated(broker)
            owner, zombie = Client(broker), Client(broker)
            before = await init(owner)
            produce(zombie, ("t", 0, batch_of(before, 0)))
            assert [answer.error_code for answer in await zombie.produced()] == [0]
            prepared = await init(owner, prepare=before)
            for partition, batch in ((0, batch_of(before, 1)), (0, slow_batch(before, 1)), (1, batch_of(before, 0))):
                produce(zombie, ("t", partition, batch))
                assert [answer.error_code for answer in await zombie.produced()] == [ErrorCode.INVALID_PRODUCER_EPOCH]
            produce(owner, ("t", 0, batch_of(prepared, 0)))
            assert [answer.error_code for answer in await owner.produced()] == [ErrorCode.INVALID_TXN_STATE]
            assert [written.log.log_end_offset, untouched.log.log_end_offset] == [1, 0]
            assert written.last_stable_offset == 0
            owner.send(
                EndTxnRequest(
                    transactional_id=TRANSACTIONAL_ID,
                    producer_id=prepared.producer_id,
                    producer_epoch=prepared.producer_epoch,
                    committed=True,
                ),
                version=5,
            )
            assert (await owner.answer(EndTxnResponse)).error_code == ErrorCode.NONE
            await until(lambda: written.last_stable_offset == written.log.log_end_offset)

    run(scenario())


def test_a_batch_that_is_being_checked_when_its_transaction_is_prepared_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            (partition,) = await create_topic(broker, "t")
            await coordinated(broker)
            client = Client(broker)
            producer = await init(client)
            produce(client, ("t", 0, batch_of(producer, 0)))
            await client.produced()
            fenced = broker.transactions.runtime.shard_of(TRANSACTIONAL_ID)
            produce(client, ("t", 0, slow_batch(producer, 1)))
            monkeypatch.setattr(fenced, "is_fenced", lambda transactional_id, pair: True)
            assert [answer.error_code for answer in await client.produced()] == [ErrorCode.INVALID_PRODUCER_EPOCH]
            assert partition.log.log_end_offset == 1

    run(scenario())


def test_offsets_are_committed_by_the_owner_of_a_transaction_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, **SETTINGS) as broker:
            await create_topic(broker, "t")
            await coordinated(broker)
            client = Client(broker)
            producer = await init(client)
            offset = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=None)
            request = TxnOffsetCommitRequest(
                transactional_id=TRANSACTIONAL_ID,
                group_id="g",
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                topics=(TxnOffsetCommitRequestTopic(name="t", partitions=(offset,)),),
            )
            codes = []
            for _ in range(2):
                client.send(request, version=5)
                answer = await client.answer(TxnOffsetCommitResponse)
                codes.append(answer.topics[0].partitions[0].error_code)
                if len(codes) == 1:
                    await init(client, prepare=producer)
            assert codes[0] == ErrorCode.NONE
            assert codes[1] == ErrorCode.INVALID_PRODUCER_EPOCH

    run(scenario())
