"""How a broker starts, stops, and refuses to start."""

import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kaspar.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kaspar.testing import Broker
from tests.integration.commands import refusal
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import request_frame
from tests.peers.wire import free_port

RECOVERING = "recovering logs after an unclean stop"


def test_clean_stop_needs_no_recovery(tmp_path: Path) -> None:
    with ObservedBroker(tmp_path) as broker:
        with broker.client() as client:
            assert client.create_topic("orders", partitions=3) == 0
            for number in range(100):
                client.produce("orders", [b"%d" % number], partition=number % 3)
        assert broker.stop() == 0
        assert (broker.data_dir / ".kafka_cleanshutdown").exists()
        accessed = {path: path.stat().st_atime_ns for path in broker.segment_files("orders")}
        broker.start()
        assert {path: path.stat().st_atime_ns for path in accessed} == accessed, "a clean start reads no data"
        assert not (broker.data_dir / ".kafka_cleanshutdown").exists(), "the mark holds for one start"
        assert broker.log_lines("clean=True")
        assert not broker.log_lines(RECOVERING)
        with broker.client() as client:
            assert len(client.read_values("orders", partition=2)) == 33
        broker.kill()
        broker.start()
        assert broker.log_lines(RECOVERING)
        assert "partitions=" in broker.log_lines(RECOVERING)[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_signals_stop_it_with_exit_code_0_while_clients_wait(tmp_path: Path, number: signal.Signals) -> None:
    with ObservedBroker(tmp_path) as broker:
        with broker.client() as client:
            assert client.create_topic("orders") == 0
            responses: list[object] = []
            waiting = threading.Thread(target=lambda: responses.append(client.fetch("orders", 0, max_wait_ms=60_000)))
            waiting.start()
            gauge = 'kafka_server_delayedoperationpurgatory_numdelayedoperations{delayedOperation="Fetch"}'
            wait_until(lambda: broker.metrics()[gauge] == 1, "the fetch waits")
            broker.signal(number)
            waiting.join(10)
            assert len(responses) == 1, "a waiting fetch gets its response when the broker stops"
        wait_until(lambda: not broker.running, "the broker ends")
        assert broker.stop() == 0
        assert broker.log_lines("the broker has stopped")


def test_stop_while_topics_and_settings_change(tmp_path: Path) -> None:
    """A request during a stop is carried out, refused, or left without a response; none of these is a failure."""
    with ObservedBroker(tmp_path) as broker:
        with broker.client() as client:
            assert client.create_topic("orders") == 0
            setting = AlterableConfig(name="retention.ms", config_operation=0, value="60000")
            resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=(setting,))
            altered = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
            for number in range(100):
                more = CreatePartitionsTopic(name="orders", count=number + 2, assignments=None)
                added = CreatePartitionsRequest(topics=(more,), timeout_ms=30_000, validate_only=False)
                client.send(request_frame(added, 3) + request_frame(altered, 1))
            broker.signal(signal.SIGTERM)
            wait_until(lambda: not broker.running, "the broker ends")
        assert broker.stop() == 0
        broker.start()
        with broker.client() as client:
            described = client.metadata("orders").topics[0]
            print(f"{len(described.partitions)} partitions")
            for partition in range(len(described.partitions)):
                assert client.produce("orders", [b"x"], partition=partition).error_code == 0


def test_sigterm_while_it_starts(tmp_path: Path) -> None:
    """At any moment of the start: it ends by itself, and the next start is a good one."""
    broker = KasparProcess(tmp_path)
    before = time.monotonic()
    with broker:  # makes the folder
        longest = max(1.0, 2 * (time.monotonic() - before))  # a start takes longer on a busy machine
    delay = 0.0
    ended_by = set()
    while delay < longest:
        broker.launch()
        time.sleep(delay)  # the moment is what is tried here, there is no condition to wait for
        code = broker.stop()
        assert code in (0, -signal.SIGTERM), broker.log_text()[-2000:]
        ended_by.add(code)
        delay += longest / 7
    assert 0 in ended_by
    assert "Traceback" not in broker.log_text()
    assert not broker.unexpected_errors()
    with broker:
        assert broker.running


def test_second_broker_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with KasparProcess(tmp_path) as broker:
        listeners = f"listeners=PLAINTEXT://127.0.0.1:{free_port()}"
        sentence = refusal(broker.properties_file, "--override", listeners, "--override", "advertised.listeners=")
        assert sentence == f"{broker.data_dir} is in use by another broker. Two brokers cannot share a log directory."
        with pytest.raises(KasparError, match="in use by another broker"):
            Broker(data_dir=broker.data_dir).start()
        assert broker.running


def test_second_broker_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path):
        with pytest.raises(KasparError, match="in use by another broker in this process"):
            Broker(data_dir=tmp_path).start()
        with pytest.raises(KasparError, match="before it was ready"):
            Broker(data_dir=tmp_path, process=True).start()
    with Broker(data_dir=tmp_path):
        pass  # the first one has let go of it


def test_taken_port_is_refused_before_any_data_is_touched(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        data = tmp_path / "data"
        settings = ("--override", f"listeners=PLAINTEXT://127.0.0.1:{port}", "--override", f"log.dirs={data}")
        (tmp_path / "server.properties").write_text("node.id=1\n")
        assert refusal(tmp_path / "server.properties", *settings) == (
            f"cannot listen on 127.0.0.1:{port}: Address already in use"
        )
        assert not data.exists()


def test_folder_of_another_node_or_cluster_is_refused(tmp_path: Path) -> None:
    with KasparProcess(tmp_path / "a") as one:
        one.stop()
    properties = one.properties_file
    assert refusal(properties, "--override", "node.id=7") == (
        f"{one.data_dir} belongs to node 1, but this broker is node 7: remove it from log.dirs, or set node.id"
    )
    with KasparProcess(tmp_path / "b") as other:
        other.stop()
    sentence = refusal(properties, "--override", f"log.dirs={one.data_dir},{other.data_dir}")
    assert sentence.startswith(f"{other.data_dir} belongs to cluster ")


def test_restart_keeps_topics_settings_ids_and_records(tmp_path: Path) -> None:
    with ObservedBroker(tmp_path) as broker:
        with broker.client() as client:
            assert client.create_topic("orders", partitions=2, configs={"retention.ms": "1234567"}) == 0
            assert client.produce("orders", [b"a", b"b"], partition=1).error_code == 0
            producer_id = client.new_producer_id()
            before = client.metadata("orders")
        broker.restart()
        with broker.client() as client:
            after = client.metadata("orders")
            assert (after.cluster_id, after.topics[0].topic_id) == (before.cluster_id, before.topics[0].topic_id)
            assert client.read_values("orders", partition=1) == [b"a", b"b"]
            assert client.new_producer_id() > producer_id, "an id is never given out twice"
