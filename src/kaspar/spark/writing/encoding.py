"""Encodes a task's rows: Arrow columns become record batches, which are sent as they fill up.

Rows keep their order within a partition. The partition of a row is chosen as in the Java client: by the `partition`
column, else by the key, else sticky. Records without a timestamp get the time at which they are encoded. Memory is
bounded: by the producer for batches in flight, and here for batches being filled.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from kaspar.base.ids import TopicPartition
from kaspar.client.delivery_terms import TopicPartitions
from kaspar.records.column_writing import (
    BatchBuilder,
    Partitioner,
    RecordColumns,
    all_rows,
    group_rows,
    take_batch,
)
from kaspar.spark.errors import naming_brokers
from kaspar.spark.garbage import freeze_loaded_objects
from kaspar.spark.writing.arrow_columns import (
    MAX_COLUMN_BYTES,
    PartitionColumn,
    UnwritableRow,
    column_of,
    int32,
    is_too_wide,
    partition_column,
    record_columns,
)
from kaspar.spark.writing.guarantee import Guarantee, TaskWriter
from kaspar.spark.writing.options import WriteOptions

if TYPE_CHECKING:
    from kaspar.spark.formats.registered_encoder import PlannedEncoding

_MAX_REQUEST_BYTES = 1 << 20  # larger requests would leave the broker idle for too long

Ready = tuple[TopicPartition, memoryview]


class RowsStored(NamedTuple):
    """The result of a task whose rows are all stored."""

    message: WriterCommitMessage
    """The guarantee's message to the driver."""
    end_offsets: Mapping[TopicPartition, int]
    """See TaskWriter.end_offsets."""


def write_rows(batches: Iterable[pa.RecordBatch], options: WriteOptions, guarantee: Guarantee) -> RowsStored:
    """Write all rows of a task. Returns once they are stored."""
    writer = _NamingWriter(guarantee, options.connection.bootstrap_servers)
    try:
        encoder = RowEncoder(options, writer)
        encoded = _encoded(batches, options.encodings)
        for request in _requests(encoder.encode_all(encoded), options.producer.max_request_size):
            writer.send(request)
        stored = RowsStored(writer.finish(encoder.rows), writer.end_offsets)
    except BaseException:
        writer.abandon()
        raise
    freeze_loaded_objects()
    return stored


def _encoded(batches: Iterable[pa.RecordBatch], encodings: Sequence["PlannedEncoding"]) -> Iterable[pa.RecordBatch]:
    """Encode keys and values with their registered schemas."""
    if not encodings:
        return batches
    from kaspar.spark.formats.registered_encoder import encoded_columns, encoder_of  # most writes have no registry

    encoders = {each.field: encoder_of(each) for each in encodings}
    return (encoded_columns(batch, encoders) for batch in batches)


class _NamingWriter:
    """A TaskWriter whose socket errors name the cluster. Only these do: the source of the rows may also raise an
    OSError, which has nothing to do with brokers."""

    def __init__(self, guarantee: Guarantee, bootstrap_servers: str) -> None:
        self._naming = partial(naming_brokers, bootstrap_servers)
        with self._naming():
            self._writer = guarantee.begin()

    def partitions_of(self, topic: str, at_least: int = 1) -> TopicPartitions:
        with self._naming():
            return self._writer.partitions_of(topic, at_least)

    def send(self, batches: Sequence[Ready]) -> None:
        with self._naming():
            self._writer.send(batches)

    def finish(self, rows: int) -> WriterCommitMessage:
        with self._naming():
            return self._writer.finish(rows)

    @property
    def end_offsets(self) -> Mapping[TopicPartition, int]:
        return self._writer.end_offsets

    def abandon(self) -> None:
        self._writer.abandon()


def _requests(batches: Iterable[Ready], max_request_size: int) -> Iterator[list[Ready]]:
    """Group batches into requests, since a request with small batches costs client and broker as much as any other."""
    max_bytes = min(max_request_size, _MAX_REQUEST_BYTES)
    request: list[Ready] = []
    size = 0
    for ready in batches:
        size += len(ready[1])
        if request and size > max_bytes:
            yield request
            request, size = [], len(ready[1])
        request.append(ready)
    if request:
        yield request


class _Topic:
    """A topic's partitioner, and the batches being filled for its partitions."""

    def __init__(self, name: str, partitioner: Partitioner) -> None:
        self.name = name
        self.partitioner = partitioner
        self.builders: dict[int, BatchBuilder] = {}


class RowEncoder:
    def __init__(
        self,
        options: WriteOptions,
        writer: TaskWriter,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        rng: random.Random | None = None,
    ) -> None:
        self.rows = 0
        self._topic = options.topic
        self._settings = options.producer
        self._codec = options.producer.codec
        self._writer = writer
        self._now_ms = now_ms
        self._rng = rng or random.Random()
        self._topics: dict[str, _Topic] = {}

    def encode_all(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Ready]:
        for batch in batches:
            yield from self._encode(batch)
        yield from self._remaining()

    def _encode(self, batch: pa.RecordBatch) -> Iterator[Ready]:
        """Encode the rows of `batch`, and yield record batches as they fill up."""
        if not batch.num_rows:
            return
        if is_too_wide(batch):
            half = batch.num_rows // 2
            if not half:
                raise UnwritableRow(f"A row of more than {MAX_COLUMN_BYTES} bytes cannot be written")
            yield from self._encode(batch.slice(0, half))
            yield from self._encode(batch.slice(half))
            return
        columns = record_columns(batch)
        wanted = partition_column(batch)
        now_ms = self._now_ms()
        for name, rows, first, last in self._by_topic(batch):
            topic = self._topics.get(name) or self._begin_topic(name)
            partitions = self._assign(topic, columns, rows, first, last, wanted)
            grouped, starts = group_rows(partitions, topic.partitioner.partition_count, rows, first)
            start = 0
            for partition, end in enumerate(starts[1:]):
                if end > start:
                    yield from self._append(topic, partition, columns, grouped, start, end, now_ms)
                    start = end
        self.rows += batch.num_rows
        yield from self._limit_memory()

    def _remaining(self) -> Iterator[Ready]:
        """The batches that are not full, when there are no more rows."""
        for topic in self._topics.values():
            for partition, builder in topic.builders.items():
                if builder.count:
                    yield self._take(topic, partition, builder)

    # --- which topic and partition ------------------------------------------------------------------------------------

    def _by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, memoryview, int, int]]:
        """Each topic with its rows, which are a slice of an array of row numbers."""
        rows = all_rows(batch.num_rows)
        if self._topic is not None:
            yield self._topic, rows, 0, len(rows)
            return
        column = column_of(batch, "topic")
        if column is None or column.null_count:
            raise UnwritableRow("null topic present in the data. Use the topic option for setting a default topic.")
        encoded = column.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        if len(names) > 1:
            indices = encoded.indices.cast(pa.int32())
            groups = int32(indices.buffers()[1], indices.offset, len(indices))
            rows, starts = group_rows(groups, len(names), rows, 0)
        else:
            starts = memoryview(bytes(4) + len(rows).to_bytes(4, "little")).cast("i")
        for index, name in enumerate(names):
            if starts[index] < starts[index + 1]:
                yield name, rows, starts[index], starts[index + 1]

    def _begin_topic(self, name: str) -> _Topic:
        topic = self._topics[name] = _Topic(name, self._new_partitioner(name, 1))
        return topic

    def _new_partitioner(self, name: str, at_least: int) -> Partitioner:
        known = self._writer.partitions_of(name, at_least)
        sticky = list(known.available or range(known.count))
        self._rng.shuffle(sticky)
        array = memoryview(bytearray(4 * len(sticky))).cast("i")
        for index, partition in enumerate(sticky):
            array[index] = partition
        return Partitioner(known.count, array, max(1, self._settings.batch_size))

    def _assign(
        self, topic: _Topic, columns: RecordColumns, rows: memoryview, first: int, last: int, wanted: PartitionColumn
    ) -> memoryview:
        for is_second_try in (False, True):
            partitioner = topic.partitioner
            partitions = partitioner.assign(columns, rows, first, last, *wanted, self._settings.ignore_keys)
            if not partitioner.out_of_range:
                return partitions
            stranger = partitioner.stranger
            if stranger < 0:
                raise UnwritableRow(
                    f"Invalid partition: {stranger}. Partition number should always be non-negative or null."
                )
            if not is_second_try:  # the topic may have more partitions by now
                topic.partitioner = self._new_partitioner(topic.name, stranger + 1)
        raise UnwritableRow(
            f"Invalid partition given with record: {stranger} is not in the range [0...{partitioner.partition_count}) "
            f"of topic {topic.name}."
        )

    # --- batches ------------------------------------------------------------------------------------------------------

    def _append(
        self,
        topic: _Topic,
        partition: int,
        columns: RecordColumns,
        rows: memoryview,
        first: int,
        last: int,
        now_ms: int,
    ) -> Iterator[Ready]:
        builder = topic.builders.get(partition)
        most = self._settings.max_request_size
        if builder is None:
            builder = topic.builders[partition] = BatchBuilder(min(self._settings.batch_size, most), most)
        while (first := builder.append(columns, rows, first, last, now_ms)) < last:
            if builder.too_large:
                raise UnwritableRow(
                    f"A record for topic {topic.name} is {builder.too_large} bytes when serialized, which is larger "
                    f"than {most}, the value of the option 'kafka.max.request.size'."
                )
            yield self._take(topic, partition, builder)

    def _take(self, topic: _Topic, partition: int, builder: BatchBuilder) -> Ready:
        batch = take_batch(builder, self._codec, self._settings.compression_level)
        return TopicPartition(topic.name, partition), batch

    def _limit_memory(self) -> Iterator[Ready]:
        """Yield the largest batches before memory runs out: they fill slowly if many partitions are written at once."""
        filling = [
            (builder.room, topic, partition, builder)
            for topic in self._topics.values()
            for partition, builder in topic.builders.items()
            if builder.count
        ]
        excess = sum(room for room, _, _, _ in filling) - self._settings.buffer_memory // 2
        if excess > 0:
            filling.sort(key=lambda each: each[0], reverse=True)
            for room, topic, partition, builder in filling:
                yield self._take(topic, partition, builder)
                excess -= room
                if excess <= 0:
                    return
