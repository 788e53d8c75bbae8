"""Replicas move between the log directories of a broker that is killed again and again meanwhile."""

import random
import time
from pathlib import Path

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kaspar.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from tests.peers.kaspar import KasparProcess
from tests.peers.observed import wait_until
from tests.peers.raw_client import RawClient

TOPIC = "orders"
PARTITIONS = range(3)
KILLS = 4
SLOWLY = {"replica.alter.log.dirs.io.max.bytes.per.second": "3000000"}


def move(client: RawClient, path: Path) -> None:
    topics = (AlterReplicaLogDirTopic(name=TOPIC, partitions=tuple(PARTITIONS)),)
    request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=str(path), topics=topics),))
    (result,) = client.call(request, AlterReplicaLogDirsResponse).results
    assert {each.error_code for each in result.partitions} == {ErrorCode.NONE}


def places(client: RawClient) -> dict[int, str]:
    """Where each partition is."""
    results = client.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse).results
    return {
        partition.partition_index: result.log_dir
        for result in results
        for topic in result.topics
        for partition in topic.partitions
        if topic.name == TOPIC and not partition.is_future_key
    }


def test_no_kill_during_a_move_costs_a_record(tmp_path: Path) -> None:
    rng = random.Random(4)
    folders = [tmp_path / "one", tmp_path / "two"]
    written: dict[int, list[bytes | None]] = {number: [] for number in PARTITIONS}
    overrides = {"log.dirs": ",".join(map(str, folders)), **SLOWLY}
    with KasparProcess(tmp_path / "broker", overrides=overrides) as broker:
        with RawClient(broker.port) as client:
            assert client.create_topic(TOPIC, partitions=len(PARTITIONS)) == 0
            for number in PARTITIONS:
                for _ in range(4):
                    written[number].append(rng.randbytes(300_000))
                    assert client.produce(TOPIC, [written[number][-1] or b""], partition=number).error_code == 0
        for round_number in range(KILLS):
            with RawClient(broker.port) as client:
                target = folders[round_number % 2]
                move(client, target)
                until = time.monotonic() + rng.uniform(0.05, 0.8)
                while time.monotonic() < until:
                    number = rng.choice(PARTITIONS)
                    value = rng.randbytes(1000)
                    assert client.produce(TOPIC, [value], partition=number).error_code == 0
                    written[number].append(value)
            broker.kill()
            broker.start()
            with RawClient(broker.port) as client:
                for number in PARTITIONS:
                    assert client.read_values(TOPIC, partition=number) == written[number]
        with RawClient(broker.port) as client:
            move(client, folders[1])
            wait_until(lambda: set(places(client).values()) == {str(folders[1])}, "all are moved")
            for number in PARTITIONS:
                assert client.read_values(TOPIC, partition=number) == written[number]
        wait_until(lambda: not list(folders[0].glob(f"{TOPIC}-?")), "the old folders are retired")
        assert not [folder for each in folders for folder in each.glob("*-future")]
        assert not [folder for each in folders for folder in each.glob("*-stray")]
