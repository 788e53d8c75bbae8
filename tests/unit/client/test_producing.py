"""A producer against a scripted broker: retries, order, moved leaders, errors."""

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_OFFSET, ProducerIdAndEpoch, TopicPartition
from kaspar.client import Client
from kaspar.client.delivery_terms import DeliveryTerms, TopicPartitions
from kaspar.client.producing import RawProducer
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages import metadata, produce
from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.protocol.schema import Message
from kaspar.records import Record, build_batch, iter_records, read_header
from tests.unit.client.scripted import HANG_UP, ScriptedBroker, api_versions

TOPIC_IDS = {"t": UUID(int=77), "u": UUID(int=78)}
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
FIRST_OFFSET = 100  # of what these tests write
TERMS = DeliveryTerms(retry_backoff_ms=1, retry_backoff_max_ms=2, delivery_timeout_ms=20_000, request_timeout_ms=5_000)

Response = ErrorCode | bytes | None


class Cluster:
    """One broker with topics of two partitions. It looks at sequence numbers, and keeps what it stores; `responses` are
    those to the first requests."""

    def __init__(self) -> None:
        self.responses: list[Response] = []
        self.topic_problems: list[ErrorCode] = []
        self.stored: dict[int, list[bytes]] = {0: [], 1: []}
        self.sizes: list[int] = []
        self.versions: list[int] = []
        self.acks: list[int] = []
        self.created = 0
        self.broker = ScriptedBroker(self.handle)
        self.brokers = {5: self.broker.port}
        self.leader = 5

    def handle(self, header: RequestHeader, request: Message) -> Message | bytes | None:
        match request:
            case ApiVersionsRequest():
                return api_versions()
            case metadata.MetadataRequest():
                return self.metadata(request)
            case produce.ProduceRequest():
                return self.produce(header, request)
            case _:
                raise AssertionError(f"nobody should ask for {request}")

    def metadata(self, request: metadata.MetadataRequest) -> Message:
        self.created += request.allow_auto_topic_creation
        problem = self.topic_problems.pop(0) if self.topic_problems else ErrorCode.NONE
        return metadata.MetadataResponse(
            brokers=tuple(
                metadata.MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=port)
                for node_id, port in self.brokers.items()
            ),
            controller_id=5,
            topics=tuple(
                metadata.MetadataResponseTopic(
                    error_code=problem,
                    name=topic.name,
                    topic_id=TOPIC_IDS[topic.name or ""],
                    partitions=tuple(
                        metadata.MetadataResponsePartition(
                            partition_index=index, leader_id=self.leader, replica_nodes=(5,), isr_nodes=(5,)
                        )
                        for index in ((0, 1) if problem is ErrorCode.NONE else ())
                    ),
                )
                for topic in request.topics or ()
            ),
        )

    def produce(self, header: RequestHeader, request: produce.ProduceRequest) -> Message | bytes | None:
        self.versions.append(header.api_version)
        self.acks.append(request.acks)
        batches = [(one.index, one.records) for one in request.topic_data[0].partition_data]
        self.sizes.append(len(batches))
        response = self.responses.pop(0) if self.responses else ErrorCode.NONE
        if isinstance(response, bytes):
            return response
        results = {index: self.store(index, records, response) for index, records in batches if records is not None}
        if request.acks == 0 or response is None:
            return None
        return produce.ProduceResponse(
            responses=(
                produce.TopicProduceResponse(
                    name="t",
                    topic_id=request.topic_data[0].topic_id,
                    partition_responses=tuple(
                        produce.PartitionProduceResponse(index=index, error_code=code, base_offset=offset)
                        for index, (code, offset) in results.items()
                    ),
                ),
            )
        )

    def store(self, index: int, records: bytes, response: ErrorCode | None) -> tuple[ErrorCode, int]:
        header = read_header(records, 0)
        if response not in (None, ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
            return response, NO_OFFSET
        expected = sum(read_header(batch, 0).count for batch in self.stored[index])
        if header.producer_id >= 0 and header.base_sequence > expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NO_OFFSET
        if header.producer_id < 0 or header.base_sequence == expected:
            self.stored[index].append(records)
            return response or ErrorCode.NONE, FIRST_OFFSET + expected
        return response or ErrorCode.NONE, FIRST_OFFSET + header.base_sequence

    def values(self, partition: int) -> list[bytes | None]:
        return [record.value for batch in self.stored[partition] for record in iter_records(batch)]

    def sequences(self, partition: int) -> list[int]:
        return [read_header(batch, 0).base_sequence for batch in self.stored[partition]]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    with made.broker:
        yield made


Producer = Callable[..., RawProducer]


@pytest.fixture
def new_producer(cluster: Cluster) -> Iterator[Producer]:
    with Client(f"127.0.0.1:{cluster.broker.port}", timeout_s=5) as client:
        opened: list[RawProducer] = []

        def new(terms: DeliveryTerms = TERMS, **more: object) -> RawProducer:
            more.setdefault("producer", ProducerIdAndEpoch(9, 0))
            opened.append(RawProducer(client, terms=terms, **more))  # type: ignore[arg-type]
            return opened[-1]

        yield new
        for producer in opened:
            producer.close()


def batch(*values: bytes) -> memoryview:
    return memoryview(build_batch([Record(0, None, value) for value in values]))


def test_batches_are_stored_in_their_order(cluster: Cluster, new_producer: Producer) -> None:
    producer = new_producer()
    for number in range(50):
        producer.send([(P0, batch(b"%d" % number))])
    producer.flush()
    assert cluster.values(0) == [b"%d" % number for number in range(50)]
    assert cluster.sequences(0) == list(range(50))


def test_batches_that_are_sent_together_go_out_in_one_request(cluster: Cluster, new_producer: Producer) -> None:
    producer = new_producer()
    producer.send([(P0, batch(b"a")), (P1, batch(b"b"))])
    producer.flush()
    assert cluster.sizes == [2]
    assert (cluster.values(0), cluster.values(1)) == ([b"a"], [b"b"])


@pytest.mark.parametrize(
    "response",
    [HANG_UP, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS],
    ids=["hangs up", "moved", "few"],
)
def test_what_failed_is_sent_again_with_the_same_number(
    cluster: Cluster, new_producer: Producer, response: Response
) -> None:
    cluster.responses = [response]
    producer = new_producer()
    for number in range(10):
        producer.send([(P0, batch(b"%d" % number))])
    producer.flush()
    assert cluster.values(0) == [b"%d" % number for number in range(10)]
    assert cluster.sequences(0) == list(range(10))


def test_request_without_a_response_in_time_is_resent(cluster: Cluster, new_producer: Producer) -> None:
    cluster.responses = [None]
    producer = new_producer(
        DeliveryTerms(request_timeout_ms=50, delivery_timeout_ms=20_000, retry_backoff_ms=1, retry_backoff_max_ms=1)
    )
    producer.send([(P0, batch(b"a"))])
    producer.flush()
    assert cluster.values(0) == [b"a"]
    assert len(cluster.acks) == 2


def test_a_batch_too_large_for_the_topic_is_split(cluster: Cluster, new_producer: Producer) -> None:
    cluster.responses = [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.MESSAGE_TOO_LARGE]
    producer = new_producer()
    producer.send([(P0, batch(b"a", b"b", b"c", b"d"))])
    producer.flush()
    assert (cluster.values(0), cluster.sequences(0)) == ([b"a", b"b", b"c", b"d"], [0, 1, 2])


def test_no_more_than_the_buffer_is_waiting(cluster: Cluster, new_producer: Producer) -> None:
    producer = new_producer(DeliveryTerms(buffer_memory=200))
    for number in range(20):
        producer.send([(P0, batch(b"%d" % number))])
        assert producer._delivery.held_bytes <= 200
    producer.flush()
    assert len(cluster.values(0)) == 20


def test_acks_zero_does_not_wait_for_responses(cluster: Cluster, new_producer: Producer) -> None:
    producer = new_producer(DeliveryTerms(acks=0), producer=None)
    producer.send([(P0, batch(b"a"))])
    producer.flush()
    producer.close()
    while not cluster.stored[0]:
        assert cluster.broker.connections < 5
    assert (cluster.values(0), cluster.acks, cluster.sequences(0)) == ([b"a"], [0], [-1])


def test_a_refusal_names_the_partition(cluster: Cluster, new_producer: Producer) -> None:
    cluster.responses = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    producer = new_producer()
    producer.send([(P1, batch(b"a"))])
    with pytest.raises(Refused, match=r"Writing to t-1 failed: .*TOPIC_AUTHORIZATION_FAILED"):
        producer.flush()


def test_leaders_of_all_topics_are_looked_up_after_a_broker_has_left(cluster: Cluster, new_producer: Producer) -> None:
    producer = new_producer()
    cluster.brokers[6] = cluster.broker.port
    cluster.leader = 6
    producer.partitions_of("t")
    producer.partitions_of("u")
    del cluster.brokers[6]
    cluster.leader = 5
    producer.partitions_of("t", at_least=3)
    producer.send([(TopicPartition("u", 0), batch(b"a"))])
    producer.flush()
    assert cluster.values(0) == [b"a"]


# --- where records were stored ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "response",
    [ErrorCode.NONE, HANG_UP, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.MESSAGE_TOO_LARGE],
    ids=["stored", "hangs up", "stored and sent again", "split"],
)
def test_ends_of_partitions_are_known_when_all_is_stored(
    cluster: Cluster, new_producer: Producer, response: Response
) -> None:
    cluster.responses = [response]
    producer = new_producer()
    for number in range(10):
        producer.send([(P0, batch(b"%d" % number, b"more"))])
    producer.flush()
    assert producer.take_end_offsets() == {P0: FIRST_OFFSET + 20}
    producer.send([(P1, batch(b"a"))])
    producer.flush()
    assert producer.take_end_offsets() == {P1: FIRST_OFFSET + 1}


def test_ends_are_unknown_without_acknowledgements(cluster: Cluster, new_producer: Producer) -> None:
    producer = new_producer(DeliveryTerms(acks=0), producer=None)
    producer.send([(P0, batch(b"a"))])
    producer.flush()
    assert producer.take_end_offsets() == {P0: NO_OFFSET}


def test_the_next_transaction_begins_without_ends(cluster: Cluster, new_producer: Producer) -> None:
    producer = new_producer(transactional_id="mine")
    producer.send([(P0, batch(b"a"))])
    producer.flush()
    producer.renew(ProducerIdAndEpoch(1, 9), transactional_id="mine")
    assert producer.take_end_offsets() == {}


# --- transactions -----------------------------------------------------------------------------------------------------


def test_partitions_are_added_to_a_transaction_of_the_first_version(cluster: Cluster, new_producer: Producer) -> None:
    added: list[TopicPartition] = []
    producer = new_producer(transactional_id="x", before_first=added.extend)
    for _ in range(2):
        producer.send([(P0, batch(b"a")), (P1, batch(b"b"))])
        producer.flush()
    assert added == [P0, P1]
    assert set(cluster.versions) == {11}
    assert read_header(cluster.stored[0][0], 0).is_transactional


def test_leaders_add_partitions_to_a_transaction_of_the_second_version(
    cluster: Cluster, new_producer: Producer
) -> None:
    producer = new_producer(transactional_id="x")
    producer.send([(P0, batch(b"a"))])
    producer.flush()
    assert cluster.versions == [13]


def test_producer_continues_as_another_over_the_same_connections(cluster: Cluster, new_producer: Producer) -> None:
    producer = new_producer(transactional_id="mine")
    producer.partitions_of("t")
    producer.send([(P0, batch(b"one"))])
    producer.flush()
    connections = cluster.broker.connections
    producer.renew(ProducerIdAndEpoch(1, 9), transactional_id="mine")
    producer.send([(P1, batch(b"two"))])
    producer.flush()
    (second,) = cluster.stored[1]
    header = read_header(second, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1, 9, 0)
    assert cluster.broker.connections == connections


# --- topics -----------------------------------------------------------------------------------------------------------


def test_a_topic_may_be_made_by_asking_for_it(cluster: Cluster, new_producer: Producer) -> None:
    cluster.topic_problems = [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert new_producer().partitions_of("t") == TopicPartitions(2, (0, 1))
    assert cluster.created == 3


def test_metadata_is_reused_unless_more_partitions_are_wanted(cluster: Cluster, new_producer: Producer) -> None:
    producer = new_producer()
    for at_least in (1, 2, 1, 3):
        producer.partitions_of("t", at_least)
    assert cluster.created == 2


def test_missing_topic_is_named_in_the_error(cluster: Cluster, new_producer: Producer) -> None:
    cluster.topic_problems = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 100
    with pytest.raises(Refused, match="Topic t does not exist"):
        new_producer(DeliveryTerms(max_block_ms=20, retry_backoff_ms=1)).partitions_of("t")


def test_a_name_that_no_topic_can_have_is_refused_at_once(cluster: Cluster, new_producer: Producer) -> None:
    cluster.topic_problems = [ErrorCode.INVALID_TOPIC_EXCEPTION]
    with pytest.raises(Refused, match="is not a valid topic name"):
        new_producer().partitions_of("t")
