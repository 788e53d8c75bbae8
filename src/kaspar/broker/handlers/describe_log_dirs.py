"""DescribeLogDirs: where the partitions are on disk, and how large they are."""

from collections import defaultdict

from kaspar.base.errors import ErrorCode
from kaspar.broker.partitions import Partitions
from kaspar.broker.services import Threads
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kaspar.replication.partition import Partition
from kaspar.storage import Log, LogManager


class DescribeLogDirsHandler:
    def __init__(self, partitions: Partitions, logs: LogManager, threads: Threads) -> None:
        self._partitions = partitions
        self._logs = logs
        self._threads = threads

    async def __call__(self, context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        wanted = (
            None
            if request.topics is None
            else {(topic.topic, index) for topic in request.topics for index in topic.partitions}
        )
        found: dict[str, dict[str, list[DescribeLogDirsPartition]]] = defaultdict(lambda: defaultdict(list))
        for partition in self._partitions:
            topic_partition = partition.topic_partition
            if not partition.offline and (wanted is None or topic_partition in wanted):
                found[partition.log.directory.path][topic_partition.topic].append(_describe(partition))
                future = self._logs.futures.get(topic_partition)
                if future is not None:
                    copy = _describe_future(partition, future)
                    found[future.directory.path][topic_partition.topic].append(copy)
        results = []
        for directory in self._logs.directories:
            unusable = DescribeLogDirsResult(
                error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=()
            )
            if directory.offline is not None:
                results.append(unusable)
                continue
            try:
                total_bytes, usable_bytes = await self._threads.run_blocking(self._logs.space, directory.path)
            except OSError:  # no failure of the directory yet: that is for its readers and writers to decide
                results.append(unusable)
                continue
            results.append(
                DescribeLogDirsResult(
                    log_dir=directory.path,
                    topics=tuple(
                        DescribeLogDirsTopic(name=topic, partitions=tuple(partitions))
                        for topic, partitions in found[directory.path].items()
                    ),
                    total_bytes=total_bytes,
                    usable_bytes=usable_bytes,
                )
            )
        return DescribeLogDirsResponse(results=tuple(results))


def _describe(partition: Partition) -> DescribeLogDirsPartition:
    lag = max(partition.high_watermark - partition.log.log_end_offset, 0)
    return DescribeLogDirsPartition(
        partition_index=partition.topic_partition.partition,
        partition_size=partition.log.size,
        offset_lag=lag,
        is_future_key=False,
    )


def _describe_future(partition: Partition, future: Log) -> DescribeLogDirsPartition:
    """The copy of a log that is being moved to another directory."""
    return DescribeLogDirsPartition(
        partition_index=partition.topic_partition.partition,
        partition_size=future.size,
        offset_lag=max(partition.log.log_end_offset - future.log_end_offset, 0),
        is_future_key=True,
    )
