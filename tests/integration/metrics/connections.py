"""Scenarios of connections, of what waits, and of the event loop."""

import contextlib
import signal
import socket
import struct
import time
from collections.abc import Iterator

from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from kaspar.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from kaspar.records import Record
from tests.integration.metrics.stage import Stage, batch_of, now_ms
from tests.peers.observed import wait_until
from tests.peers.raw_client import NAMES_TOPICS, fetch_request, produce_request, request_frame

OTHER_ADDRESS = "127.0.0.2"


@contextlib.contextmanager
def a_connection_that_comes_and_one_that_goes(stage: Stage) -> Iterator[None]:
    with stage.client() as gone:
        gone.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"))
    with stage.client() as client:
        client.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"))
        yield


@contextlib.contextmanager
def an_idle_connection(stage: Stage) -> Iterator[None]:
    with stage.client():
        yield


@contextlib.contextmanager
def a_stranger_that_says_nothing(stage: Stage) -> Iterator[None]:
    with stage.client() as stranger:
        assert stranger.is_closed_by_broker()
        yield


@contextlib.contextmanager
def a_connection_too_many(stage: Stage) -> Iterator[None]:
    with socket.create_connection(
        (stage.broker.host, stage.broker.port), timeout=30, source_address=(OTHER_ADDRESS, 0)
    ) as refused:
        with contextlib.suppress(ConnectionError):
            assert refused.recv(1) == b""
        yield


@contextlib.contextmanager
def bytes_that_are_no_request(stage: Stage) -> Iterator[None]:
    with stage.client() as stranger:
        stranger.send(b"GET / HTTP/1.1\r\nHost: example\r\n\r\n")
        assert stranger.is_closed_by_broker()
        yield


@contextlib.contextmanager
def work(stage: Stage) -> Iterator[None]:
    """All that the other scenarios did. It is looked at every few seconds."""
    with stage.topic() as (client, topic):
        assert client.produce_batch(topic, batch_of()).error_code == 0
        yield


@contextlib.contextmanager
def a_fetch_that_waits(stage: Stage) -> Iterator[None]:
    """And a request behind it on the same connection, whose response has to wait for that of the fetch."""
    with stage.topic() as (client, topic), stage.client() as waiting:
        waiting.send(request_frame(fetch_request(topic, 0, max_wait_ms=60_000), NAMES_TOPICS))
        waiting.send(request_frame(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4))
        yield
        assert client.produce_batch(topic, batch_of()).error_code == 0
        waiting.receive()


@contextlib.contextmanager
def batches_that_wait_to_be_compressed(stage: Stage) -> Iterator[None]:
    """As many as take a second, so that the page can be read meanwhile."""
    with stage.topic({"compression.type": "gzip", "compression.gzip.level": "9"}) as (client, topic):
        value = struct.pack(">120000I", *((number * 2654435761) & 0xFFFF_FFFF for number in range(120_000)))
        frame = request_frame(produce_request(topic, batch_of(Record(now_ms(), b"key", value))), NAMES_TOPICS)
        batches = 25
        for _ in range(batches):
            client.send(frame)
        yield
        for _ in range(batches):
            client.receive()


@contextlib.contextmanager
def fetch_sessions(stage: Stage) -> Iterator[None]:
    """Two of consumers are all that there is room for; a follower's takes the place of one."""
    with stage.topic() as (client, topic):
        for replica_id in (-1, -1, 7):
            wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
            request = FetchRequest(
                replica_state=ReplicaState(replica_id=replica_id),
                max_wait_ms=0,
                min_bytes=0,
                session_epoch=0,
                topics=(FetchTopic(topic_id=client.metadata(topic).topics[0].topic_id, partitions=(wanted,)),),
            )
            client.call(request, FetchResponse)
        yield


@contextlib.contextmanager
def a_loop_that_stands_still(stage: Stage) -> Iterator[None]:
    """For three ticks of its timer, and longer than ever before: on a busy machine it may have stood still already."""
    seconds = stage.broker.metrics()["kaspar_loop_longest_stall_seconds"] + 0.3
    stage.broker.signal(signal.SIGSTOP)
    stopped = time.monotonic()
    wait_until(lambda: time.monotonic() - stopped > seconds, "it stood still for long enough")
    stage.broker.signal(signal.SIGCONT)
    yield
