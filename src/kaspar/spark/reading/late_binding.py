"""A batch reads the records that exist when it runs, not those that existed when it was planned.

Spark plans a read of a Python data source once, and keeps the plan with the DataFrame: every later action on it, or on
a view of it, runs the same tasks again. So if the options say earliest or latest, each task looks up its offsets again,
as the tasks of Spark's own source do. Partitions and topics created after planning are not read.
"""

from collections.abc import Sequence
from dataclasses import replace

from kaspar.base.errors import Refused
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kaspar.client.offsets import GONE, list_offsets
from kaspar.spark.reading.options import ReadOptions
from kaspar.spark.reading.planning import OffsetRange


def bound_now(ranges: Sequence[OffsetRange], options: ReadOptions) -> Sequence[OffsetRange]:
    """The same ranges with current offsets. Unchanged if a topic is gone: reading it reports that."""
    earliest = {each.topic_partition: EARLIEST_TIMESTAMP for each in ranges if each.from_earliest}
    latest = {each.topic_partition: LATEST_TIMESTAMP for each in ranges if each.to_latest}
    with options.connection.client() as client:
        try:
            first = list_offsets(client, earliest)
            last = list_offsets(client, latest, isolation_level=options.isolation_level)
        except Refused as refused:
            if refused.code not in GONE:
                raise
            return ranges
    return [
        replace(
            each,
            start=max(each.start, first[each.topic_partition].offset) if each.from_earliest else each.start,
            end=max(each.end, last[each.topic_partition].offset) if each.to_latest else each.end,
        )
        for each in ranges
    ]
