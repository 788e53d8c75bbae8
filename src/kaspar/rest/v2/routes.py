"""The paths of version 2."""

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kaspar.rest.context import RestContext
from kaspar.rest.http import Handler, json_response, with_errors
from kaspar.rest.v2.consumers import ConsumerEndpoints
from kaspar.rest.v2.content_types import error_type, response_type
from kaspar.rest.v2.produce import ProduceEndpoint
from kaspar.rest.v2.records import RecordsEndpoint
from kaspar.rest.v2.topics import TopicEndpoints

_INSTANCE = "/consumers/{group}/instances/{instance}"


def v2_routes(context: RestContext) -> list[Route]:
    return [
        Route(path, with_errors(handler, _error_type), methods=[method])
        for method, path, handler in _endpoints(context)
    ]


def _endpoints(context: RestContext) -> Iterator[tuple[str, str, Handler]]:
    topics, consumers = TopicEndpoints(context), ConsumerEndpoints(context)
    produce = ProduceEndpoint(context)
    yield "GET", "/", _root
    yield "GET", "/brokers", topics.list_brokers
    yield "GET", "/topics", topics.list_topics
    yield "GET", "/topics/{topic}", topics.get_topic
    yield "GET", "/topics/{topic}/partitions", topics.list_partitions
    yield "GET", "/topics/{topic}/partitions/{partition}", topics.get_partition
    yield "GET", "/topics/{topic}/partitions/{partition}/offsets", topics.get_offsets
    yield "POST", "/topics/{topic}", produce
    yield "POST", "/topics/{topic}/partitions/{partition}", produce
    yield "POST", "/consumers/{group}", consumers.create
    yield "DELETE", _INSTANCE, consumers.delete
    yield "POST", f"{_INSTANCE}/subscription", consumers.subscribe
    yield "GET", f"{_INSTANCE}/subscription", consumers.get_subscription
    yield "DELETE", f"{_INSTANCE}/subscription", consumers.unsubscribe
    yield "POST", f"{_INSTANCE}/assignments", consumers.assign
    yield "GET", f"{_INSTANCE}/assignments", consumers.get_assignment
    yield "POST", f"{_INSTANCE}/positions", consumers.seek
    yield "POST", f"{_INSTANCE}/positions/beginning", consumers.seek_to_beginning
    yield "POST", f"{_INSTANCE}/positions/end", consumers.seek_to_end
    yield "POST", f"{_INSTANCE}/offsets", consumers.commit
    yield "GET", f"{_INSTANCE}/offsets", consumers.get_committed
    yield "GET", f"{_INSTANCE}/records", RecordsEndpoint(context)


def _error_type(request: Request) -> str:
    return error_type(request.headers.get("accept"))


async def _root(request: Request) -> Response:
    return json_response({}, media_type=response_type(request.headers.get("accept")))
