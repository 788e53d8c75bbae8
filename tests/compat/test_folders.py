"""Partition folders go both ways: what one broker wrote and stopped cleanly, the other opens as it is.

The topic is made on the second broker first. Its folder's files are then replaced by those of the first broker, under
the second one's topic id. It must open them without recovery, read back every record, keep every byte, know the
producers, and go on writing.
"""

import shutil
from pathlib import Path

import pytest

from tests.compat import transactional_folder
from tests.compat.drivers.api import EARLIEST, LATEST, Record
from tests.compat.drivers.confluent import ConfluentDriver
from tests.compat.partition_folder import TOPIC, TOPIC_CONFIG, fill, segments, topic_id
from tests.compat.scenario import refusal, wait_for_leaders
from tests.peers.kafka import ApacheKafka, kafka_jars, run_tool
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess

PARTITION = f"{TOPIC}-0"
BROKERS: dict[str, type[ApacheKafka] | type[KasparProcess]] = {"kafka": ApacheKafka, "kaspar": KasparProcess}

# What each broker logs when it does more than open a partition.
RECOVERY_WORDS = {
    "kafka": ("Recovering unflushed segment", "Found invalid", "corrupt", "Rebuilding", "rebuilding index"),
    "kaspar": ("recover", "rebuil", "cut invalid", "cannot be used", "set a segment aside"),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    against_kafka = metafunc.config.getoption("--against") == "kafka"
    pairs = [("kafka", "kafka")] if against_kafka else [("kaspar", "kafka"), ("kafka", "kaspar")]
    metafunc.parametrize(("writer", "reader"), pairs)


def test_a_folder_opens_in_the_other_broker(tmp_path: Path, writer: str, reader: str) -> None:
    unless_missing(kafka_jars)
    wrote, reads = BROKERS[writer](tmp_path / "writer"), BROKERS[reader](tmp_path / "reader")
    with wrote:
        writing = _with_topic(wrote)
        end_offset = fill(writing, TOPIC)
        written = writing.consume(TOPIC, start=EARLIEST, count=end_offset)
    with reads:
        _with_topic(reads)
    target = reads.data_dir / PARTITION
    replace_files(wrote.data_dir / PARTITION, target)
    before = {segment.name: segment.read_bytes() for segment in segments(target)}
    log_before = len(reads.log_text())

    with reads:
        wait_for_leaders(reads, TOPIC, [0])
        reading = ConfluentDriver(reads.bootstrap)
        logged = [line for line in reads.log_text()[log_before:].splitlines() if PARTITION in line]
        assert not [line for line in logged if any(word in line for word in RECOVERY_WORDS[reader])]
        assert reading.list_offset(TOPIC, LATEST) == end_offset
        assert reading.consume(TOPIC, start=EARLIEST, count=end_offset) == written
        after = {segment.name: segment.read_bytes() for segment in segments(target)}
        assert after == before
        assert reading.produce(TOPIC, [Record(b"and on")]) == [end_offset]
        # Both clusters hand out producer id 0 first: here it is a new producer, whose sequence does not go on.
        known = refusal(lambda: reading.produce(TOPIC, [Record(b"not I")], idempotent=True))
        assert known == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert all((target / name).read_bytes().startswith(content) for name, content in before.items())


def test_transactions_stay_what_they_are_in_the_other_broker(tmp_path: Path, writer: str, reader: str) -> None:
    """Aborted ones are not shown there either. One that was open holds readers back until somebody ends it by hand."""
    unless_missing(kafka_jars)
    topic = transactional_folder.TOPIC
    wrote, reads = BROKERS[writer](tmp_path / "writer"), BROKERS[reader](tmp_path / "reader")
    with wrote:
        _with_topic(wrote, topic, transactional_folder.TOPIC_CONFIG)
        transactional_folder.fill_with_transactions(wrote.bootstrap)
        written = transactional_folder.read_committed(wrote.bootstrap)
    with reads:
        _with_topic(reads, topic, transactional_folder.TOPIC_CONFIG)
    folder = f"{topic}-0"
    replace_files(wrote.data_dir / folder, reads.data_dir / folder)
    indexes = {file.name: file.read_bytes() for file in (wrote.data_dir / folder).glob("*.txnindex")}
    assert sum(map(len, indexes.values())) == 34 * transactional_folder.ABORTED

    with reads:
        wait_for_leaders(reads, topic, [0])
        assert transactional_folder.read_committed(reads.bootstrap) == written
        end_by_hand(reads.bootstrap, topic, written.last_stable_offset)
        after = transactional_folder.read_committed(reads.bootstrap)
        assert after.values == [*written.values, b"behind it"]
        assert after.last_stable_offset == written.last_stable_offset + 3, "two records, and the marker"


def end_by_hand(bootstrap: str, topic: str, start_offset: int) -> None:
    """As an administrator does, with Kafka's own tool."""
    tool = ("org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", bootstrap)
    hanging = run_tool(*tool, "find-hanging", "--topic", topic, "--max-transaction-timeout", "0").stdout
    assert str(start_offset) in hanging.split(), hanging
    run_tool(*tool, "abort", "--topic", topic, "--partition", "0", "--start-offset", str(start_offset))


def _with_topic(broker: BrokerProcess, topic: str = TOPIC, config: dict[str, str] = TOPIC_CONFIG) -> ConfluentDriver:
    driver = ConfluentDriver(broker.bootstrap)
    driver.create_topic(topic, config=config)
    wait_for_leaders(broker, topic, [0])
    return driver


def replace_files(source: Path, target: Path) -> None:
    """The files of one folder in place of another's, which keeps its own topic id."""
    identity = (target / "partition.metadata").read_text()
    assert topic_id(source) not in identity
    shutil.rmtree(target)
    shutil.copytree(source, target)
    (target / "partition.metadata").write_text(identity)
