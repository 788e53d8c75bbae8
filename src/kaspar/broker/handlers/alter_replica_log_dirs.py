"""AlterReplicaLogDirs: moves replicas of this broker between its log directories (KIP-113)."""

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import TopicPartition
from kaspar.broker.log_dir_moves import LogDirMoves
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


class AlterReplicaLogDirsHandler:
    def __init__(self, moves: LogDirMoves) -> None:
        self._moves = moves

    async def __call__(
        self, context: RequestContext, request: AlterReplicaLogDirsRequest
    ) -> AlterReplicaLogDirsResponse:
        """Move replicas. A partition that is named more than once is moved to the last of its directories."""
        targets = {
            TopicPartition(topic.name, index): directory.path
            for directory in request.dirs
            for topic in directory.topics
            for index in topic.partitions
        }
        results: dict[str, dict[int, ErrorCode]] = {}
        for partition, code in (await self._moves.alter(targets)).items():
            results.setdefault(partition.topic, {})[partition.partition] = code
        return AlterReplicaLogDirsResponse(
            results=tuple(
                AlterReplicaLogDirTopicResult(
                    topic_name=topic,
                    partitions=tuple(
                        AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                        for index, code in codes.items()
                    ),
                )
                for topic, codes in results.items()
            )
        )
