"""Bytes that are not in the page cache are read in a thread, and readers of the warm end do not wait for them."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.client import Client
from kaspar.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kaspar.records import Record, build_batch, iter_records
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.disk.source import NotCached
from kaspar.storage.log import Log
from kaspar.testing import Broker

TOPIC = "chilly"
TIMEOUT_S = 20.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path) as broker:
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=(), configs=())
        with Client(broker.bootstrap_servers) as client:
            response = client.request(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse)
        assert response.topics[0].error_code == 0
        yield broker


def append(client: Client, count: int) -> None:
    for number in range(count):
        client.produce(TOPIC, 0, bytes(build_batch([Record(1_700_000_000_000 + number, None, b"%d" % number)])))


def read_from(client: Client, offset: int) -> list[Record]:
    records = client.fetch(TOPIC, 0, offset, max_bytes=400).records
    assert records is not None
    return [record for record in iter_records(records) if record.offset >= offset]


def test_everything_is_read_where_nothing_is_cached(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def never_cached(directory: LogDirectory, fd: int, length: int, position: int) -> bytes:
        raise NotCached

    with Client(broker.bootstrap_servers) as client:
        append(client, 50)
        monkeypatch.setattr(LogDirectory, "pread_now", never_cached)
        values: list[bytes | None] = []
        while len(values) < 50:
            values += [record.value for record in read_from(client, len(values))]
    assert values == [b"%d" % number for number in range(50)]


def test_a_reader_of_cold_data_does_not_hold_up_one_of_warm_data(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk_responds = threading.Event()
    reading = threading.Event()
    read = Log.read

    def slow_disk(log: Log, *arguments: int, whole_first_batch: bool = True) -> bytes | bytearray:
        reading.set()
        assert disk_responds.wait(TIMEOUT_S)
        return read(log, *arguments, whole_first_batch=whole_first_batch)

    def cached_but_for_the_start(directory: LogDirectory, fd: int, length: int, position: int) -> bytes | bytearray:
        if position == 0:
            raise NotCached
        return directory.files.pread(fd, length, position)

    with Client(broker.bootstrap_servers) as cold, Client(broker.bootstrap_servers) as warm:
        append(warm, 10)
        monkeypatch.setattr(Log, "read", slow_disk)
        monkeypatch.setattr(LogDirectory, "pread_now", cached_but_for_the_start)
        responses: list[bytes | None] = []
        reader = threading.Thread(
            target=lambda: responses.extend(record.value for record in read_from(cold, 0)), daemon=True
        )
        reader.start()
        assert reading.wait(TIMEOUT_S)
        assert [record.value for record in read_from(warm, 9)] == [b"9"]
        assert not responses
        disk_responds.set()
        reader.join(TIMEOUT_S)
    assert responses[0] == b"0"
