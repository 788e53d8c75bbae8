"""MirrorMaker 2 in its dedicated mode, from one broker to another: records, settings and the offsets of groups."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.compat.clients.api import Client
from tests.compat.clients.registry import JAVA
from tests.compat.clients.words import wait_for_offsets
from tests.compat.drivers.api import EARLIEST, Record
from tests.compat.drivers.confluent import ConfluentDriver
from tests.compat.scenario import came, eventually, sent
from tests.peers.against import broker_to_test
from tests.peers.brokers import Brokers
from tests.peers.java_program import JavaProgram, platform_jars
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess, write_properties

MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"
MIRROR_SECONDS = 60.0
GROUP = "mirrored-group"
ONE_BROKER = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}


@pytest.fixture
def target_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_to_test(request, tmp_path / "target", ONE_BROKER) as broker:
        yield broker


@pytest.mark.timeout(240)
def test_records_and_committed_offsets_arrive_at_the_other_broker(
    broker: Brokers, target_broker: BrokerProcess, tmp_path: Path
) -> None:
    unless_missing(platform_jars)
    source, target = ConfluentDriver(broker.bootstrap), ConfluentDriver(target_broker.bootstrap)
    source.create_topic("mirrored", partitions=2, config={"max.message.bytes": "123456"})
    records = [Record(b"value-%d" % n, b"key-%d" % n, headers=(("n", b"%d" % n),), partition=n % 2) for n in range(100)]
    source.produce("mirrored", records)
    write_properties(tmp_path / "mirror.properties", mirror_settings(broker, target_broker))
    with (
        closing(Client(JAVA, broker.bootstrap)) as at_source,
        closing(Client(JAVA, target_broker.bootstrap)) as at_target,
        JavaProgram(tmp_path, MIRROR_MAKER, tmp_path / "mirror.properties") as mirror,
    ):
        eventually(lambda: target.partition_count("source.mirrored") == 2, mirror.log_text, seconds=MIRROR_SECONDS)
        for partition in range(2):
            expected = [record for record in records if record.partition == partition]
            received = target.consume("source.mirrored", start=EARLIEST, count=50, partition=partition)
            assert came(received) == sent(expected)
            source.produce("mirrored", [Record(b"later", partition=partition)])
        assert target.describe_config("source.mirrored")["max.message.bytes"] == "123456"
        at_source.set_group_offsets(GROUP, ("mirrored", 0, 51, ""), ("mirrored", 1, 51, ""))
        wait_for_offsets(at_target, GROUP, {("source.mirrored", 0): 51, ("source.mirrored", 1): 51})
        assert mirror.running


def mirror_settings(source: Brokers, target: Brokers) -> dict[str, str]:
    settings = {
        "clusters": "source, target",
        "source.bootstrap.servers": source.bootstrap,
        "target.bootstrap.servers": target.bootstrap,
        "source->target.enabled": "true",
        "source->target.topics": "mirrored",
        "source->target.groups": GROUP,
        "target->source.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "replication.factor": "1",
        "refresh.topics.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "offset.lag.max": "0",
    }
    internal = (
        "checkpoints.topic",
        "heartbeats.topic",
        "offset-syncs.topic",
        "offset.storage",
        "status.storage",
        "config.storage",
    )
    return settings | {f"{topic}.replication.factor": "1" for topic in internal}
