"""Reads a range of offsets in a task: fetched ahead, walked into columns, and handed on as Arrow's record batches.

Where records of the range are gone, spark/data_loss.py has the sentence, and the options say whether that stops the
query. If it does not, what is left of the range is read, as Spark's own source does it.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.fetching import Fetched, OffsetGone, TopicMadeAnew, fetch_ahead
from kaspar.records.column_reading import ColumnReader, Columns
from kaspar.spark import data_loss
from kaspar.spark.arrow_columns import ArrowColumns
from kaspar.spark.formats.decoding import decoded, raw_columns
from kaspar.spark.options import ReadOptions
from kaspar.spark.planning import OffsetRange

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from kaspar.client import Client

_NO_SUCH_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def read_range(offsets: OffsetRange, options: ReadOptions) -> "Iterator[RecordBatch]":
    """The rows of the range, with the columns that the options name, key and value decoded as they say."""
    wanted = raw_columns(options, options.columns)
    return decoded(_raw_batches(offsets, options, wanted), options, options.columns)


def _raw_batches(offsets: OffsetRange, options: ReadOptions, wanted: Sequence[str]) -> "Iterator[RecordBatch]":
    arrow = ArrowColumns(offsets.topic_partition, wanted)
    with options.connection.client() as client:
        for columns in _columns(client, offsets, options, wanted):
            yield arrow.record_batch(columns)


def _columns(client: "Client", offsets: OffsetRange, options: ReadOptions, wanted: Sequence[str]) -> Iterator[Columns]:
    start: int | None = offsets.start
    while start is not None:
        reader = ColumnReader(
            offsets.topic_partition,
            wanted,
            start,
            offsets.end,
            max_rows=min(options.max_batch_rows, max(offsets.end - start, 1)),
            max_bytes=options.max_batch_bytes,
        )
        loss: OffsetGone | TopicMadeAnew | Refused | None = None
        try:
            for fetched in _fetch(client, offsets, start, options):
                yield from reader.take(fetched.records, fetched.aborted)
        except (OffsetGone, TopicMadeAnew, Refused) as failure:
            loss = failure
        if (rest := reader.finish()) is not None:
            yield rest
        start = None if loss is None else _go_on_after(loss, client, offsets, options)


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


def _go_on_after(
    loss: OffsetGone | TopicMadeAnew | Refused, client: "Client", offsets: OffsetRange, options: ReadOptions
) -> int | None:
    """Where the range goes on, None if nothing of it is left. Raises DataLost if the query is to stop."""
    partition = offsets.topic_partition
    goes_on: int | None = None
    match loss:
        case OffsetGone() if loss.asked < loss.log_start:
            sentence = data_loss.removed(
                partition, loss.asked, data_loss.start_of_log(client, partition, loss.log_start)
            )
            goes_on = loss.log_start if loss.log_start < offsets.end else None
        case OffsetGone():
            sentence = data_loss.truncated(partition, loss.asked, loss.log_end)
        case TopicMadeAnew():
            sentence = data_loss.made_anew(offsets.topic, loss.expected, loss.found)
        case Refused() if loss.code in _NO_SUCH_TOPIC:
            sentence = data_loss.deleted([partition])
        case _:
            raise loss
    told = "goes on without them" if goes_on is None else f"goes on at offset {goes_on}"
    data_loss.report(sentence, fail_on_data_loss=options.fail_on_data_loss, goes_on=told)
    return goes_on
