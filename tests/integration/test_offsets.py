"""Committed offsets over the wire: every version of the four requests, what is refused and in which words, and what a
transaction does to them. `--against kafka` runs the same tests there.
"""

import itertools
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kaspar.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kaspar.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.peers.against import broker_to_test
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.process import BrokerProcess
from tests.peers.raw_client import RawClient
from tests.peers.raw_offsets import COMMIT_BY_ID, FETCH_BY_ID, FetchedOffset, GroupRefused, RawOffsets
from tests.peers.raw_transactions import RawProducer, until_settled
from tests.peers.wire import leads

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offset.metadata.max.bytes": "100",
}
PARTITIONS = 3
NO_OFFSET = FetchedOffset(-1)
UNSTABLE = FetchedOffset(-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
COMMIT_VERSIONS = range(2, 11)
FETCH_VERSIONS = range(1, 11)

NewTopic = Callable[[], str]


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_to_test(request, tmp_path_factory.mktemp("broker"), SETTINGS) as running:
        yield running


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as client:
        yield client


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"name-{number}" for number in itertools.count())


@pytest.fixture
def new_topic(broker: BrokerProcess, client: RawClient, names: Iterator[str]) -> NewTopic:
    def create() -> str:
        name = next(names)
        make_topic(broker, client, name)
        return name

    return create


@pytest.fixture
def topic(new_topic: NewTopic) -> str:
    return new_topic()


@pytest.fixture
def offsets(client: RawClient, names: Iterator[str]) -> RawOffsets:
    return RawOffsets(client, next(names))


@pytest.fixture
def producer(client: RawClient, names: Iterator[str]) -> RawProducer:
    producer = RawProducer(client, next(names))
    producer.begin_life()
    return producer


def make_topic(broker: BrokerProcess, client: RawClient, name: str) -> None:
    assert client.create_topic(name, partitions=PARTITIONS) == ErrorCode.NONE
    wait_until(lambda: leads(broker.host, broker.port, name, range(PARTITIONS)), "the topic has leaders")


# -- commits and questions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", COMMIT_VERSIONS)
def test_every_version_commits(offsets: RawOffsets, topic: str, version: int) -> None:
    assert offsets.commit(topic, {0: 5, 2: 7}, version, metadata="m", leader_epoch=0) == {0: 0, 2: 0}
    leader_epoch = 0 if version >= 6 else -1
    expected = (
        FetchedOffset(5, metadata="m", leader_epoch=leader_epoch),
        FetchedOffset(7, metadata="m", leader_epoch=leader_epoch),
    )
    assert offsets.fetch(topic, 0, 1, 2) == {0: expected[0], 1: NO_OFFSET, 2: expected[1]}


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_every_version_asks(offsets: RawOffsets, topic: str, version: int) -> None:
    offsets.commit(topic, {1: 5}, metadata=None, leader_epoch=0)
    leader_epoch = 0 if version >= 5 else -1
    assert offsets.fetch(topic, 0, 1, version=version) == {0: NO_OFFSET, 1: FetchedOffset(5, leader_epoch=leader_epoch)}


@pytest.mark.parametrize("version", FETCH_VERSIONS[1:])
def test_every_version_but_the_first_asks_for_all(offsets: RawOffsets, new_topic: NewTopic, version: int) -> None:
    topics = new_topic(), new_topic()
    for number, topic in enumerate(topics):
        offsets.commit(topic, {number: 5})
    names = [str(offsets.topic_id(topic)) if version >= FETCH_BY_ID else topic for topic in topics]
    assert offsets.fetch_all(version=version) == {(names[0], 0): FetchedOffset(5), (names[1], 1): FetchedOffset(5)}


def test_commit_of_a_partition_that_is_not_there_is_refused_alone(offsets: RawOffsets, topic: str) -> None:
    refused = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for version in (COMMIT_VERSIONS[0], COMMIT_BY_ID):
        codes = offsets.commit(topic, {0: 5, PARTITIONS: 5, -1: 5, 1: 5}, version)
        assert codes == {0: 0, PARTITIONS: refused, -1: refused, 1: 0}
    assert offsets.fetch_all() == {(topic, 0): FetchedOffset(5), (topic, 1): FetchedOffset(5)}


def test_commit_for_a_topic_that_is_not_there_is_refused(offsets: RawOffsets) -> None:
    assert offsets.commit("nothing", {0: 5}) == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    offsets.topic_ids["nothing"] = uuid.uuid4()
    assert offsets.commit("nothing", {0: 5}, COMMIT_BY_ID) == {0: ErrorCode.UNKNOWN_TOPIC_ID}
    assert offsets.fetch("nothing", 0) == {0: NO_OFFSET}
    assert offsets.fetch("nothing", 0, version=FETCH_BY_ID) == {0: FetchedOffset(-1, ErrorCode.UNKNOWN_TOPIC_ID)}


def test_metadata_that_is_too_long_is_refused_alone(offsets: RawOffsets, topic: str) -> None:
    assert offsets.commit(topic, {0: 5}, metadata="x" * 100) == {0: 0}
    assert offsets.commit(topic, {0: 6, 1: 6}, metadata="x" * 101) == dict.fromkeys(
        (0, 1), ErrorCode.OFFSET_METADATA_TOO_LARGE
    )
    assert offsets.fetch(topic, 0)[0].offset == 5


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_member_of_a_group_that_is_not_there_commits_nothing(
    offsets: RawOffsets, topic: str, version: int, code: ErrorCode
) -> None:
    assert offsets.commit(topic, {0: 5, 1: 5}, version, generation=1, member_id="m") == {0: code, 1: code}
    assert offsets.fetch_all() == {}


def test_group_without_members_knows_no_member(offsets: RawOffsets, topic: str) -> None:
    offsets.commit(topic, {0: 5})
    codes = offsets.commit(topic, {0: 6}, generation=1, member_id="m")
    assert codes == {0: ErrorCode.UNKNOWN_MEMBER_ID}
    assert offsets.fetch(topic, 0)[0].offset == 5


def test_group_may_have_an_empty_id(client: RawClient, topic: str) -> None:
    offsets = RawOffsets(client, "")
    assert offsets.commit(topic, {0: 5}) == {0: 0}
    assert offsets.fetch(topic, 0)[0].offset == 5


def test_several_groups_are_asked_at_once(client: RawClient, names: Iterator[str], topic: str) -> None:
    groups = [RawOffsets(client, next(names)) for _ in range(4)]
    for number, offsets in enumerate(groups[:3]):
        offsets.commit(topic, {0: number})
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=(0,))
    request = OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=offsets.group, topics=(wanted,)) for offsets in groups)
    )
    response = client.call(request, OffsetFetchResponse, 8)
    assert [(group.group_id, group.topics[0].partitions[0].committed_offset) for group in response.groups] == [
        (offsets.group, number) for offsets, number in zip(groups, (0, 1, 2, -1), strict=True)
    ]


def test_recreated_topic_has_no_offsets(broker: BrokerProcess, client: RawClient, offsets: RawOffsets) -> None:
    topic = f"recreated-for-{offsets.group}"
    make_topic(broker, client, topic)
    offsets.commit(topic, {0: 5}, COMMIT_BY_ID)
    assert client.delete_topic(topic) == ErrorCode.NONE
    wait_until(lambda: not offsets.fetch_all(), "what was committed for the topic is gone")
    make_topic(broker, client, topic)
    former_id = offsets.topic_ids.pop(topic)
    assert offsets.topic_id(topic) != former_id
    assert offsets.fetch(topic, 0, version=FETCH_BY_ID) == {0: NO_OFFSET}


# -- deletion ----------------------------------------------------------------------------------------------------------


def test_offsets_are_deleted_by_hand(offsets: RawOffsets, topic: str) -> None:
    offsets.commit(topic, {0: 5, 1: 5})
    refused = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert offsets.delete(topic, 0, 2, PARTITIONS) == {0: 0, 2: 0, PARTITIONS: refused}
    assert offsets.delete("nothing", 0) == {0: refused}
    assert offsets.fetch_all() == {(topic, 1): FetchedOffset(5)}


def test_offsets_of_no_group_are_not_deleted(client: RawClient, offsets: RawOffsets, topic: str) -> None:
    for name in (topic, "nothing"):
        with pytest.raises(GroupRefused) as refusal:
            offsets.delete(name, 0)
        assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    with pytest.raises(GroupRefused) as refusal:
        RawOffsets(client, "").delete(topic, 0)
    assert refusal.value.code is ErrorCode.INVALID_GROUP_ID


# -- transactions ------------------------------------------------------------------------------------------------------


def add_offsets(producer: RawProducer, group: str) -> ErrorCode:
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=group,
    )
    return ErrorCode(until_settled(lambda: producer.client.call(request, AddOffsetsToTxnResponse)).error_code)


def commit_in_transaction(
    producer: RawProducer, group: str, topic: str, offset: int, version: int, **values: int
) -> ErrorCode:
    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=values.get("epoch", producer.epoch),
        generation_id=values.get("generation", -1),
        member_id="m" if "generation" in values else "",
        topics=(
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=(
                    TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m"),
                ),
            ),
        ),
    )
    (expected,) = producer.client.call(request, TxnOffsetCommitResponse, version).topics
    return ErrorCode(expected.partitions[0].error_code)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [True, False], ids=["committed", "aborted"])
def test_offsets_of_a_transaction_count_when_it_commits(
    producer: RawProducer, offsets: RawOffsets, topic: str, version: int, committed: bool
) -> None:
    offsets.commit(topic, {0: 5})
    if version < 5:
        producer.version = 1
        assert add_offsets(producer, offsets.group) == ErrorCode.NONE
    assert commit_in_transaction(producer, offsets.group, topic, 9, version) == ErrorCode.NONE
    assert offsets.fetch(topic, 0, require_stable=True) == {0: UNSTABLE}
    assert offsets.fetch_all(require_stable=True) == {(topic, 0): UNSTABLE}
    assert offsets.fetch(topic, 0) == {0: FetchedOffset(5)}

    assert producer.end(commit=committed).error_code == ErrorCode.NONE
    expected = FetchedOffset(9, metadata="m") if committed else FetchedOffset(5)
    wait_until(
        lambda: offsets.fetch(topic, 0, require_stable=True) == {0: expected},
        f"the transaction's end leads to {expected}",
    )


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)])
def test_offsets_of_a_group_that_was_not_added_are_refused(
    producer: RawProducer, offsets: RawOffsets, topic: str, version: int, code: ErrorCode
) -> None:
    """Otherwise nobody would ever end what they are part of."""
    producer.version = 1
    producer.add_partitions(topic, 0)
    assert commit_in_transaction(producer, offsets.group, topic, 9, version) == code
    assert offsets.fetch(topic, 0, require_stable=True) == {0: NO_OFFSET}


def test_producer_of_a_former_life_commits_nothing(producer: RawProducer, offsets: RawOffsets, topic: str) -> None:
    producer.begin_life()
    code = commit_in_transaction(producer, offsets.group, topic, 9, 5, epoch=producer.epoch - 1)
    assert code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert offsets.fetch(topic, 0, require_stable=True) == {0: NO_OFFSET}


def test_refusals_of_a_commit_in_a_transaction(producer: RawProducer, offsets: RawOffsets, topic: str) -> None:
    unknown = commit_in_transaction(producer, offsets.group, "nothing", 9, 5)
    assert unknown is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit_in_transaction(producer, "", topic, 9, 5) is ErrorCode.INVALID_GROUP_ID
    generation = commit_in_transaction(producer, offsets.group, topic, 9, 5, generation=3)
    assert generation is ErrorCode.ILLEGAL_GENERATION
    assert offsets.fetch(topic, 0, require_stable=True) == {0: NO_OFFSET}


# -- clients and restarts ----------------------------------------------------------------------------------------------


def consumer(broker: BrokerProcess, group: str) -> Consumer:
    return Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 0}
    )


def test_consumer_goes_on_where_it_committed(broker: BrokerProcess, client: RawClient, topic: str) -> None:
    client.produce(topic, [b"0", b"1", b"2", b"3"])
    reader = consumer(broker, f"readers of {topic}")
    reader.commit(offsets=[TopicPartition(topic, 0, 2, metadata="two")], asynchronous=False)
    (found,) = reader.committed([TopicPartition(topic, 0)], timeout=30)
    assert (found.offset, found.metadata) == (2, "two")
    reader.assign([TopicPartition(topic, 0)])
    read = reader.poll(30)
    assert read is not None
    assert read.value() == b"2"
    reader.close()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_offsets_outlive_the_broker(tmp_path: Path, end: str) -> None:
    with KasparProcess(tmp_path, overrides=SETTINGS) as broker:
        with RawClient(broker.port) as client:
            make_topic(broker, client, "kept")
            producer = RawProducer(client, "producer")
            producer.begin_life()
            offsets = RawOffsets(client, "group")
            offsets.commit("kept", {0: 5, 1: 6}, metadata="m")
            offsets.delete("kept", 1)
            assert commit_in_transaction(producer, "group", "kept", 9, 5) == ErrorCode.NONE
        broker.stop() if end == "stop" else broker.kill()
        broker.start()
        with RawClient(broker.port) as client:
            offsets = RawOffsets(client, "group")
            wait_until(lambda: is_loaded(offsets), "the coordinator has read its log")
            assert offsets.fetch_all() == {("kept", 0): FetchedOffset(5, metadata="m")}
            assert offsets.fetch("kept", 0, require_stable=True) == {0: UNSTABLE}
            producer.client = client
            assert producer.end(commit=True).error_code == ErrorCode.NONE
            wait_until(
                lambda: offsets.fetch_all(require_stable=True) == {("kept", 0): FetchedOffset(9, metadata="m")},
                "commit",
            )


def is_loaded(offsets: RawOffsets) -> bool:
    try:
        offsets.fetch_all()
    except GroupRefused as refusal:
        if refusal.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return False
        raise
    return True
