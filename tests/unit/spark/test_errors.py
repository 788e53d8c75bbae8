"""Brokers that do not respond are reported in a sentence, not as a socket error, by everything that Spark calls."""

import os
import socket
from collections.abc import Iterator
from typing import NoReturn

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from kaspar.base.errors import KasparError
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import OffsetRange, ReadTask
from kaspar.spark.reading.task import read_task
from kaspar.spark.writing import batch as batch_writer
from kaspar.spark.writing.at_least_once import AtLeastOnce
from kaspar.spark.writing.batch import KasparBatchWriter
from kaspar.spark.writing.options import WriteOptions
from kaspar.spark.writing.stream import KasparStreamWriter

SENTENCE = r"^No response from a broker of 127.0.0.1:\d+ \(kafka.bootstrap.servers\): .*refused"
SCHEMA = StructType([StructField("value", BinaryType())])


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")  # what a worker sets ends with it, and here with the test


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def refuse(*asked: object) -> NoReturn:
    raise ConnectionRefusedError("refused")


def test_a_task_that_reads(nobody: str) -> None:
    options = ReadOptions.of({"kafka.bootstrap.servers": nobody, "subscribe": "t", "kafka.request.timeout.ms": "1"})
    with pytest.raises(KasparError, match=SENTENCE):
        list(read_task(ReadTask((OffsetRange("t", 0, 0, 1),)), options))
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"


def test_what_a_writer_does(nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_writer, "_check_destination", lambda options: None)
    for step in ("begin", "publish", "abort"):
        monkeypatch.setattr(AtLeastOnce, step, refuse)
    options = WriteOptions.of({"kafka.bootstrap.servers": nobody, "topic": "t"})
    batch = KasparBatchWriter(options, AtLeastOnce(options), SCHEMA, overwrite=False)
    stream = KasparStreamWriter(options, AtLeastOnce(options), SCHEMA)
    rows = pa.RecordBatch.from_pydict({"value": [b"v"]})
    for call in (
        lambda: batch.write(iter([rows])),
        lambda: batch.commit([]),
        lambda: batch.abort([]),
        lambda: stream.write(iter([rows])),
        lambda: stream.commit([], 1),
        lambda: stream.abort([], 1),
    ):
        with pytest.raises(KasparError, match=SENTENCE):
            call()
