"""Kafka's own dump tool reads a stopped broker's files with no complaint: segments, indexes of every kind, producer
snapshots.
"""

import re
from pathlib import Path

import pytest

from tests.compat import transactional_folder
from tests.compat.drivers.confluent import ConfluentDriver
from tests.compat.partition_folder import TOPIC, TOPIC_CONFIG, fill, segments
from tests.peers.kafka import ApacheKafka, kafka_jars, run_tool
from tests.peers.kaspar import KasparProcess
from tests.peers.missing import unless_missing
from tests.peers.process import BrokerProcess

DUMP = "org.apache.kafka.tools.DumpLogSegments"

# The tool says this of every segment but the first, also of Kafka's own: it takes offset -1 to come before each.
_NO_COMPLAINT = re.compile(r"Non-consecutive offsets in .*\.log\n  -1 is followed by \d+\n?")
# And this of compacted ones, Kafka's own too.
_GAPS = re.compile(r"Non-consecutive offsets in .*\.log\n(  -?\d+ is followed by \d+\n?)+")
_COMPLAINT = re.compile(
    r"Mismatch|mismatch|Non-consecutive|isvalid: false|[Cc]orrupt|[Ii]nvalid|Exception|Could not|not found",
    re.MULTILINE,
)


def broker_to_dump(request: pytest.FixtureRequest, folder: Path) -> BrokerProcess:
    unless_missing(kafka_jars)
    return ApacheKafka(folder) if request.config.getoption("--against") == "kafka" else KasparProcess(folder)


@pytest.fixture(scope="module")
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The partition's folder of a broker that was filled and stopped, and the offset after its last record."""
    broker = broker_to_dump(request, tmp_path_factory.mktemp("dumped"))
    with broker:
        driver = ConfluentDriver(broker.bootstrap)
        driver.create_topic(TOPIC, config=TOPIC_CONFIG)
        end_offset = fill(driver, TOPIC)
    return broker.data_dir / f"{TOPIC}-0", end_offset


def dump(files: list[Path], *options: str, gaps: bool = False) -> str:
    """What the tool says of the files, if it has no complaint. `gaps` are no complaint of compacted segments."""
    done = run_tool(DUMP, "--files", ",".join(map(str, files)), *options)
    printed = (_GAPS if gaps else _NO_COMPLAINT).sub("", done.stdout + done.stderr)
    complaints = [line for line in printed.splitlines() if _COMPLAINT.search(line)]
    assert not complaints, complaints
    return printed


def test_every_record_of_every_segment_is_listed(written: tuple[Path, int]) -> None:
    folder, end_offset = written
    assert len(segments(folder)) > 2
    printed = dump(segments(folder), "--deep-iteration")
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", printed, re.MULTILINE)]
    assert offsets == list(range(end_offset))
    assert set(re.findall(r"compresscodec: (\w+)", printed)) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert set(re.findall(r"isvalid: (\w+)", printed)) == {"true"}


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_indexes_agree_with_their_segments(written: tuple[Path, int], kind: str) -> None:
    folder, _ = written
    files = sorted(folder.glob(f"*.{kind}"))
    assert len(files) == len(segments(folder))
    assert any(file.stat().st_size > 0 for file in files)
    dump(files, "--verify-index-only")
    printed = dump(files, "--index-sanity-check")
    sane = re.findall(rf"\.{kind} (?:passed sanity check|is empty)", printed)
    assert len(sane) == len(files)


def test_producer_snapshots_are_listed(written: tuple[Path, int]) -> None:
    folder, end_offset = written
    snapshots = sorted(folder.glob("*.snapshot"))
    assert snapshots[-1].name == f"{end_offset:020}.snapshot", "a clean stop leaves a snapshot of the end"
    printed = dump(snapshots[-1:])
    assert f"lastOffset: {end_offset - 1} " in printed
    assert len(set(re.findall(r"^producerId: (\d+) ", printed, re.MULTILINE))) == 5
    dump(snapshots)


@pytest.fixture(scope="module")
def with_transactions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a partition with transactions, of a broker that was stopped."""
    broker = broker_to_dump(request, tmp_path_factory.mktemp("transactions"))
    with broker:
        driver = ConfluentDriver(broker.bootstrap)
        driver.create_topic(transactional_folder.TOPIC, config=transactional_folder.TOPIC_CONFIG)
        transactional_folder.fill_with_transactions(broker.bootstrap)
    return broker.data_dir / f"{transactional_folder.TOPIC}-0"


def test_aborted_transactions_are_listed(with_transactions: Path) -> None:
    files = sorted(with_transactions.glob("*.txnindex"))
    printed = dump(files)
    entry = re.compile(
        r"^version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)$", re.M
    )
    entries = [tuple(map(int, found)) for found in entry.findall(printed)]
    assert len(entries) == transactional_folder.ABORTED
    for _, first_offset, last_offset, last_stable_offset in entries:
        assert first_offset < last_offset
        assert last_stable_offset == last_offset + 1, "no other was open when one of these ended"
    assert 34 * len(entries) == sum(file.stat().st_size for file in files)


def test_markers_are_listed_with_how_they_end_a_transaction(with_transactions: Path) -> None:
    printed = dump(segments(with_transactions), "--deep-iteration")
    ends = re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: \d+", printed)
    assert (ends.count("ABORT"), ends.count("COMMIT")) == (transactional_folder.ABORTED, 3)
    markers = re.findall(r"^baseOffset: .* isTransactional: true isControl: true .*$", printed, re.M)
    assert len(markers) == len(ends)


def test_an_open_transaction_is_in_the_last_producer_snapshot(with_transactions: Path) -> None:
    printed = dump(sorted(with_transactions.glob("*.snapshot"))[-1:])
    assert len(re.findall(r"currentTxnFirstOffset: OptionalLong\[\d+\]|currentTxnFirstOffset: \d+", printed)) == 1
