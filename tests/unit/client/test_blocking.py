"""The blocking connection and the cluster client against a scripted broker, over real sockets."""

import errno
import socket

import pytest

from kaspar.base.errors import ErrorCode, MalformedBytes, Refused
from kaspar.client import Client, Connection
from kaspar.client.cluster import LATEST_TIMESTAMP
from kaspar.client.core import UnsupportedByPeer
from kaspar.client.steps import Send, Step
from kaspar.protocol.api import ApiKey
from kaspar.protocol.headers import RequestHeader
from kaspar.protocol.messages import metadata, produce
from kaspar.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kaspar.protocol.schema import Message
from tests.unit.client.clusters import OnePartition, served_by
from tests.unit.client.scripted import HANG_UP, ScriptedBroker, api_versions, responding_with, response_frame


def test_request_has_the_newest_version_of_both_sides() -> None:
    response = metadata.MetadataResponse(brokers=(), topics=(), cluster_id="here")
    with responding_with(response) as broker, Connection("127.0.0.1", broker.port) as connection:
        assert connection.request(metadata.MetadataRequest(topics=())) == response
        assert connection.core.version_of(ApiKey.METADATA) == 13


def test_pipelined_requests_get_their_responses_in_order() -> None:
    def handler(header: RequestHeader, request: Message) -> Message:
        if isinstance(request, ApiVersionsRequest):
            return api_versions()
        return metadata.MetadataResponse(brokers=(), topics=(), controller_id=header.correlation_id)

    with ScriptedBroker(handler) as broker, Connection("127.0.0.1", broker.port) as connection:
        for _ in range(20):
            connection.send(metadata.MetadataRequest(topics=()))
        responses = [connection.receive() for _ in range(20)]
    found = [
        response.message.controller_id
        for response in responses
        if isinstance(response.message, metadata.MetadataResponse)
    ]
    assert found == list(range(1, 21))


def test_silent_peer_is_a_timeout() -> None:
    with (
        responding_with(None) as broker,
        Connection("127.0.0.1", broker.port, timeout_s=0.1) as connection,
        pytest.raises(TimeoutError),
    ):
        connection.request(metadata.MetadataRequest(topics=()))


def test_peer_that_closes_the_connection_is_a_connection_error() -> None:
    with (
        responding_with(HANG_UP) as broker,
        Connection("127.0.0.1", broker.port) as connection,
        pytest.raises(ConnectionError),
    ):
        connection.request(metadata.MetadataRequest(topics=()))


def test_peer_that_sends_garbage_is_malformed() -> None:
    with (
        responding_with(b"\0\0\0\5garbage") as broker,
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


def test_closed_port_is_a_connection_error() -> None:
    with responding_with(None) as broker:
        port = broker.port
    with pytest.raises(ConnectionError), Client(f"127.0.0.1:{port}", timeout_s=1) as client:
        client.refresh_metadata(None)


@pytest.fixture
def cluster() -> OnePartition:
    return OnePartition()


def test_batches_go_to_the_leader_and_come_back(cluster: OnePartition) -> None:
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        for batch in (b"first", b"second"):
            response = client.produce("topic", 0, batch)
        assert response is not None
        assert response.base_offset == 1
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
        pytest.raises(Refused, match="the cluster has no partition topic-9"),
    ):
        client.fetch("topic", 9, 0)


def test_requests_go_to_the_controller_or_to_a_broker_by_id(cluster: OnePartition) -> None:
    request = metadata.MetadataRequest(topics=None)
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        response = client.request_controller(request, metadata.MetadataResponse)
        assert response.controller_id == 1
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
    perform = Client._perform

    def perform_where_there_is_a_way(client: Client, step: Step) -> object:
        if isinstance(step, Send) and isinstance(step.message, produce.ProduceRequest) and failures:
            raise failures.pop()
        return perform(client, step)

    monkeypatch.setattr(Client, "_perform", perform_where_there_is_a_way)
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        client.produce("topic", 0, b"batch")
    assert cluster.batches == [b"batch"]


def test_broker_that_has_left_is_forgotten_once_it_did_not_respond(cluster: OnePartition) -> None:
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


def test_unreachable_broker_is_tried_after_those_with_a_connection(
    cluster: OnePartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served_by(cluster) as gone:
        cluster.others = {2: gone.port}
    tried: list[tuple[str, int]] = []
    with served_by(cluster) as broker, Client(f"127.0.0.1:{broker.port}") as client:
        client.refresh_metadata([])
        client.close()
        connect = client._connection

        def connect_and_count(address: tuple[str, int]) -> Connection:
            tried.append(address)
            return connect(address)

        monkeypatch.setattr(client, "_connection", connect_and_count)
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
