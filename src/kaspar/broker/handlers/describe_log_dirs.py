"""DescribeLogDirs: where the partitions are on disk, and how large they are."""

import os
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
        if directory.offline is not None:
            results.append(
                DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=())
            )
            continue
        space = await broker.run_blocking(os.statvfs, directory.path)
        results.append(
            DescribeLogDirsResult(
                log_dir=directory.path,
                topics=tuple(
                    DescribeLogDirsTopic(name=topic, partitions=tuple(_describe(partition) for partition in partitions))
                    for topic, partitions in found[directory.path].items()
                ),
                total_bytes=space.f_blocks * space.f_frsize,
                usable_bytes=space.f_bavail * space.f_frsize,
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
