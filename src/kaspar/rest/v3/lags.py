"""The lag of consumer groups: committed offsets, and the end offsets of their partitions.

The end offset is the last stable offset, so that a group with isolation level read_committed can reach it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kaspar.base.errors import Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import list_group_offsets
from kaspar.client.admin.groups import GroupMember
from kaspar.client.admin.offsets import OffsetSpec, list_offsets
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.offsets import READ_COMMITTED
from kaspar.rest.v3.endpoint import Call, Endpoint
from kaspar.rest.v3.errors import missing
from kaspar.rest.v3.groups import GROUP, TAG, describe_group
from kaspar.rest.v3.names import ResourceNames
from kaspar.rest.v3.resources import Relationship, Resource, ResourceList


class ConsumerLagData(Resource, kw_only=True):
    kind: str = "KafkaConsumerLag"
    cluster_id: str
    consumer_group_id: str
    topic_name: str
    partition_id: int
    current_offset: int
    log_end_offset: int
    lag: int
    consumer_id: str
    """Empty if the partition is not assigned to a member; so is `client_id`."""
    instance_id: str | None
    client_id: str


class ConsumerLagDataList(ResourceList, kw_only=True):
    kind: str = "KafkaConsumerLagList"
    data: list[ConsumerLagData]


class ConsumerGroupLagSummaryData(Resource, kw_only=True):
    kind: str = "KafkaConsumerGroupLagSummary"
    cluster_id: str
    consumer_group_id: str
    max_lag_consumer_id: str
    max_lag_instance_id: str | None
    max_lag_client_id: str
    max_lag_topic_name: str
    max_lag_partition_id: int
    max_lag: int
    total_lag: int
    max_lag_consumer: Relationship
    max_lag_partition: Relationship


@dataclass(frozen=True, slots=True)
class _Lag:
    where: TopicPartition
    current_offset: int
    log_end_offset: int
    member: GroupMember | None

    @property
    def lag(self) -> int:
        return self.log_end_offset - self.current_offset

    @property
    def consumer_id(self) -> str:
        return "" if self.member is None else self.member.member_id

    @property
    def client_id(self) -> str:
        return "" if self.member is None else self.member.client_id

    @property
    def instance_id(self) -> str | None:
        return None if self.member is None else self.member.group_instance_id


def _lags(admin: Admin, group_id: str) -> list[_Lag]:
    """The lags, sorted by partition. Raises Refused and RestError."""
    members = {where: each for each in describe_group(admin, group_id).members for where in each.assignment}
    committed = accepted(list_group_offsets(admin, [group_id])[group_id])
    if not committed:
        raise missing("Consumer group offsets could not be found.")
    wanted = dict.fromkeys(committed, OffsetSpec.LATEST)
    ends = list_offsets(admin, wanted, isolation_level=READ_COMMITTED)
    lags = []
    for where in sorted(committed):
        end = ends[where]
        if not isinstance(end, Refused):  # its topic was deleted, or it has no leader
            lags.append(_Lag(where, committed[where].offset, end.offset, members.get(where)))
    return lags


async def _list(call: Call) -> ConsumerLagDataList:
    names, group_id = call.names(), call.path["consumer_group_id"]

    def ask(admin: Admin) -> ConsumerLagDataList:
        data = [_data(names, group_id, each) for each in _lags(admin, group_id)]
        return ConsumerLagDataList(metadata=names.many("consumer-groups", group_id, "lags"), data=data)

    return await call.ask(ask)


async def _get(call: Call) -> ConsumerLagData:
    names, group_id = call.names(), call.path["consumer_group_id"]
    where = TopicPartition(call.topic, call.number("partition_id"))

    def ask(admin: Admin) -> ConsumerLagData:
        for each in _lags(admin, group_id):
            if each.where == where:
                return _data(names, group_id, each)
        raise missing()

    return await call.ask(ask)


def _data(names: ResourceNames, group_id: str, lag: _Lag) -> ConsumerLagData:
    topic, partition = lag.where
    path = ("consumer-groups", group_id, "lags", topic, "partitions", partition)
    return ConsumerLagData(
        metadata=names.one(*path, crn=(("consumer-group", group_id), ("lag", topic), ("partition", partition))),
        cluster_id=names.cluster_id,
        consumer_group_id=group_id,
        topic_name=topic,
        partition_id=partition,
        current_offset=lag.current_offset,
        log_end_offset=lag.log_end_offset,
        lag=lag.lag,
        consumer_id=lag.consumer_id,
        instance_id=lag.instance_id,
        client_id=lag.client_id,
    )


async def _summary(call: Call) -> ConsumerGroupLagSummaryData:
    names, group_id = call.names(), call.path["consumer_group_id"]
    return await call.ask(lambda admin: _summarize(names, group_id, _lags(admin, group_id)))


def _summarize(names: ResourceNames, group_id: str, lags: Iterable[_Lag]) -> ConsumerGroupLagSummaryData:
    lags = list(lags)
    if not lags:
        raise missing("Consumer group offsets could not be found.")
    largest = max(lags, key=lambda each: each.lag)
    topic, partition = largest.where
    return ConsumerGroupLagSummaryData(
        metadata=names.one(
            "consumer-groups",
            group_id,
            "lag-summary",
            crn=(("consumer-group", group_id), ("lag-summary", None)),
        ),
        cluster_id=names.cluster_id,
        consumer_group_id=group_id,
        max_lag_consumer_id=largest.consumer_id,
        max_lag_instance_id=largest.instance_id,
        max_lag_client_id=largest.client_id,
        max_lag_topic_name=topic,
        max_lag_partition_id=partition,
        max_lag=largest.lag,
        total_lag=sum(each.lag for each in lags),
        max_lag_consumer=names.related("consumer-groups", group_id, "consumers", largest.consumer_id),
        max_lag_partition=names.related("topics", topic, "partitions", partition),
    )


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        f"{GROUP}/lag-summary",
        _summary,
        "Get the largest and the total lag of a group",
        TAG,
        ConsumerGroupLagSummaryData,
    ),
    Endpoint("GET", f"{GROUP}/lags", _list, "List the lags of a group", TAG, ConsumerLagDataList),
    Endpoint(
        "GET",
        f"{GROUP}/lags/{{topic_name}}/partitions/{{partition_id}}",
        _get,
        "Get the lag of a group in a partition",
        TAG,
        ConsumerLagData,
    ),
)
