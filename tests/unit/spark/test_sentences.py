"""Brokers that do not answer are told in a sentence by everything that Spark calls, not by the error of a socket."""

import os
import socket
from collections.abc import Iterator
from typing import NoReturn

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from kaspar.base.errors import KasparError
from kaspar.spark import batch_writer
from kaspar.spark.batch_writer import KasparBatchWriter
from kaspar.spark.guarantee import AtLeastOnce
from kaspar.spark.options import ReadOptions
from kaspar.spark.planning import OffsetRange, ReadTask
from kaspar.spark.reading import read_task
from kaspar.spark.stream_writer import KasparStreamWriter

SENTENCE = r"^A broker of 127.0.0.1:\d+ \(kafka.bootstrap.servers\) does not answer, or is not reached: .*refused"
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
    options = {"kafka.bootstrap.servers": nobody, "topic": "t"}
    batch = KasparBatchWriter(options, SCHEMA, overwrite=False)
    stream = KasparStreamWriter(options, SCHEMA, overwrite=False)
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
