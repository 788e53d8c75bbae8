"""Topics, their partitions and offsets, and broker ids."""

from collections.abc import Callable, Iterable

from starlette.requests import Request
from starlette.responses import Response

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.admin.cluster import describe_cluster
from kaspar.client.admin.configs import ConfigResource, ResourceType, describe_configs
from kaspar.client.admin.offsets import OffsetSpec, list_offsets
from kaspar.client.admin.session import Admin, accepted
from kaspar.client.admin.topics import PartitionDescription, TopicDescription, describe_topics, list_topics
from kaspar.rest.context import RestContext
from kaspar.rest.errors import PARTITION_NOT_FOUND, TOPIC_NOT_FOUND, RestError
from kaspar.rest.http import json_response
from kaspar.rest.v2 import bodies
from kaspar.rest.v2.content_types import response_type
from kaspar.rest.v2.paths import partition_of


class TopicEndpoints:
    def __init__(self, context: RestContext) -> None:
        self._context = context

    async def list_topics(self, request: Request) -> Response:
        return await self._ask(request, list_topics)

    async def get_topic(self, request: Request) -> Response:
        name = request.path_params["topic"]

        def ask(admin: Admin) -> bodies.Topic:
            described = _describe(admin, name)
            resource = ConfigResource(ResourceType.TOPIC, name)
            entries = accepted(describe_configs(admin, [resource])[resource])
            configs = {entry.name: entry.value for entry in entries.values()}
            return bodies.Topic(described.name, configs, _partitions(described.partitions))

        return await self._ask(request, ask)

    async def list_partitions(self, request: Request) -> Response:
        name = request.path_params["topic"]
        return await self._ask(request, lambda admin: _partitions(_describe(admin, name).partitions))

    async def get_partition(self, request: Request) -> Response:
        name, number = request.path_params["topic"], partition_of(request)
        return await self._ask(request, lambda admin: _partition(_one_partition(admin, name, number)))

    async def get_offsets(self, request: Request) -> Response:
        name, number = request.path_params["topic"], partition_of(request)

        def ask(admin: Admin) -> bodies.FirstAndNext:
            _one_partition(admin, name, number)
            where = TopicPartition(name, number)
            first = accepted(list_offsets(admin, {where: OffsetSpec.EARLIEST})[where])
            last = accepted(list_offsets(admin, {where: OffsetSpec.LATEST})[where])
            return bodies.FirstAndNext(first.offset, last.offset)

        return await self._ask(request, ask)

    async def list_brokers(self, request: Request) -> Response:
        def ask(admin: Admin) -> bodies.Brokers:
            return bodies.Brokers([node.node_id for node in describe_cluster(admin).nodes])

        return await self._ask(request, ask)

    async def _ask(self, request: Request, function: Callable[[Admin], object]) -> Response:
        media_type = response_type(request.headers.get("accept"))
        found = await self._context.administration.call(self._context.identity(request), function)
        return json_response(found, media_type=media_type)


def _describe(admin: Admin, name: str) -> TopicDescription:
    described = describe_topics(admin, [name])[name]
    if isinstance(described, Refused) and described.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise RestError(TOPIC_NOT_FOUND)
    return accepted(described)


def _one_partition(admin: Admin, name: str, number: int) -> PartitionDescription:
    for partition in _describe(admin, name).partitions:
        if partition.partition == number:
            return partition
    raise RestError(PARTITION_NOT_FOUND)


def _partitions(partitions: Iterable[PartitionDescription]) -> list[bodies.TopicPartition]:
    return [_partition(each) for each in partitions]


def _partition(partition: PartitionDescription) -> bodies.TopicPartition:
    replicas = [
        bodies.Replica(broker, leader=broker == partition.leader, in_sync=broker in partition.isr)
        for broker in partition.replicas
    ]
    return bodies.TopicPartition(partition.partition, partition.leader, replicas)
