"""Describes the log directories of brokers, and moves replicas between directories of a broker (KIP-113)."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.session import Admin, refusal, refuse
from kaspar.client.offsets import by_topic
from kaspar.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kaspar.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


class Replica(NamedTuple):
    """A partition's replica on a broker. Sorted by broker first, as in Kafka's tools."""

    broker_id: int
    partition: TopicPartition

    def __str__(self) -> str:
        return f"{self.partition}-{self.broker_id}"


@dataclass(frozen=True, slots=True)
class LogDir:
    path: str
    error: Refused | None
    """KAFKA_STORAGE_ERROR if the directory is offline."""
    replicas: Mapping[TopicPartition, DescribeLogDirsPartition]
    future_replicas: Mapping[TopicPartition, DescribeLogDirsPartition]
    """Replicas that are being moved here from another directory."""
    total_bytes: int
    usable_bytes: int


class ReplicaLogDirs(NamedTuple):
    """The directory of a replica, and the directory to which it is being moved."""

    current: str | None = None
    future: str | None = None


def describe_log_dirs(
    admin: Admin, broker_id: int, partitions: Collection[TopicPartition] | None = None
) -> list[LogDir]:
    """The log directories of a broker, with these partitions or with all (None)."""
    topics = None
    if partitions is not None:
        topics = tuple(
            DescribableLogDirTopic(topic=topic, partitions=tuple(numbers))
            for topic, numbers in by_topic(partitions).items()
        )
    response = admin.ask_broker(
        "describeLogDirs", broker_id, DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse
    )
    refuse(response.error_code)
    return [_log_dir(result) for result in response.results]


def _log_dir(result: DescribeLogDirsResult) -> LogDir:
    replicas: dict[bool, dict[TopicPartition, DescribeLogDirsPartition]] = {False: {}, True: {}}
    for topic in result.topics:
        for each in topic.partitions:
            replicas[each.is_future_key][TopicPartition(topic.name, each.partition_index)] = each
    return LogDir(
        result.log_dir,
        refusal(result.error_code),
        replicas[False],
        replicas[True],
        result.total_bytes,
        result.usable_bytes,
    )


def describe_replica_log_dirs(admin: Admin, replicas: Collection[Replica]) -> dict[Replica, ReplicaLogDirs]:
    """The directories of each replica. Both are None for a replica that its broker does not have."""
    of_broker: dict[int, list[TopicPartition]] = defaultdict(list)
    for replica in replicas:
        of_broker[replica.broker_id].append(replica.partition)
    found = {}
    for broker_id, partitions in of_broker.items():
        usable = [each for each in describe_log_dirs(admin, broker_id, partitions) if each.error is None]
        for partition in partitions:
            found[Replica(broker_id, partition)] = ReplicaLogDirs(
                next((each.path for each in usable if partition in each.replicas), None),
                next((each.path for each in usable if partition in each.future_replicas), None),
            )
    return found


def alter_replica_log_dirs(admin: Admin, targets: Mapping[Replica, str]) -> dict[Replica, ErrorCode]:
    """Move replicas to these directories of their brokers. A replica that does not exist yet will be created there.
    Returns the error code of each: REPLICA_NOT_AVAILABLE for a replica that does not exist yet."""
    of_broker: dict[int, dict[str, list[TopicPartition]]] = defaultdict(lambda: defaultdict(list))
    for replica, path in targets.items():
        of_broker[replica.broker_id][path].append(replica.partition)
    codes = {}
    for broker_id, paths in of_broker.items():
        request = AlterReplicaLogDirsRequest(
            dirs=tuple(
                AlterReplicaLogDir(
                    path=path,
                    topics=tuple(
                        AlterReplicaLogDirTopic(name=topic, partitions=tuple(numbers))
                        for topic, numbers in by_topic(partitions).items()
                    ),
                )
                for path, partitions in paths.items()
            )
        )
        response = admin.ask_broker("alterReplicaLogDirs", broker_id, request, AlterReplicaLogDirsResponse)
        for topic in response.results:
            for each in topic.partitions:
                where = TopicPartition(topic.topic_name, each.partition_index)
                codes[Replica(broker_id, where)] = ErrorCode(each.error_code)
    return codes
