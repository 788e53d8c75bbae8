"""The driver's requests to the cluster: which partitions exist, their first and last offsets, and their sizes.

There is one client, which is reopened when its connection breaks. If the cluster was never reached, it is given up
after a few attempts. If it has responded before, requests are retried for request.timeout.ms, since brokers restart.
"""

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from kaspar.base.error_codes import RETRIABLE
from kaspar.base.errors import ErrorCode, KasparError, MalformedBytes, Refused
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kaspar.client.offsets import GONE, by_leader, by_topic, list_offsets
from kaspar.protocol.isolation_level import READ_UNCOMMITTED
from kaspar.protocol.messages import describe_log_dirs
from kaspar.records.column_reading import ColumnReader, offset_behind
from kaspar.spark.offsets import EARLIEST, LATEST, PartitionOffsets
from kaspar.spark.reading.common_time import Stamp
from kaspar.spark.reading.options import InvalidOption, OffsetLimit, ReadOptions
from kaspar.spark.reading.planning import UNKNOWN_BYTES_PER_OFFSET
from kaspar.spark.reading.subscription import Assignment, UnknownTopics, assignment, topics_to_ask

if TYPE_CHECKING:
    from kaspar.client import Client

log = get_log(__name__)

SIZES_AGE_S = 30.0
_NO_END = (1 << 63) - 1
_ONE_BATCH = 1  # bytes: brokers return a whole batch anyway (KIP-74)

_Result = TypeVar("_Result")


class ClusterUnreachable(KasparError):
    pass


class OffsetReader:
    def __init__(
        self,
        options: ReadOptions,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.options = options
        self._now = now
        self._sleep = sleep
        self._client: Client | None = None
        self._was_reached = False
        self._assignment: Assignment | None = None
        self._assignment_at = 0.0
        self._bytes_per_offset: dict[TopicPartition, float] = {}
        self._bytes_per_offset_at = float("-inf")
        self._has_warned_of_sizes = False

    def retry_if_gone(self, look: Callable[[], _Result]) -> _Result:
        """Call `look`, and again with new metadata if one of its partitions does not exist any more, or not yet."""
        for _ in range(self.options.offset_attempts - 1):
            try:
                return look()
            except Refused as refused:
                if refused.code not in GONE:
                    raise
            self._assignment = None
            self._sleep(self.options.offset_retry_interval_ms / 1000)
        return look()

    # --- partitions and offsets ---------------------------------------------------------------------------------------

    def assignment(self, *, max_age_s: float) -> Assignment:
        """The subscribed partitions, by metadata of at most that age. Topics that do not exist are in `missing`."""
        if self._assignment is None or self._now() - self._assignment_at >= max_age_s:
            self._assignment = self.request(
                lambda client: assignment(
                    self.options.subscription, client.refresh_metadata(topics_to_ask(self.options.subscription))
                )
            )
            self._assignment_at = self._now()
        return self._assignment

    def complete_assignment(self) -> Assignment:
        """The subscribed partitions now. Raises UnknownTopics if a subscribed topic does not exist.

        A missing partition of `assign` is skipped with a warning; Spark's own source skips it silently.
        """
        for attempts_left in reversed(range(self.options.offset_attempts)):
            found = self.assignment(max_age_s=0.0)
            if not found.missing:
                if found.absent:
                    log.warning(f"Option 'assign' names {', '.join(map(str, found.absent))}, which does not exist yet.")
                return found
            if attempts_left:  # a new topic may not be known to every broker yet
                self._sleep(self.options.offset_retry_interval_ms / 1000)
        raise UnknownTopics(found.missing, self.options.connection.bootstrap_servers)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of each partition for a reader: its high watermark, or last stable offset with read_committed."""
        return self._listed(dict.fromkeys(partitions, LATEST_TIMESTAMP))

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The high watermarks, whatever the isolation level."""
        return self._listed(dict.fromkeys(partitions, LATEST_TIMESTAMP), isolation_level=READ_UNCOMMITTED)

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._listed(dict.fromkeys(partitions, EARLIEST_TIMESTAMP))

    def offsets_at(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """The first offset with this timestamp or a later one; -1 if there is none."""
        return self._listed(dict.fromkeys(partitions, timestamp))

    def stamps(self, where: TopicPartition, offset: int) -> list[Stamp]:
        """The records from this offset on of the first batch that has any; none at the end of the log."""
        while records := self.request(functools.partial(_fetched, where=where, offset=offset)):
            if found := _stamps(where, records, offset):
                return found
            behind = offset_behind(records)
            if behind is None or behind <= offset:
                break
            offset = behind  # the offset after a transaction marker, or after what compaction has left of a batch
        return []

    def _listed(
        self, timestamps: Mapping[TopicPartition, int], *, isolation_level: int | None = None
    ) -> dict[TopicPartition, int]:
        if not timestamps:
            return {}
        level = self.options.isolation_level if isolation_level is None else isolation_level
        listed = self.request(lambda client: list_offsets(client, timestamps, isolation_level=level))
        return {where: each.offset for where, each in listed.items()}

    def resolved(
        self, limit: OffsetLimit, partitions: frozenset[TopicPartition], *, side: str
    ) -> dict[TopicPartition, int]:
        """Real offsets of all these partitions for the options of the `starting` or `ending` side."""
        wanted = self._wanted(limit, partitions, side=side)
        special = {where: offset for where, offset in wanted.items() if offset in (EARLIEST, LATEST)}
        # Spark's special offsets -1 and -2 are the special timestamps of ListOffsets.
        return wanted | self._listed(special)

    def _wanted(
        self, limit: OffsetLimit, partitions: frozenset[TopicPartition], *, side: str
    ) -> dict[TopicPartition, int]:
        if limit.everywhere is not None:
            return dict.fromkeys(partitions, limit.everywhere)
        if limit.offsets is not None:
            whole = {where: limit.topics[where.topic] for where in partitions if where.topic in limit.topics}
            offsets = {**whole, **limit.offsets}
            _refuse_others(f"{side}Offsets", offsets, partitions, limit.topics)
            return offsets
        if limit.timestamps is not None:
            _refuse_others(f"{side}OffsetsByTimestamp", limit.timestamps, partitions)
            timestamps = dict(limit.timestamps)
        else:
            assert limit.timestamp is not None
            timestamps = dict.fromkeys(partitions, limit.timestamp)
        offsets = self._listed(timestamps)
        for where, offset in offsets.items():
            if offset >= 0:
                continue
            if side == "starting" and not self.options.latest_if_no_timestamp_matches:
                raise InvalidOption(
                    f"No record of {where} has timestamp {timestamps[where]} or a later one; set the option "
                    "'startingOffsetsByTimestampStrategy' to 'latest' to start at the end of such partitions."
                )
            offsets[where] = LATEST
        return offsets

    # --- sizes --------------------------------------------------------------------------------------------------------

    def bytes_per_offset(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, float]:
        """The average bytes on disk per offset of each partition; partitions of unknown size are left out."""
        if not partitions <= self._bytes_per_offset.keys() or self._now() - self._bytes_per_offset_at > SIZES_AGE_S:
            wanted = partitions if self._assignment is None else partitions | self._assignment.partitions
            try:
                sizes = self.request(lambda client: _sizes(client, wanted))
                first, last = self.earliest(sizes), self.latest(sizes)
            except KasparError:
                sizes = {}  # not authorized, or deleted: an estimate is good enough for planning
            if not sizes:
                self._warn_about_unknown_sizes()
            known = {where: size / max(last[where] - first[where], 1) for where, size in sizes.items()}
            self._bytes_per_offset = dict.fromkeys(wanted, 0.0) | known
            self._bytes_per_offset_at = self._now()
        return {where: size for where, size in self._bytes_per_offset.items() if size > 0 and where in partitions}

    def _warn_about_unknown_sizes(self) -> None:
        if self.options.max_bytes_per_trigger is not None and not self._has_warned_of_sizes:
            self._has_warned_of_sizes = True
            log.warning(
                "The sizes of partitions are unknown (DescribeLogDirs requires Describe on the cluster): "
                f"'maxBytesPerTrigger' assumes {UNKNOWN_BYTES_PER_OFFSET:.0f} bytes per record."
            )

    # --- requests -----------------------------------------------------------------------------------------------------

    def request(self, ask: Callable[["Client"], _Result]) -> _Result:
        """Call `ask`, with retries. Raises Refused if an error persists, ClusterUnreachable if there is no response."""
        started = self._now()
        attempts = 0
        while True:
            attempts += 1
            try:
                if self._client is None:
                    self._client = self.options.connection.client()
                result = ask(self._client)
            except OSError as error:
                self.close()
                failure: Exception = ClusterUnreachable(
                    f"No broker responds at {self.options.connection.bootstrap_servers} "
                    f"(kafka.bootstrap.servers; {attempts} attempts within {self._now() - started:.0f} s): {error}."
                )
            except MalformedBytes as error:
                self.close()
                raise ClusterUnreachable(
                    f"The server at {self.options.connection.bootstrap_servers} (kafka.bootstrap.servers) does not "
                    f"speak the Kafka protocol, or requires TLS: {error}."
                ) from error
            except Refused as refused:
                if refused.code not in RETRIABLE - GONE:
                    raise
                failure = refused
            else:
                self._was_reached = True
                return result
            if self._was_reached:
                is_last = self._now() - started > self.options.connection.request_timeout_ms / 1000
            else:
                is_last = attempts >= self.options.offset_attempts
            if is_last:
                raise failure
            self._sleep(self.options.offset_retry_interval_ms / 1000)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def _fetched(client: "Client", where: TopicPartition, offset: int) -> memoryview:
    return memoryview(client.fetch(*where, offset, max_bytes=_ONE_BATCH, max_wait_ms=0).records or b"")


def _stamps(where: TopicPartition, records: memoryview, offset: int) -> list[Stamp]:
    reader = ColumnReader(where, ("offset", "timestamp"), offset, _NO_END)
    filled = [*reader.take(records), reader.finish()]
    return [
        Stamp(each, microseconds // 1000)
        for columns in filled
        if columns is not None
        for each, microseconds in zip(columns.offset.cast("q"), columns.timestamp.cast("q"), strict=True)
    ]


def _refuse_others(
    option: str, given: PartitionOffsets, partitions: frozenset[TopicPartition], topics: Iterable[str] = ()
) -> None:
    """Raises InvalidOption unless all read partitions and no others are named, as in Spark's own source. `topics` were
    named as a whole."""
    left_out = sorted(map(str, partitions - given.keys()))
    unknown = sorted(map(str, given.keys() - partitions))
    unknown += sorted({*topics} - {where.topic for where in partitions})
    problems = []
    if left_out:
        problems.append(f"it omits {', '.join(left_out)}")
    if unknown:
        problems.append(f"{', '.join(unknown)} is not read by the query")
    if not problems:
        return
    raise InvalidOption(
        f"Option '{option}' must name every partition that is read (-1 for latest, -2 for earliest): "
        f"{'; '.join(problems)}."
    )


def _sizes(client: "Client", partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
    """The bytes of each partition's log at its leader."""
    sizes: dict[TopicPartition, int] = {}
    for leader, led in by_leader(client, dict.fromkeys(partitions, 0)).items():
        request = describe_log_dirs.DescribeLogDirsRequest(
            topics=tuple(
                describe_log_dirs.DescribableLogDirTopic(topic=topic, partitions=tuple(numbers))
                for topic, numbers in by_topic(led).items()
            )
        )
        response = client.request_broker(leader, request, describe_log_dirs.DescribeLogDirsResponse)
        for directory in response.results:
            for topic in directory.topics if directory.error_code == ErrorCode.NONE else ():
                for partition in topic.partitions:
                    where = TopicPartition(topic.name, partition.partition_index)
                    if where in led and not partition.is_future_key:
                        sizes[where] = partition.partition_size
    return sizes
