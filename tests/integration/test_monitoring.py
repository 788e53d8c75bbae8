"""The metrics page and the health pages of a broker that has work to do."""

from pathlib import Path

import pytest

from kaspar.protocol.messages.api_versions import ApiVersionsRequest
from tests.peers.observed import ObservedBroker, wait_until

TOPIC = "orders"


@pytest.fixture
def broker(tmp_path: Path) -> ObservedBroker:
    return ObservedBroker(tmp_path)


def test_metrics_count_what_went_in_and_out(broker: ObservedBroker) -> None:
    with broker, broker.client() as client:
        assert client.create_topic(TOPIC, partitions=2) == 0
        for number in range(10):
            assert client.produce(TOPIC, [b"x" * 100, b"y" * 100], partition=number % 2).error_code == 0
        assert client.produce(TOPIC, [b"x"], partition=7).error_code != 0
        assert len(client.read_values(TOPIC)) == 10
        metrics = broker.metrics()
        size = sum(path.stat().st_size for partition in (0, 1) for path in broker.segment_files(TOPIC, partition))

        def of_topic(name: str) -> float:
            everything = metrics[f"kafka_server_brokertopicmetrics_{name}_total"]
            assert everything >= metrics[f'kafka_server_brokertopicmetrics_{name}_total{{topic="{TOPIC}"}}']
            return metrics[f'kafka_server_brokertopicmetrics_{name}_total{{topic="{TOPIC}"}}']

        assert of_topic("messagesin") == 20
        assert of_topic("bytesin") == size
        assert 0 < of_topic("bytesout") <= size
        assert of_topic("totalproducerequests") == 10  # no log has seen what was for partition 7
        assert of_topic("failedproducerequests") == 0
        assert metrics['kafka_network_requestmetrics_requests_total{request="Produce",version="12"}'] == 11
        assert metrics['kafka_network_requestmetrics_totaltimems_count{request="Produce"}'] == 11
        assert metrics['kafka_network_requestmetrics_totaltimems_sum{request="Produce"}'] > 0
        assert metrics['kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.50"}'] > 0
        for partition in (0, 1):
            labels = f'{{topic="{TOPIC}",partition="{partition}"}}'
            assert metrics[f"kafka_log_log_logendoffset{labels}"] == 10
            assert metrics[f"kafka_log_log_logstartoffset{labels}"] == 0
            assert metrics[f"kafka_log_log_numlogsegments{labels}"] == 1
        assert metrics["kafka_server_replicamanager_partitioncount"] == 2
        assert metrics["kafka_server_kafkaserver_brokerstate"] == 3
        assert metrics["kaspar_malformed_requests_total"] == 0


def test_closed_connections_of_strangers_are_counted(broker: ObservedBroker) -> None:
    with broker:
        for _ in range(3):
            with broker.client() as stranger:
                stranger.send(b"GET / HTTP/1.1\r\nHost: example\r\n\r\n")
                assert stranger.is_closed_by_broker()
        assert broker.metrics()["kaspar_malformed_requests_total"] == 3
        assert len(broker.log_lines("closed a connection")) == 3


def test_health_and_readiness(broker: ObservedBroker) -> None:
    with broker:
        assert broker.get("healthz") == (200, "ok\n")
        assert broker.get("readyz") == (200, "ok\n")
        assert broker.get("nothing")[0] == 404


def test_metrics_can_be_read_under_load(broker: ObservedBroker) -> None:
    """Pages are written by another thread while topics come and go beneath it."""
    with broker, broker.client() as client:
        pages = 0
        for number in range(20):
            assert client.create_topic(f"topic-{number}", partitions=5) == 0
            client.send(b"")
            pages += bool(broker.metrics())
            assert client.delete_topic(f"topic-{number}") == 0
        assert pages == 20
        wait_until(lambda: broker.metrics()["kafka_server_replicamanager_partitioncount"] == 0, "all are gone")


def test_each_api_is_timed(broker: ObservedBroker) -> None:
    with broker, broker.client() as client:
        client.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"))
        client.topics()
        client.create_topic(TOPIC)
        client.offset_at(TOPIC)
        client.new_producer_id()
        metrics = broker.metrics()
        for name in ("ApiVersions", "Metadata", "CreateTopics", "ListOffsets", "InitProducerId"):
            for part in ("requestqueuetimems", "localtimems", "remotetimems", "responsesendtimems", "totaltimems"):
                count = metrics[f'kafka_network_requestmetrics_{part}_count{{request="{name}"}}']
                assert count >= 1, f"{part} of {name}"
