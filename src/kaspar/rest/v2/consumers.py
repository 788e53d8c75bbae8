"""Consumer instances: create one in a group, subscribe or assign, read from it, and delete it."""

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kaspar.base.ids import TopicPartition
from kaspar.rest.consuming.consumer import BufferedConsumer, Mode
from kaspar.rest.consuming.instance import ConsumerInstance
from kaspar.rest.consuming.options import instance_options
from kaspar.rest.consuming.patterns import TopicPattern
from kaspar.rest.context import RestContext
from kaspar.rest.errors import ILLEGAL_STATE, PARTITION_NOT_FOUND, UNPROCESSABLE, RestError
from kaspar.rest.http import decode_body, json_response, no_content
from kaspar.rest.v2 import bodies
from kaspar.rest.v2.content_types import check_body_type, response_type

_Body = TypeVar("_Body")


class ConsumerEndpoints:
    def __init__(self, context: RestContext) -> None:
        self._context = context

    async def create(self, request: Request) -> Response:
        media_type = response_type(request.headers.get("accept"))
        group = request.path_params["group"]
        body = await _body(request, bodies.CREATE_INSTANCE) or bodies.CreateInstance()
        options = instance_options(
            self._context.config.settings,
            group=group,
            embedded=body.format,
            auto_offset_reset=body.auto_offset_reset,
            auto_commit_enable=body.auto_commit_enable,
            fetch_min_bytes=_either(body.fetch_min_bytes, body.former_fetch_min_bytes),
            request_timeout_ms=_either(body.request_timeout_ms, body.former_request_timeout_ms),
        )
        name = body.id if body.id is not None else body.name
        instance = await self._context.consumers.create(self._context.identity(request), group, name, options)
        path = f"/consumers/{quote(group, safe='')}/instances/{quote(instance.name, safe='')}"
        created = bodies.InstanceCreated(instance.name, self._context.links.to(request, path))
        return json_response(created, media_type=media_type)

    async def delete(self, request: Request) -> Response:
        await self._context.consumers.delete(self._instance(request))
        return no_content()

    # --- Topics and partitions ----------------------------------------------------------------------------------------

    async def subscribe(self, request: Request) -> Response:
        instance = self._instance(request)
        body = await _required(request, bodies.SUBSCRIPTION)
        if body.topics is not None and body.topic_pattern is not None:
            raise RestError(ILLEGAL_STATE, "Subscription to topics, partitions and pattern are mutually exclusive")
        if body.topics is not None:
            topics = body.topics
            await instance.use(lambda consumer: consumer.subscribe(topics, Mode.TOPICS))
        elif body.topic_pattern is not None:
            await self._context.consumers.subscribe_to_pattern(instance, TopicPattern(body.topic_pattern))
        return no_content()

    async def unsubscribe(self, request: Request) -> Response:
        instance = self._instance(request)
        instance.pattern = None
        await instance.use(BufferedConsumer.unsubscribe)
        return no_content()

    async def get_subscription(self, request: Request) -> Response:
        return await self._answer(request, lambda consumer: bodies.Subscribed(consumer.subscription()))

    async def assign(self, request: Request) -> Response:
        instance = self._instance(request)
        partitions = _partitions(await _required(request, bodies.PARTITIONS))
        await instance.use(lambda consumer: consumer.assign(partitions))
        return no_content()

    async def get_assignment(self, request: Request) -> Response:
        def ask(consumer: BufferedConsumer) -> bodies.Partitions:
            return bodies.Partitions([bodies.Partition(each.topic, each.partition) for each in consumer.assignment()])

        return await self._answer(request, ask)

    # --- Offsets ------------------------------------------------------------------------------------------------------

    async def commit(self, request: Request) -> Response:
        """The body has the offsets of the last processed records; the committed offset is one higher."""
        media_type = response_type(request.headers.get("accept"))
        instance = self._instance(request)
        body = await _body(request, bodies.OFFSETS)
        wait = request.query_params.get("async", "false").lower() != "true"
        offsets = None
        if body is not None and body.offsets is not None:
            offsets = [
                (TopicPartition(each.topic, each.partition), each.offset + 1, each.metadata) for each in body.offsets
            ]
        await instance.use(lambda consumer: consumer.commit(offsets, wait=wait))
        return json_response([], media_type=media_type)

    async def get_committed(self, request: Request) -> Response:
        media_type = response_type(request.headers.get("accept"))
        instance = self._instance(request)
        body = await _body(request, bodies.PARTITIONS)
        if body is None:
            raise RestError(PARTITION_NOT_FOUND)
        partitions = _partitions(body)
        found = await instance.use(lambda consumer: consumer.committed(partitions))
        offsets = [
            bodies.OffsetOfPartition(where.topic, where.partition, offset, metadata)
            for where, offset, metadata in found
        ]
        return json_response(bodies.Offsets(offsets), media_type=media_type)

    async def seek(self, request: Request) -> Response:
        instance = self._instance(request)
        body = await _required(request, bodies.OFFSETS)
        if body.offsets is None:
            raise RestError(UNPROCESSABLE, "offsets must not be null")
        offsets = [(TopicPartition(each.topic, each.partition), each.offset) for each in body.offsets]
        await instance.use(lambda consumer: consumer.seek(offsets))
        return no_content()

    async def seek_to_beginning(self, request: Request) -> Response:
        instance = self._instance(request)
        partitions = _partitions(await _required(request, bodies.PARTITIONS))
        await instance.use(lambda consumer: consumer.seek_to_beginning(partitions))
        return no_content()

    async def seek_to_end(self, request: Request) -> Response:
        instance = self._instance(request)
        partitions = _partitions(await _required(request, bodies.PARTITIONS))
        await instance.use(lambda consumer: consumer.seek_to_end(partitions))
        return no_content()

    # --- Helpers ------------------------------------------------------------------------------------------------------

    def _instance(self, request: Request) -> ConsumerInstance:
        path = request.path_params
        return self._context.consumers.get(self._context.identity(request), path["group"], path["instance"])

    async def _answer(self, request: Request, ask: Callable[[BufferedConsumer], Any]) -> Response:
        media_type = response_type(request.headers.get("accept"))
        return json_response(await self._instance(request).use(ask), media_type=media_type)


async def _body(request: Request, decoder: "msgspec.json.Decoder[_Body]") -> _Body | None:
    """None if the body is empty."""
    body = await request.body()
    if not body:
        return None
    check_body_type(request.headers.get("content-type"))
    return decode_body(decoder, body)


async def _required(request: Request, decoder: "msgspec.json.Decoder[_Body]") -> _Body:
    body = await _body(request, decoder)
    if body is None:
        raise RestError(UNPROCESSABLE, "The request body must not be empty")
    return body


def _partitions(body: bodies.Partitions) -> list[TopicPartition]:
    if body.partitions is None:
        raise RestError(UNPROCESSABLE, "partitions must not be null")
    return [TopicPartition(each.topic, each.partition) for each in body.partitions]


def _either(value: int | None, former: int | None) -> int | None:
    return former if value is None else value
