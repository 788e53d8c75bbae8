"""A batch reads what there is when it runs, not what there was when it was planned.

Spark plans a read of a Python data source once, and keeps the plan with the DataFrame: whatever is asked of that later,
or of a view of it, runs the same tasks again. So a task looks anew where its partitions begin and end, if the options
say earliest or latest of them, as the tasks of Spark's own source do. What a later plan alone could know are partitions
and topics that did not exist when it was made.
"""

from collections.abc import Sequence
from dataclasses import replace

from kaspar.base.errors import Refused
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kaspar.client.offsets import GONE, list_offsets
from kaspar.spark.options import ReadOptions
from kaspar.spark.planning import OffsetRange


def bound_now(ranges: Sequence[OffsetRange], options: ReadOptions) -> Sequence[OffsetRange]:
    """The same ranges, as their logs are now. They stay as they are if a topic is gone: reading it tells so."""
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
