"""Reads a range of offsets in a task: fetches ahead, decodes records into columns, returns Arrow record batches.

If records of the range are gone (data_loss.py), the options say whether the query stops. If it does not, the rest of
the range is read, as in Spark's own source.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.fetching import Fetched, OffsetGone, TopicRecreated, fetch_ahead
from kaspar.records.column_reading import ColumnReader, Columns
from kaspar.spark.formats.decoding import decoded, raw_columns
from kaspar.spark.reading import data_loss
from kaspar.spark.reading.arrow_columns import ArrowColumns
from kaspar.spark.reading.options import HEADER_BYTES, KEY_PARTITION, ReadOptions
from kaspar.spark.reading.planning import OffsetRange

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from kaspar.client import Client

_READ_FROM = {HEADER_BYTES: "headers", KEY_PARTITION: "key"}
_NO_SUCH_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def read_range(offsets: OffsetRange, options: ReadOptions) -> "Iterator[RecordBatch]":
    """The rows of the range, with the columns, key format and value format that the options name."""
    wanted = raw_columns(options, options.columns)
    return decoded(_raw_batches(offsets, options, wanted), options, options.columns)


def _raw_batches(offsets: OffsetRange, options: ReadOptions, wanted: Sequence[str]) -> "Iterator[RecordBatch]":
    arrow = ArrowColumns(offsets.topic_partition, wanted, options.key_partitions)
    with options.connection.client() as client:
        for columns in _columns(client, offsets, options, wanted):
            yield arrow.record_batch(columns)


def _columns(client: "Client", offsets: OffsetRange, options: ReadOptions, wanted: Sequence[str]) -> Iterator[Columns]:
    start: int | None = offsets.start
    while start is not None:
        reader = ColumnReader(
            offsets.topic_partition,
            [_READ_FROM.get(column, column) for column in wanted],
            start,
            offsets.end,
            max_rows=min(options.max_batch_rows, max(offsets.end - start, 1)),
            max_bytes=options.max_batch_bytes,
        )
        loss: OffsetGone | TopicRecreated | Refused | None = None
        try:
            for fetched in _fetch(client, offsets, start, options):
                yield from reader.take(fetched.records, fetched.aborted)
        except (OffsetGone, TopicRecreated, Refused) as failure:
            loss = failure
        if (rest := reader.finish()) is not None:
            yield rest
        start = None if loss is None else _position_after(loss, client, offsets, options)


def _fetch(client: "Client", offsets: OffsetRange, start: int, options: ReadOptions) -> Iterator[Fetched]:
    return fetch_ahead(
        client,
        offsets.topic_partition,
        start,
        until=offsets.end,
        topic_id=offsets.topic_id,
        isolation_level=options.isolation_level,
        max_bytes=options.fetch_max_bytes,
        min_bytes=options.fetch_min_bytes,
        max_wait_ms=options.fetch_max_wait_ms,
        rack=options.rack,
    )


def _position_after(
    loss: OffsetGone | TopicRecreated | Refused, client: "Client", offsets: OffsetRange, options: ReadOptions
) -> int | None:
    """The offset at which the range continues; None if nothing is left. Raises DataLost if the query must stop."""
    partition = offsets.topic_partition
    position: int | None = None
    match loss:
        case OffsetGone() if loss.asked < loss.log_start:
            sentence = data_loss.removed(
                partition, loss.asked, data_loss.start_of_log(client, partition, loss.log_start)
            )
            position = loss.log_start if loss.log_start < offsets.end else None
        case OffsetGone():
            sentence = data_loss.truncated(partition, loss.asked, loss.log_end)
        case TopicRecreated():
            sentence = data_loss.recreated(offsets.topic, loss.expected, loss.found)
        case Refused() if loss.code in _NO_SUCH_TOPIC:
            sentence = data_loss.deleted([partition])
        case _:
            raise loss
    otherwise = "continues without them" if position is None else f"continues at offset {position}"
    data_loss.report(sentence, fail_on_data_loss=options.fail_on_data_loss, otherwise=otherwise)
    return position
