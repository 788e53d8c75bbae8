"""The blocking connection and the cluster client against a scripted broker, over real sockets."""

import errno
import socket
import uuid

import pytest

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.client import Client, Connection
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.core import UnsupportedByPeer
from kaspar.protocol.api import ApiKey
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages import fetch, list_offsets, metadata, produce
from kaspar.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.schema import Message
from tests.unit.client.scripted import HANG_UP, ScriptedBroker, api_versions, response_frame

TOPIC_ID = uuid.UUID(int=7)


class OnePartition:
    """A cluster of one broker that leads partition 0 of `topic`. `refusals` are the error codes of the next answers."""

    def __init__(self) -> None:
        self.port = 0
        self.others: dict[int, int] = {}  # brokers beside it, and their ports
        self.controller_id = 1
        self.refusals: list[int] = []
        self.hang_ups = 0
        self.throttled = 0
        self.batches: list[bytes] = []

    def __call__(self, header: RequestHeader, request: Message) -> Message | bytes | None:
        match request:
            case ApiVersionsRequest():
                return api_versions()
            case metadata.MetadataRequest():
                return self._metadata(request)
            case produce.ProduceRequest():
                return self._produce(request)
            case fetch.FetchRequest():
                return self._fetch(request)
            case list_offsets.ListOffsetsRequest():
                found = list_offsets.ListOffsetsPartitionResponse(partition_index=0, offset=len(self.batches))
                topic = list_offsets.ListOffsetsTopicResponse(name="topic", partitions=(found,))
                return list_offsets.ListOffsetsResponse(topics=(topic,))
        raise AssertionError(request)

    def _metadata(self, request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        partition = metadata.MetadataResponsePartition(
            partition_index=0, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)
        )
        known = metadata.MetadataResponseTopic(name="topic", topic_id=TOPIC_ID, partitions=(partition,))
        topics = [known]
        if request.topics and request.topics[0].name != "topic":
            topics = [metadata.MetadataResponseTopic(error_code=17, name=request.topics[0].name, partitions=())]
        brokers = tuple(
            metadata.MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=port)
            for node_id, port in {**self.others, 1: self.port}.items()
        )
        return metadata.MetadataResponse(brokers=brokers, topics=tuple(topics), controller_id=self.controller_id)

    def _produce(self, request: produce.ProduceRequest) -> Message | bytes | None:
        if self.hang_ups:
            self.hang_ups -= 1
            return HANG_UP
        (data,) = request.topic_data[0].partition_data
        assert request.topic_data[0].topic_id == TOPIC_ID
        error_code = self.refusals.pop(0) if self.refusals else 0
        if not error_code:
            assert data.records is not None
            self.batches.append(data.records)
        if request.acks == 0:
            return None
        answer = produce.PartitionProduceResponse(index=0, error_code=error_code, base_offset=len(self.batches) - 1)
        topic = produce.TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=(answer,))
        return produce.ProduceResponse(responses=(topic,))

    def _fetch(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        if self.throttled:
            self.throttled -= 1
            return fetch.FetchResponse(throttle_time_ms=1, responses=())
        offset = request.topics[0].partitions[0].fetch_offset
        error_code = 1 if offset > len(self.batches) else 0
        found = fetch.PartitionData(
            partition_index=0,
            error_code=error_code,
            high_watermark=len(self.batches),
            aborted_transactions=None,
            records=b"".join(self.batches[offset:]),
        )
        topic = fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(found,))
        return fetch.FetchResponse(responses=(topic,))


def answer_with(answer: Message | bytes | None) -> "ScriptedBroker":
    """Tells its versions, and answers everything else with this."""
    return ScriptedBroker(lambda header, request: api_versions() if isinstance(request, ApiVersionsRequest) else answer)


def test_request_is_answered_in_the_newest_version_of_both() -> None:
    response = metadata.MetadataResponse(brokers=(), topics=(), cluster_id="here")
    with answer_with(response) as broker, Connection("127.0.0.1", broker.port) as connection:
        assert connection.request(metadata.MetadataRequest(topics=())) == response
        assert connection.core.version_of(ApiKey.METADATA) == 13


def test_pipelined_requests_are_answered_in_order() -> None:
    def handler(header: RequestHeader, request: Message) -> Message:
        if isinstance(request, ApiVersionsRequest):
            return api_versions()
        return metadata.MetadataResponse(brokers=(), topics=(), controller_id=header.correlation_id)

    with ScriptedBroker(handler) as broker, Connection("127.0.0.1", broker.port) as connection:
        for _ in range(20):
            connection.send(metadata.MetadataRequest(topics=()))
        answers = [connection.receive() for _ in range(20)]
    found = [
        answer.message.controller_id for answer in answers if isinstance(answer.message, metadata.MetadataResponse)
    ]
    assert found == list(range(1, 21))


def test_peer_that_says_nothing_is_a_timeout() -> None:
    with (
        answer_with(None) as broker,
        Connection("127.0.0.1", broker.port, timeout_s=0.1) as connection,
        pytest.raises(TimeoutError),
    ):
        connection.request(metadata.MetadataRequest(topics=()))


def test_peer_that_hangs_up_is_a_connection_error() -> None:
    with (
        answer_with(HANG_UP) as broker,
        Connection("127.0.0.1", broker.port) as connection,
        pytest.raises(ConnectionError),
    ):
        connection.request(metadata.MetadataRequest(topics=()))


def test_peer_that_sends_garbage_is_malformed() -> None:
    with (
        answer_with(b"\0\0\0\5garbage") as broker,
        Connection("127.0.0.1", broker.port) as connection,
        pytest.raises(MalformedBytes),
    ):
        connection.request(metadata.MetadataRequest(topics=()))


def test_peer_that_refuses_the_version_it_named_is_given_up() -> None:
    refusal = ApiVersionsResponse(error_code=35, api_keys=(ApiVersion(api_key=18, min_version=0, max_version=3),))
    with ScriptedBroker(lambda header, request: response_frame(header, refusal, 0)) as broker:
        with pytest.raises(UnsupportedByPeer):
            Connection("127.0.0.1", broker.port)
        assert len(broker.requests) == 2


def test_nobody_there_is_a_connection_error() -> None:
    with answer_with(None) as broker:
        port = broker.port
    with pytest.raises(ConnectionError), Client(f"127.0.0.1:{port}", timeout_s=1) as client:
        client.refresh_metadata(None)


@pytest.fixture
def cluster() -> OnePartition:
    return OnePartition()


def served_by(cluster: OnePartition) -> ScriptedBroker:
    broker = ScriptedBroker(cluster)
    cluster.port = broker.port
    return broker


def test_batches_go_to_the_leader_and_come_back(cluster: OnePartition) -> None:
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        for batch in (b"first", b"second"):
            answer = client.produce("topic", 0, batch)
        assert answer is not None
        assert answer.base_offset == 1
        assert client.fetch("topic", 0, 0).records == b"firstsecond"
        assert client.fetch("topic", 0, 1).records == b"second"
        assert client.offset_at("topic", 0, LATEST_TIMESTAMP) == 2
        assert broker.connections == 1


def test_unacknowledged_batch_is_sent_without_waiting(cluster: OnePartition) -> None:
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        assert client.produce("topic", 0, b"sent", acks=0) is None
        assert client.fetch("topic", 0, 0).records == b"sent"


def test_refusal_that_may_pass_is_tried_again_with_new_metadata(cluster: OnePartition) -> None:
    cluster.refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        client.produce("topic", 0, b"batch")
        assert cluster.batches == [b"batch"]
        assert sum(isinstance(request, metadata.MetadataRequest) for request in broker.requests) == 3


def test_lost_connection_is_opened_again(cluster: OnePartition) -> None:
    cluster.hang_ups = 1
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        client.produce("topic", 0, b"batch")
        assert cluster.batches == [b"batch"]
        assert broker.connections == 2


def test_final_refusal_is_raised_with_its_code(cluster: OnePartition) -> None:
    cluster.refusals = [ErrorCode.MESSAGE_TOO_LARGE]
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        with pytest.raises(Refused, match="MESSAGE_TOO_LARGE") as refusal:
            client.produce("topic", 0, b"batch")
        assert refusal.value.code is ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(Refused, match="OFFSET_OUT_OF_RANGE"):
            client.fetch("topic", 0, 5)
        with pytest.raises(Refused, match="INVALID_TOPIC_EXCEPTION"):
            client.fetch("no such topic", 0, 0)


def test_partition_that_does_not_exist_is_refused_after_the_timeout(cluster: OnePartition) -> None:
    with (
        served_by(cluster) as broker,
        Client(f"127.0.0.1:{broker.port}", timeout_s=0.2) as client,
        pytest.raises(Refused, match="topic-9 is not a partition"),
    ):
        client.fetch("topic", 9, 0)


def test_controller_and_brokers_are_asked_by_role(cluster: OnePartition) -> None:
    request = metadata.MetadataRequest(topics=None)
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        answer = client.request_controller(request, metadata.MetadataResponse)
        assert answer.controller_id == 1
        assert client.request_broker(1, request, metadata.MetadataResponse, 4).cluster_id is None


def test_client_that_is_held_back_by_its_quota_fetches_again(cluster: OnePartition) -> None:
    cluster.batches = [b"batch"]
    cluster.throttled = 2
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        assert client.fetch("topic", 0, 0).records == b"batch"


@pytest.mark.parametrize(
    "failure", [OSError(errno.EHOSTUNREACH, "No route to host"), socket.gaierror(socket.EAI_NONAME, "unknown name")]
)
def test_leader_whose_host_is_gone_is_looked_for_again(
    cluster: OnePartition, failure: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [failure]
    ask = Client._ask

    def ask_where_there_is_a_way(
        client: Client, address: tuple[str, int], message: Message, *others: object
    ) -> Message:
        if isinstance(message, produce.ProduceRequest) and failures:
            raise failures.pop()
        return ask(client, address, message, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "_ask", ask_where_there_is_a_way)
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        client.produce("topic", 0, b"batch")
    assert cluster.batches == [b"batch"]


def test_broker_that_has_left_is_forgotten_once_it_did_not_answer(cluster: OnePartition) -> None:
    with served_by(cluster) as gone:
        cluster.others = {2: gone.port}
    request = metadata.MetadataRequest(topics=None)
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}", timeout_s=1) as client:
        assert client.broker_ids() == [2, 1]
        with pytest.raises(ConnectionError):
            client.request_broker(2, request, metadata.MetadataResponse)
        assert client.broker_ids() == [2, 1], "the others still count it in"
        with pytest.raises(ConnectionError):
            client.request_broker(2, request, metadata.MetadataResponse)
        cluster.others = {}
        with pytest.raises(Refused, match="broker 2 is not in the cluster now") as refusal:
            client.request_broker(2, request, metadata.MetadataResponse)
        assert refusal.value.code is ErrorCode.BROKER_NOT_AVAILABLE
        assert client.broker_ids() == [1]


def test_broker_that_does_not_answer_is_not_asked_before_one_that_does(
    cluster: OnePartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served_by(cluster) as gone:
        cluster.others = {2: gone.port}
    tried: list[tuple[str, int]] = []
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        client.refresh_metadata([])
        client.close()
        connect = client._connection

        def connect_and_tell(address: tuple[str, int]) -> Connection:
            tried.append(address)
            return connect(address)

        monkeypatch.setattr(client, "_connection", connect_and_tell)
        for _ in range(3):
            client.refresh_metadata([])
    assert tried.count(("127.0.0.1", gone.port)) == 1


def test_there_may_be_no_controller(cluster: OnePartition) -> None:
    cluster.controller_id = -1
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        with pytest.raises(Refused, match="no controller") as refusal:
            client.request_controller(metadata.MetadataRequest(topics=None), metadata.MetadataResponse)
        assert refusal.value.code is ErrorCode.NOT_CONTROLLER
        cluster.controller_id = 1
        client.request_controller(metadata.MetadataRequest(topics=None), metadata.MetadataResponse)
