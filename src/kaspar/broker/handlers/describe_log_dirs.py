"""DescribeLogDirs: where the partitions are on disk, and how large they are."""

from collections import defaultdict
from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import RequestContext
from kaspar.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kaspar.replication.partition import Partition

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


async def handle(broker: "Broker", context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = (
        None
        if request.topics is None
        else {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    )
    found: dict[str, dict[str, list[Partition]]] = defaultdict(lambda: defaultdict(list))
    for partition in broker.partitions:
        if not partition.offline and (wanted is None or partition.topic_partition in wanted):
            found[partition.log.directory.path][partition.topic_partition.topic].append(partition)
    results = []
    for directory in broker.logs.directories:
        unusable = DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=())
        if directory.offline is not None:
            results.append(unusable)
            continue
        try:
            total_bytes, usable_bytes = await broker.run_blocking(broker.logs.space, directory.path)
        except OSError:  # no failure yet of what is stored there: who reads or writes it decides that
            results.append(unusable)
            continue
        results.append(
            DescribeLogDirsResult(
                log_dir=directory.path,
                topics=tuple(
                    DescribeLogDirsTopic(name=topic, partitions=tuple(_describe(partition) for partition in partitions))
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
