"""Kafka's tools for the replicas of a cluster, and what DescribeQuorum says of one."""

import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

from confluent_kafka import Producer

from kaspar.client import Client
from kaspar.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from kaspar.testing import Cluster
from tests.integration.commands import PROGRAMS, run
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

SECONDS = 60.0


def command(cluster: Cluster, program: str, *arguments: str | Path) -> str:
    done = run(program, "--bootstrap-server", cluster.bootstrap_servers, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def new_topic(cluster: Cluster, name: str, *replicas: int) -> None:
    assignment = ":".join(map(str, replicas))
    command(cluster, "kafka-topics", "--create", "--topic", name, "--replica-assignment", assignment)
    wait_until(lambda: partition_of(cluster, name)[1] == set(replicas), "all replicas are in sync")


def partition_of(cluster: Cluster, topic: str) -> tuple[int, set[int], list[int]]:
    """Leader, in-sync replicas and replicas of partition 0."""
    with RawClient(cluster.port(1)) as client:
        (found,) = client.metadata(topic).topics
        if not found.partitions:
            return -1, set(), []
        (partition,) = found.partitions
        return partition.leader_id, set(partition.isr_nodes), list(partition.replica_nodes)


def plan(folder: Path, topic: str, *replicas: int) -> Path:
    file = folder / f"{topic}-{'-'.join(map(str, replicas))}.json"
    file.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": list(replicas)}]})
    )
    return file


def write(cluster: Cluster, topic: str, records: int, size: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for _ in range(records):
        producer.produce(topic, os.urandom(size), partition=0)
    assert producer.flush(SECONDS) == 0


def test_the_preferred_leader_is_elected_by_command(cluster: Cluster, tmp_path: Path) -> None:
    new_topic(cluster, "elected", 1, 2)
    command(
        cluster, "kafka-reassign-partitions", "--execute", "--reassignment-json-file", plan(tmp_path, "elected", 2, 1)
    )
    wait_until(lambda: partition_of(cluster, "elected")[2] == [2, 1], "the order is another")
    assert partition_of(cluster, "elected")[0] == 1
    elect = ("--election-type", "preferred", "--topic", "elected", "--partition", "0")
    done = "Successfully completed leader election (PREFERRED) for partitions elected-0"
    assert done in command(cluster, "kafka-leader-election", *elect)
    wait_until(lambda: partition_of(cluster, "elected")[0] == 2, "the preferred one leads")
    again = "Valid replica already elected for partitions elected-0"
    assert again in command(cluster, "kafka-leader-election", *elect)


def test_a_reassignment_is_cancelled_by_command(cluster: Cluster, tmp_path: Path) -> None:
    """It is throttled so much that it cannot be done before."""
    new_topic(cluster, "cancelled", 1, 2)
    write(cluster, "cancelled", 20, 100_000)
    file = plan(tmp_path, "cancelled", 1, 3)
    execute = ("--execute", "--reassignment-json-file", file, "--throttle", "1000")
    command(cluster, "kafka-reassign-partitions", *execute)
    assert "replicas: 1,3,2." in command(cluster, "kafka-reassign-partitions", "--list")
    said = command(cluster, "kafka-reassign-partitions", "--cancel", "--reassignment-json-file", file)
    assert "Successfully cancelled partition reassignment for: cancelled-0" in said
    assert "No partition reassignments found." in command(cluster, "kafka-reassign-partitions", "--list")
    wait_until(lambda: partition_of(cluster, "cancelled")[1:] == ({1, 2}, [1, 2]), "it is as it was")
    wait_until(lambda: not (cluster.broker_data(3) / "cancelled-0").exists(), "its copy is removed")
    described = command(cluster, "kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "1")
    assert "throttled" not in described


def test_replicas_are_compared_by_command(cluster: Cluster) -> None:
    new_topic(cluster, "compared", 1, 2, 3)
    write(cluster, "compared", 7, 10)
    program = [str(PROGRAMS / "kafka-replica-verification"), "--broker-list", cluster.bootstrap_servers]
    options = ["--topics-include", "compared", "--report-interval-ms", "300", "--max-wait-ms", "100", "--time", "-2"]
    with subprocess.Popen(
        [*program, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        stuck = threading.Timer(SECONDS, running.kill)
        stuck.start()
        lines = []
        for line in running.stdout:
            lines.append(line)
            if re.search(r"max lag is 0 for partition compared-0 at offset 7 among 1 partitions", line):
                break
        stuck.cancel()
        running.send_signal(signal.SIGINT)
    assert "at offset 7" in lines[-1], lines
    assert "Traceback" not in "".join(lines)


def test_every_broker_names_the_controller_as_leader_and_the_others_as_observers(cluster: Cluster) -> None:
    controller = cluster.controller_id()
    asked = RequestTopicData(topic_name="__cluster_metadata", partitions=(RequestPartitionData(partition_index=0),))
    epochs = set()
    for broker_id in cluster.broker_ids:
        with Client(f"127.0.0.1:{cluster.port(broker_id)}") as client:
            response = client.request(DescribeQuorumRequest(topics=(asked,)), DescribeQuorumResponse)
        (found,) = response.topics[0].partitions
        assert found.leader_id == controller
        assert [voter.replica_id for voter in found.current_voters] == [controller]
        assert sorted(each.replica_id for each in found.observers) == sorted(set(cluster.broker_ids) - {controller})
        assert [node.node_id for node in response.nodes] == [controller]
        epochs.add(found.leader_epoch)
    assert len(epochs) == 1
    assert min(epochs) >= 1
