"""MirrorMaker 2 in its dedicated mode, from one broker to another: records, settings and the offsets of groups."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.clients.api import Client
from tests.compat.clients.registry import CONFLUENT
from tests.compat.drivers.api import EARLIEST, Record
from tests.compat.drivers.confluent import ConfluentDriver
from tests.compat.scenario import came, eventually, sent
from tests.peers.java_program import JavaProgram, platform_jars
from tests.peers.kafka import ApacheKafka
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess, write_properties

MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"
MIRROR_SECONDS = 120.0
ONE_BROKER = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}


@pytest.fixture
def target_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    kind = ApacheKafka if request.config.getoption("--against") == "kafka" else KasparProcess
    with kind(tmp_path / "target", overrides=ONE_BROKER) as broker:
        yield broker


@pytest.mark.timeout(240)
def test_records_and_committed_offsets_arrive_at_the_other_broker(
    broker: BrokerProcess, target_broker: BrokerProcess, tmp_path: Path
) -> None:
    unless_missing(platform_jars)
    source, target = ConfluentDriver(broker.bootstrap), ConfluentDriver(target_broker.bootstrap)
    source.create_topic("mirrored", partitions=2, config={"max.message.bytes": "123456"})
    records = [Record(b"value-%d" % n, b"key-%d" % n, headers=(("n", b"%d" % n),), partition=n % 2) for n in range(100)]
    source.produce("mirrored", records)
    members = Client(CONFLUENT, broker.bootstrap)
    members.set_group_offsets("mirrored-group", ("mirrored", 0, 20, ""), ("mirrored", 1, 50, ""))
    members.close()
    write_properties(tmp_path / "mirror.properties", mirror_settings(broker, target_broker))
    observer = Client(CONFLUENT, target_broker.bootstrap)
    with JavaProgram(tmp_path, MIRROR_MAKER, tmp_path / "mirror.properties") as mirror:

        def mirrored() -> bool:
            assert mirror.running, mirror.log_text()[-5000:]
            offsets = observer.group_offsets("mirrored-group")
            return [row[:3] for row in offsets] == [("source.mirrored", 0, 20), ("source.mirrored", 1, 50)]

        eventually(mirrored, lambda: f"the offsets\n{mirror.log_text()[-5000:]}", seconds=MIRROR_SECONDS)
        for partition in range(2):
            expected = [record for record in records if record.partition == partition]
            received = target.consume("source.mirrored", start=EARLIEST, count=50, partition=partition)
            assert came(received) == sent(expected)
        assert target.describe_config("source.mirrored")["max.message.bytes"] == "123456"
        source.produce("mirrored", [Record(b"later")])
        assert target.consume("source.mirrored", start=EARLIEST, count=51)[-1].value == b"later"
    observer.close()


def mirror_settings(source: BrokerProcess, target: BrokerProcess) -> dict[str, str]:
    settings = {
        "clusters": "source, target",
        "source.bootstrap.servers": source.bootstrap,
        "target.bootstrap.servers": target.bootstrap,
        "source->target.enabled": "true",
        "source->target.topics": "mirrored",
        "source->target.groups": "mirrored-group",
        "target->source.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "replication.factor": "1",
        "refresh.topics.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "offset.lag.max": "0",
        "offset.flush.interval.ms": "500",
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
