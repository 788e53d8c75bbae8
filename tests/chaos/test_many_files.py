"""Too few file handles, and ten thousand connections that do nothing."""

import resource
import socket
from contextlib import ExitStack

import pytest

from kaspar.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.chaos.conftest import StartBroker
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient, request_frame

CONNECTIONS = 10_000
BYTES_PER_CONNECTION = 20_000  # a quarter of what one receive buffer would take
CANNOT_TAKE = "cannot accept connections now"


def _write_and_read_all(client: RawClient, topic: str, partitions: int, value: bytes) -> None:
    for partition in range(partitions):
        assert client.produce(topic, [value], partition=partition).error_code == 0
    for partition in range(partitions):
        assert client.read_values(topic, partition=partition)[-1] == value


def test_more_partitions_than_file_handles(start_broker: StartBroker) -> None:
    """Idle segments are not open, so that three hundred partitions do with a hundred handles; also after a kill."""
    broker = start_broker(most_files=100)
    with broker.client() as client:
        for number in range(3):
            assert client.create_topic(f"topic-{number}", partitions=100) == 0
            _write_and_read_all(client, f"topic-{number}", 100, b"one")
        assert broker.open_files() <= 100
    broker.kill()
    broker.start()
    with broker.client() as client:
        for number in range(3):
            _write_and_read_all(client, f"topic-{number}", 100, b"two")
    assert not broker.log_lines("is offline")


def test_group_commit_with_too_few_file_handles(start_broker: StartBroker) -> None:
    """A sync that finds no handle is not a failed sync: the directory stays online."""
    broker = start_broker(most_files=100)
    with broker.client() as client:
        assert client.create_topic("orders", partitions=100, configs={"flush.messages": "1"}) == 0
        _write_and_read_all(client, "orders", 100, b"one")
        with ExitStack() as stack:
            _connect_until_refused(broker, stack)
            responses = [client.produce("orders", [b"two"], partition=partition) for partition in range(100)]
            print(
                f"{sum(response.error_code != 0 for response in responses)} of 100 writes were refused without handles"
            )
        wait_until(lambda: client.produce("orders", [b"three"]).error_code == 0, "writes resume")
        _write_and_read_all(client, "orders", 100, b"four")
    assert not broker.log_lines("is offline")


def test_clients_wait_when_no_handle_is_left_and_are_served_when_one_is(start_broker: StartBroker) -> None:
    broker = start_broker(most_files=100)
    with broker.client() as client:
        assert client.create_topic("orders", partitions=20) == 0
        with ExitStack() as stack:
            _connect_until_refused(broker, stack)
            late = broker.client()
            late.send(request_frame(DescribeClusterRequest(include_cluster_authorized_operations=False), 2))
            # Existing connections are served on, also by code that is loaded only now.
            assert (
                client.call(
                    DescribeClusterRequest(include_cluster_authorized_operations=False), DescribeClusterResponse
                ).error_code
                == 0
            )
            assert client.fetch("orders", 0, partition=19).error_code == 0
            assert broker.metrics()
        with late:
            assert late.receive(), "the response to what it asked while it waited"
            _write_and_read_all(late, "orders", 20, b"after")
        assert not broker.log_lines("is offline")


def _connect_until_refused(broker: ObservedBroker, stack: ExitStack) -> None:
    """Take every handle that the broker has left."""
    while CANNOT_TAKE not in broker.log_text():
        stack.enter_context(socket.create_connection((broker.host, broker.port)))
        assert broker.open_files() <= 100


@pytest.fixture
def many_files() -> int:
    """How many connections this process may hold."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, CONNECTIONS + 2000)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def test_ten_thousand_idle_connections(start_broker: StartBroker, many_files: int) -> None:
    count = min(CONNECTIONS, many_files - 1000)
    broker = start_broker(most_files=count + 2000, overrides={"socket.listen.backlog.size": "4096"})
    with broker.client() as client, ExitStack() as stack:
        assert client.create_topic("orders") == 0
        before = broker.memory_bytes()
        for number in range(count):
            # Many addresses, since one has not ports enough for all the tests of a day.
            source = (f"127.0.{1 + number // 5000}.1", 0)
            stack.enter_context(socket.create_connection((broker.host, broker.port), source_address=source))
        gauge = 'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT",networkProcessor="0"}'
        wait_until(lambda: broker.metrics()[gauge] >= count, "all are connected")
        each = (broker.memory_bytes() - before) / count
        print(f"{count} idle connections, {each:.0f} bytes each")
        assert each < BYTES_PER_CONNECTION
        for number in range(100):
            assert client.produce("orders", [b"%d" % number]).base_offset == number
        assert len(client.read_values("orders")) == 100
    wait_until(lambda: broker.metrics()[gauge] <= 1, "all are gone")
