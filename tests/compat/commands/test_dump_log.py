"""kafka-dump-log prints the same as Kafka's, of folders that either broker wrote, whole and damaged."""

import itertools
import re
import shutil
import struct
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kaspar.records import Codec, Record, build_batch
from kaspar.records.control import ControlType, EndTransactionMarker, build_end_transaction_marker, build_leader_change
from tests.compat.commands.catalog import DUMP_LOG
from tests.compat.tools.comparing import run_ours, sentences
from tests.peers.kafka import ApacheKafka
from tests.peers.kafka_tools import Done, KafkaTools
from tests.peers.observed import wait_until
from tests.peers.process import BrokerProcess

FIRST_LOG = "00000000000000000000.log"
_names = (f"dumped-{number}" for number in itertools.count())


class Compared:
    """Runs both commands on the same files."""

    def __init__(self, kafka_tools: KafkaTools) -> None:
        self._kafka_tools = kafka_tools

    def __call__(self, *arguments: str | Path) -> Done:
        ours = run_ours(DUMP_LOG, *arguments)  # first, since Kafka's cuts odd bytes off the indexes that it reads
        theirs = self._kafka_tools.run(DUMP_LOG.kafka_class, *arguments)
        assert "Traceback" not in ours.errors
        assert sentences(ours.errors) == sentences(theirs.errors)
        for own, wanted in itertools.zip_longest(ours.output.splitlines(), theirs.output.splitlines()):
            assert own == wanted
        assert (ours.code, ours.output) == (theirs.code, theirs.output)
        return ours


@pytest.fixture
def compared(kafka_tools: KafkaTools) -> Compared:
    return Compared(kafka_tools)


@pytest.fixture(scope="module", params=["kaspar", "apache_kafka"])
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a broker, copied while it runs: a topic with what a log can have, and internal ones."""
    broker: BrokerProcess = request.getfixturevalue(request.param)
    topic = next(_names)
    _fill(broker.bootstrap, topic)
    copy = tmp_path_factory.mktemp(request.param) / "data"
    shutil.copytree(broker.data_dir, copy, ignore=shutil.ignore_patterns("*.lock", "*.deleted", "*.sqlite*"))
    (copy / f"{topic}-0").rename(copy / "topic-0")
    return copy


def _fill(bootstrap: str, topic: str) -> None:
    settings = {"segment.bytes": str(1 << 20), "index.interval.bytes": "4096"}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, config=settings)])[topic].result()
    for codec, idempotent in (("none", False), ("lz4", True), ("zstd", True), ("gzip", False), ("snappy", False)):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": idempotent}
        )
        for number in range(20):
            producer.produce(topic, f"value-{number}" * 20, f"schlüssel-{number}", headers={"a": b"1", "b": None})
        producer.produce(topic, None, "a tombstone")
        producer.produce(topic, "no key")
        producer.flush()
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    transactional.init_transactions()
    for commits in (True, False, True):
        transactional.begin_transaction()
        transactional.produce(topic, "in a transaction")
        transactional.flush()
        transactional.commit_transaction() if commits else transactional.abort_transaction()
    large = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "batch.size": 20_000})
    for number in range(100):
        large.produce(topic, bytes(12_000), str(number))
        large.flush()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(1.0) is not None, "the group consumes")
    consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    consumer.close()


def _files(folder: Path, suffix: str) -> list[Path]:
    found = sorted(folder.glob(f"*{suffix}"))
    assert found, f"{folder} has a file {suffix}"
    return found


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--deep-iteration",),
        ("--print-data-log",),
        ("--print-data-log", "--skip-record-metadata"),
        ("--value-decoder-class", "org.apache.kafka.tools.api.StringDecoder", "--max-bytes", "4000"),
        ("--max-bytes", "1000", "--deep-iteration"),
    ],
    ids=" ".join,
)
def test_logs(folders: Path, compared: Compared, options: tuple[str, ...]) -> None:
    for path in _files(folders / "topic-0", ".log"):
        assert compared("--files", path, *options).code == 0


@pytest.mark.parametrize("options", [(), ("--verify-index-only",), ("--index-sanity-check",)], ids=" ".join)
def test_indexes(folders: Path, compared: Compared, options: tuple[str, ...]) -> None:
    """All files at once; the last index is that of the segment that is written to."""
    folder = folders / "topic-0"
    paths = [*_files(folder, ".index"), *_files(folder, ".timeindex")]
    compared("--files", ",".join(map(str, paths)), *options)


def test_small_files(folders: Path, compared: Compared) -> None:
    folder = folders / "topic-0"
    for path in [*_files(folder, ".txnindex"), *_files(folder, ".snapshot"), folder / "partition.metadata"]:
        compared("--files", path)


def test_records_of_internal_topics(folders: Path, compared: Compared) -> None:
    offsets, transactions = folders / "__consumer_offsets-0" / FIRST_LOG, folders / "__transaction_state-0" / FIRST_LOG
    assert '"topic":' in compared("--files", offsets, "--offsets-decoder").output
    assert '"transactionalId":' in compared("--files", transactions, "--transaction-log-decoder").output
    compared("--files", transactions, "--transaction-log-decoder", "--skip-record-metadata")


def test_records_of_the_metadata_log(apache_kafka: ApacheKafka, compared: Compared, tmp_path: Path) -> None:
    """Kaspar has none."""
    copy = shutil.copytree(apache_kafka.data_dir / "__cluster_metadata-0", tmp_path / "copy")
    done = compared("--files", copy / FIRST_LOG, "--cluster-metadata-decoder")
    assert {"REGISTER_BROKER_RECORD", "NO_OP_RECORD"} <= set(re.findall(r'"type":"(\w+)"', done.output))
    compared("--files", apache_kafka.data_dir / "bootstrap.checkpoint", "--cluster-metadata-decoder")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A segment and its indexes, written by hand: offsets 100 to 109, a batch for each."""
    log, index, times = b"", b"", b""
    for number in range(10):
        index += struct.pack(">ii", number, len(log))
        times += struct.pack(">qi", 1000 + number, number)
        log += build_batch([Record(1000 + number, b"key", b"value")], base_offset=100 + number)
    for suffix, content in ((".log", log), (".index", index), (".timeindex", times)):
        (tmp_path / f"{100:020}{suffix}").write_bytes(content)
    return tmp_path


def test_damaged_logs(folder: Path, compared: Compared) -> None:
    path = folder / f"{100:020}.log"
    whole = path.read_bytes()
    assert "Non-consecutive" in compared("--files", path, "--deep-iteration").errors
    path.write_bytes(whole[:-5])
    assert "invalid bytes at the end" in compared("--files", path, "--print-data-log").output
    path.write_bytes(whole[: 3 * 70 + 9])
    compared("--files", path)
    wrong_crc = bytearray(whole)
    wrong_crc[-3] ^= 1
    path.write_bytes(wrong_crc)
    assert "isvalid: false" in compared("--files", path, "--print-data-log").output
    impossible_size = bytearray(whole)
    struct.pack_into(">i", impossible_size, 8, 5)
    path.write_bytes(impossible_size)
    assert compared("--files", path).code == 1
    path.write_bytes(whole + bytes(1000))
    assert compared("--files", path).code == 1
    path.write_bytes(b"")
    assert compared("--files", path).code == 0


def test_log_with_every_kind_of_batch(tmp_path: Path, compared: Compared) -> None:
    marker = EndTransactionMarker(ControlType.ABORT, 7)
    log = (
        build_batch([Record(5, None, None, offset=3), Record(9, b"", b"", offset=8)], codec=Codec.GZIP)
        + build_end_transaction_marker(marker, producer_id=3, producer_epoch=1, timestamp=99, base_offset=9)
        + build_leader_change(1, (1, 2), (2,), timestamp=77, base_offset=10, leader_epoch=4)
        + build_batch(
            [Record(1, b"\xff", b"x")], base_offset=20, producer_id=9, producer_epoch=2, base_sequence=2**31 - 1
        )
    )
    path = tmp_path / FIRST_LOG
    path.write_bytes(log)
    compared("--files", path, "--print-data-log")
    compared("--files", path, "--offsets-decoder")


def test_numbers_as_keys_and_values(tmp_path: Path, compared: Compared) -> None:
    path = tmp_path / FIRST_LOG
    path.write_bytes(build_batch([Record(1, struct.pack(">i", -5), struct.pack(">q", 1 << 40))]))
    package = "org.apache.kafka.tools.api"
    integer, long = f"{package}.IntegerDecoder", f"{package}.LongDecoder"
    done = compared("--files", path, "--key-decoder-class", integer, "--value-decoder-class", long)
    assert "key: -5 payload: 1099511627776" in done.output
    assert compared("--files", path, "--value-decoder-class", f"{package}.LongDecoder", "--key-decoder-class").code == 0


@pytest.mark.parametrize("options", [(), ("--verify-index-only",), ("--index-sanity-check",)], ids=" ".join)
def test_indexes_that_do_not_fit_the_log(folder: Path, compared: Compared, options: tuple[str, ...]) -> None:
    index, times = folder / f"{100:020}.index", folder / f"{100:020}.timeindex"
    compared("--files", f"{index},{times}", *options)
    entries, time_entries = bytearray(index.read_bytes()), bytearray(times.read_bytes())
    struct.pack_into(">i", entries, 8, 7)
    struct.pack_into(">i", entries, 24, 9)
    struct.pack_into(">q", time_entries, 12, 4)
    struct.pack_into(">i", time_entries, 9 * 12 + 8, 50)
    index.write_bytes(entries)
    times.write_bytes(time_entries)
    compared("--files", f"{index},{times}", *options)
    index.write_bytes(entries + b"abc")
    times.write_bytes(time_entries + b"abc")
    compared("--files", index, *options)
    compared("--files", times, *options)
    struct.pack_into(">ii", entries, 9 * 8, -3, 10)
    struct.pack_into(">qi", time_entries, 9 * 12, 3, -3)
    index.write_bytes(entries)
    times.write_bytes(time_entries)
    compared("--files", index, *options)
    compared("--files", times, *options)
    index.write_bytes(b"")
    times.write_bytes(b"")
    compared("--files", f"{index},{times}", *options)


def test_damaged_small_files(tmp_path: Path, compared: Compared, folder: Path) -> None:
    snapshot = folder / f"{7:020}.snapshot"
    snapshot.write_bytes(struct.pack(">hIi", 1, 5, 0))
    compared("--files", snapshot)
    snapshot.write_bytes(struct.pack(">hIi", 9, 5, 0))
    compared("--files", snapshot)
    aborted = folder / f"{7:020}.txnindex"
    aborted.write_bytes(struct.pack(">hqqqq", 0, 1, 2, 3, 4) + b"cut off")
    compared("--files", aborted)


def test_wrong_files(tmp_path: Path, compared: Compared) -> None:
    compared("--deep-iteration")
    compared("--files", tmp_path / "unknown.txt")
    compared("--files", tmp_path / "name.log")
    assert compared("--files", tmp_path / FIRST_LOG).code == 1
    assert compared("--files", tmp_path / FIRST_LOG.replace("log", "index")).code == 1
    assert compared("--files", tmp_path / FIRST_LOG.replace("log", "timeindex")).code == 1
