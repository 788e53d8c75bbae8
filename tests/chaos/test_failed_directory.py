"""One of two log directories fails: it goes offline, its partitions say so, the other one goes on."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from tests.chaos.conftest import StartBroker
from tests.chaos.faulty_disk import FaultyDisk
from tests.chaos.mounts import make_read_only, make_writable, small_disk
from tests.peers.missing import unless_missing
from tests.peers.observed import ObservedBroker, wait_until
from tests.peers.raw_client import RawClient

TOPIC = "orders"
PARTITIONS = 6
OFFLINE = "a log directory is offline"


@pytest.fixture
def disk(tmp_path: Path) -> FaultyDisk:
    return unless_missing(lambda: FaultyDisk.prepare(tmp_path, tmp_path / "bad"))


@pytest.fixture
def broker(start_broker: StartBroker, disk: FaultyDisk, tmp_path: Path) -> ObservedBroker:
    return start_broker(
        overrides={
            "log.dirs": f"{tmp_path / 'good'},{tmp_path / 'bad'}",
            "replica.high.watermark.checkpoint.interval.ms": "300",
        },
        environment=disk.environment,
    )


def _write_everywhere(client: RawClient, value: bytes) -> dict[int, int]:
    """The error codes of the partitions that refuse."""
    responses = {partition: client.produce(TOPIC, [value], partition=partition) for partition in range(PARTITIONS)}
    return {partition: response.error_code for partition, response in responses.items() if response.error_code}


def _partitions_in(folder: Path) -> set[int]:
    return {int(path.name.rpartition("-")[2]) for path in folder.glob(f"{TOPIC}-*")}


def _log_dirs(client: RawClient) -> dict[str, int]:
    response = client.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return {result.log_dir: result.error_code for result in response.results}


@pytest.mark.parametrize("flush_messages", ["9223372036854775807", "1"], ids=["page cache", "group commit"])
@pytest.mark.parametrize("fault", ["fail", "fail_to_sync"])
def test_partitions_of_a_failed_directory_go_offline_and_the_rest_go_on(
    broker: ObservedBroker, disk: FaultyDisk, tmp_path: Path, flush_messages: str, fault: str
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    broker.expect_error(OFFLINE)
    with broker.client() as client:
        assert client.create_topic(TOPIC, partitions=PARTITIONS, configs={"flush.messages": flush_messages}) == 0
        assert _write_everywhere(client, b"before") == {}
        broken = _partitions_in(bad)
        assert len(broken) == PARTITIONS // 2, "new partitions go to the directory with the fewest"
        refused = dict.fromkeys(broken, ErrorCode.KAFKA_STORAGE_ERROR)

        getattr(disk, fault)()
        _write_everywhere(client, b"meanwhile")  # refused, unless nothing of it waits for what fails
        broker.wait_for_log(OFFLINE)
        disk.work_again()  # a directory that failed is not trusted again, whatever it says
        assert _write_everywhere(client, b"after") == refused
        for partition in range(PARTITIONS):
            assert client.fetch(TOPIC, 0, partition=partition).error_code == refused.get(partition, 0)
            assert client.offset_at(TOPIC, partition=partition)[0] == refused.get(partition, 0)
        assert _log_dirs(client) == {str(good): 0, str(bad): ErrorCode.KAFKA_STORAGE_ERROR}
        assert client.create_topic("new", partitions=2) == 0, "new partitions go to what is left"
        assert client.produce("new", [b"x"], partition=1).error_code == 0
    metrics = broker.metrics()
    assert metrics["kafka_log_logmanager_offlinelogdirectorycount"] == 1
    assert metrics["kafka_server_replicamanager_offlinereplicacount"] == len(broken)
    assert broker.get("healthz")[0] == 200, "half a broker is no reason to restart it"

    assert broker.stop() == 0
    broker.start()
    with broker.client() as client:
        assert _write_everywhere(client, b"again") == {}, "a start checks the directory again"
        for partition in range(PARTITIONS):
            values = client.read_values(TOPIC, partition=partition)
            assert (values[0], values[-1]) == (b"before", b"again")


def test_failed_sync_is_never_acknowledged(broker: ObservedBroker, disk: FaultyDisk, tmp_path: Path) -> None:
    broker.expect_error(OFFLINE)
    with broker.client() as client:
        assert client.create_topic(TOPIC, partitions=PARTITIONS, configs={"flush.messages": "1"}) == 0
        disk.fail_to_sync()
        refused = dict.fromkeys(_partitions_in(tmp_path / "bad"), ErrorCode.KAFKA_STORAGE_ERROR)
        assert _write_everywhere(client, b"x") == refused


def test_a_directory_that_fails_while_nobody_writes_is_found_by_upkeep(
    broker: ObservedBroker, disk: FaultyDisk, tmp_path: Path
) -> None:
    broker.expect_error(OFFLINE)
    with broker.client() as client:
        assert client.create_topic(TOPIC, partitions=2) == 0
        disk.fail()
        broker.wait_for_log(OFFLINE)
        assert _log_dirs(client)[str(tmp_path / "bad")] == ErrorCode.KAFKA_STORAGE_ERROR


def test_without_any_directory_left_the_broker_stops(tmp_path: Path) -> None:
    disk = unless_missing(lambda: FaultyDisk.prepare(tmp_path, tmp_path / "bad"))
    settings = {"log.dirs": str(tmp_path / "bad")}
    broker = ObservedBroker(tmp_path / "lone", overrides=settings, environment=disk.environment).start()
    try:
        with broker.client() as client:
            assert client.create_topic(TOPIC) == 0
            disk.fail()
            assert client.produce(TOPIC, [b"x"]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        wait_until(lambda: not broker.running, "the broker ends")
        assert broker.stop() == 1
        assert broker.log_lines("data integrity cannot be guaranteed")
    finally:
        broker.kill()


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, where root too can be kept from writing."""
    with ExitStack() as stack:
        yield unless_missing(lambda: stack.enter_context(small_disk(tmp_path / "read-only", megabytes=16)))


def test_start_goes_on_without_a_read_only_directory_and_gives_no_offset_twice(
    read_only: Path, start_broker: StartBroker, tmp_path: Path
) -> None:
    """The partitions in it have records that the broker cannot see now: it must not recreate them elsewhere."""
    good = tmp_path / "good"
    broker = start_broker(overrides={"log.dirs": f"{good},{read_only}"})
    with broker.client() as client:
        assert client.create_topic(TOPIC, partitions=PARTITIONS) == 0
        assert _write_everywhere(client, b"before") == {}
    refused = dict.fromkeys(_partitions_in(read_only), ErrorCode.KAFKA_STORAGE_ERROR)
    assert broker.stop() == 0
    make_read_only(read_only)
    broker.expect_error("a log directory cannot be (used|loaded)")
    broker.expect_error("a partition has no log")
    broker.start()
    with broker.client() as client:
        assert _write_everywhere(client, b"after") == refused
        assert {partition: client.fetch(TOPIC, 0, partition=partition).error_code for partition in refused} == refused
        assert _log_dirs(client) == {str(good): 0, str(read_only): ErrorCode.KAFKA_STORAGE_ERROR}
        assert client.create_topic("new", partitions=2) == 0
    assert broker.metrics()["kafka_server_replicamanager_offlinereplicacount"] == len(refused)
    assert broker.stop() == 0
    make_writable(read_only)
    broker.start()
    with broker.client() as client:
        assert _write_everywhere(client, b"again") == {}
        for partition in range(PARTITIONS):
            expected = [b"before", b"again"] if partition in refused else [b"before", b"after", b"again"]
            assert client.read_values(TOPIC, partition=partition) == expected


def test_start_on_a_read_only_folder_is_refused_with_a_sentence(read_only: Path, tmp_path: Path) -> None:
    make_read_only(read_only)
    broker = ObservedBroker(tmp_path / "lone", overrides={"log.dirs": str(read_only / "data")})
    broker.folder.mkdir()
    broker.prepare()
    broker.launch()
    wait_until(lambda: not broker.running, "the broker ends")
    assert broker.stop() == 1
    assert "kaspar: no log directory can be used" in broker.log_text()
    assert "Traceback" not in broker.log_text()
