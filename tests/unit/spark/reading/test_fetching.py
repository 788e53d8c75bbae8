"""A range read by a task, from a scripted broker."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client import fetching as client_fetching
from kaspar.records import Record, build_batch
from kaspar.spark.reading.data_loss import DataLost
from kaspar.spark.reading.fetching import read_range
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import OffsetRange
from tests.unit.client.scripted import ScriptedBroker
from tests.unit.client.test_fetching import OTHER_TOPIC_ID, TOPIC_ID, OneLog

Reading = Callable[..., list[int]]


@pytest.fixture
def log() -> OneLog:
    return OneLog()


@pytest.fixture
def offsets_read(log: OneLog, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reading]:
    monkeypatch.setattr(client_fetching, "_NO_SUCH_TOPIC_S", 0.1)
    with ScriptedBroker(log) as broker:
        log.port = broker.port

        def read(start: int, end: int, topic_id: uuid.UUID = TOPIC_ID, **options: str) -> list[int]:
            given = {
                "kafka.bootstrap.servers": f"127.0.0.1:{broker.port}",
                "kafka.request.timeout.ms": "500",
                "subscribe": "topic",
            }
            batches = read_range(OffsetRange("topic", 0, start, end, topic_id), ReadOptions.of(given | options))
            return [row["offset"] for batch in batches for row in batch.to_pylist()]

        yield read


def test_range_has_its_rows_and_no_others(offsets_read: Reading) -> None:
    assert offsets_read(5, 45) == list(range(5, 45))
    assert offsets_read(45, 46) == [45]
    assert offsets_read(7, 7) == []


def test_batches_have_the_most_rows_that_the_options_allow(log: OneLog, offsets_read: Reading) -> None:
    assert offsets_read(0, 50, maxBatchRows="3", columns="offset") == list(range(50))


def test_values_are_decoded_as_their_format_says(log: OneLog) -> None:
    log.batches = {0: bytes(build_batch([Record(0, None, b"text")] * 10))}
    with ScriptedBroker(log) as broker:
        log.port = broker.port
        options = ReadOptions.of(
            {
                "kafka.bootstrap.servers": f"127.0.0.1:{broker.port}",
                "subscribe": "topic",
                "value.format": "string",
                "columns": "value",
            }
        )
        (batch,) = read_range(OffsetRange("topic", 0, 0, 1, TOPIC_ID), options)
        assert batch.to_pylist() == [{"value": "text"}]


def test_lost_records_stop_the_query_with_a_sentence(log: OneLog, offsets_read: Reading) -> None:
    log.log_start = 30
    with pytest.raises(DataLost, match="The records of topic-0 from offset 10 to 29 are gone"):
        offsets_read(10, 45)


def test_range_goes_on_at_the_start_of_the_log_where_loss_is_allowed(log: OneLog, offsets_read: Reading) -> None:
    log.log_start = 30
    assert offsets_read(10, 45, failOnDataLoss="false") == list(range(30, 45))
    assert offsets_read(10, 25, failOnDataLoss="false") == []


def test_truncated_log_and_recreated_topic_are_reported(log: OneLog, offsets_read: Reading) -> None:
    with pytest.raises(DataLost, match="topic-0 was read up to offset 60 but now ends at 50"):
        offsets_read(60, 70)
    with pytest.raises(DataLost, match="was deleted and recreated"):
        offsets_read(0, 10, OTHER_TOPIC_ID)
    assert offsets_read(0, 10, OTHER_TOPIC_ID, failOnDataLoss="false") == []


def test_deleted_topic_is_reported(log: OneLog, offsets_read: Reading) -> None:
    log.next_responses = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 100_000
    with pytest.raises(DataLost, match="topic-0 no longer exists"):
        offsets_read(0, 10)


def test_other_refusals_are_no_loss(log: OneLog, offsets_read: Reading) -> None:
    log.next_responses = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(Refused, match="TOPIC_AUTHORIZATION_FAILED"):
        offsets_read(0, 10, failOnDataLoss="false")
