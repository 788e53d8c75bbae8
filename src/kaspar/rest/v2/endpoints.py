"""The endpoints of version 2: a declaration gives the route and the part of the OpenAPI description."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from kaspar.rest.context import RestContext
from kaspar.rest.v2 import bodies
from kaspar.rest.v2.consumers import ConsumerEndpoints
from kaspar.rest.v2.produce import ProduceEndpoint
from kaspar.rest.v2.records import RecordsEndpoint
from kaspar.rest.v2.topics import TopicEndpoints
from kaspar.web.openapi import Operation, Parameter, ParameterKind, ResponseSpec

_INSTANCE: Final = "/consumers/{group}/instances/{instance}"
_ERRORS: Final = {
    "400": ResponseSpec("400: the body is malformed. 40002: the broker rejected the request.", bodies.Error),
    "401": ResponseSpec("40101: the broker rejected the credentials.", bodies.Error),
    "403": ResponseSpec("40301: the broker does not allow it.", bodies.Error),
    "404": ResponseSpec("40401, 40402, 40403: there is no such topic, partition or consumer instance.", bodies.Error),
    "422": ResponseSpec(
        "422, 40001, 42201 to 42207: the request is well-formed but cannot be processed.", bodies.Error
    ),
    "429": ResponseSpec("42901: too many requests or consumer instances.", bodies.Error),
    "5XX": ResponseSpec("50002: the broker failed. 50003: it may succeed later.", bodies.Error),
}
_CONFLICT: Final = {"409": ResponseSpec("40902, 40903: the instance exists, or is in another state.", bodies.Error)}
_UNDECODABLE: Final = {
    "406": ResponseSpec("40601: the format differs from that of the instance.", bodies.Error),
    "408": ResponseSpec("40801: a record cannot be decoded.", bodies.Error),
}

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class Handlers:
    def __init__(self, context: RestContext) -> None:
        self.topics = TopicEndpoints(context)
        self.produce = ProduceEndpoint(context)
        self.consumers = ConsumerEndpoints(context)
        self.records = RecordsEndpoint(context)


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    handler: Callable[[Handlers], Handler]
    summary: str
    response: Any = None
    """The type of the JSON; None for an empty response."""
    body: Any = None
    parameters: tuple[Parameter, ...] = ()
    more_errors: dict[str, ResponseSpec] | None = None

    @property
    def operation(self) -> Operation:
        status = "204" if self.response is None else "200"
        responses = {status: ResponseSpec(self.summary, self.response), **_ERRORS, **(self.more_errors or {})}
        tag = self.path.split("/")[1] or "topics"
        numbers = frozenset({"partition"})
        return Operation(self.method, self.path, self.summary, tag, responses, self.parameters, numbers, self.body)


ENDPOINTS: Final = (
    Endpoint("GET", "/topics", lambda on: on.topics.list_topics, "The names of all topics", list[str]),
    Endpoint("GET", "/topics/{topic}", lambda on: on.topics.get_topic, "A topic with its settings", bodies.Topic),
    Endpoint(
        "POST",
        "/topics/{topic}",
        lambda on: on.produce,
        "Writes records to a topic",
        bodies.ProduceResponse,
        bodies.RawProduce,
        more_errors={"408": ResponseSpec("40801: the registry cannot be used.", bodies.Error)},
    ),
    Endpoint(
        "GET",
        "/topics/{topic}/partitions",
        lambda on: on.topics.list_partitions,
        "The partitions of a topic",
        list[bodies.TopicPartition],
    ),
    Endpoint(
        "GET",
        "/topics/{topic}/partitions/{partition}",
        lambda on: on.topics.get_partition,
        "A partition",
        bodies.TopicPartition,
    ),
    Endpoint(
        "POST",
        "/topics/{topic}/partitions/{partition}",
        lambda on: on.produce,
        "Writes records to a partition",
        bodies.ProduceResponse,
        bodies.RawProduce,
        more_errors={"408": ResponseSpec("40801: the registry cannot be used.", bodies.Error)},
    ),
    Endpoint(
        "GET",
        "/topics/{topic}/partitions/{partition}/offsets",
        lambda on: on.topics.get_offsets,
        "The first and the next offset of a partition",
        bodies.FirstAndNext,
    ),
    Endpoint("GET", "/brokers", lambda on: on.topics.list_brokers, "The ids of the brokers", bodies.Brokers),
    Endpoint(
        "POST",
        "/consumers/{group}",
        lambda on: on.consumers.create,
        "Creates a consumer instance in a group",
        bodies.InstanceCreated,
        bodies.CreateInstance,
        more_errors=_CONFLICT,
    ),
    Endpoint("DELETE", _INSTANCE, lambda on: on.consumers.delete, "Deletes a consumer instance"),
    Endpoint(
        "POST",
        f"{_INSTANCE}/subscription",
        lambda on: on.consumers.subscribe,
        "Subscribes to topics, or to those that match a pattern",
        body=bodies.Subscription,
        more_errors=_CONFLICT,
    ),
    Endpoint(
        "GET",
        f"{_INSTANCE}/subscription",
        lambda on: on.consumers.get_subscription,
        "The topics that an instance is subscribed to",
        bodies.Subscribed,
    ),
    Endpoint("DELETE", f"{_INSTANCE}/subscription", lambda on: on.consumers.unsubscribe, "Unsubscribes"),
    Endpoint(
        "POST",
        f"{_INSTANCE}/assignments",
        lambda on: on.consumers.assign,
        "Assigns partitions without a group",
        body=bodies.Partitions,
        more_errors=_CONFLICT,
    ),
    Endpoint(
        "GET",
        f"{_INSTANCE}/assignments",
        lambda on: on.consumers.get_assignment,
        "The partitions that an instance has",
        bodies.Partitions,
    ),
    Endpoint(
        "POST",
        f"{_INSTANCE}/positions",
        lambda on: on.consumers.seek,
        "Seeks to offsets",
        body=bodies.Offsets,
        more_errors=_CONFLICT,
    ),
    Endpoint(
        "POST",
        f"{_INSTANCE}/positions/beginning",
        lambda on: on.consumers.seek_to_beginning,
        "Seeks to the beginning of partitions",
        body=bodies.Partitions,
        more_errors=_CONFLICT,
    ),
    Endpoint(
        "POST",
        f"{_INSTANCE}/positions/end",
        lambda on: on.consumers.seek_to_end,
        "Seeks to the end of partitions",
        body=bodies.Partitions,
        more_errors=_CONFLICT,
    ),
    Endpoint(
        "POST",
        f"{_INSTANCE}/offsets",
        lambda on: on.consumers.commit,
        "Commits offsets: those in the body, or those of all returned records",
        list[bodies.OffsetOfPartition],
        bodies.Offsets,
        (Parameter("async", ParameterKind.FLAG, "Whether not to wait for the commit"),),
    ),
    Endpoint(
        "GET",
        f"{_INSTANCE}/offsets",
        lambda on: on.consumers.get_committed,
        "The committed offsets of the partitions in the body",
        bodies.Offsets,
        bodies.Partitions,
    ),
    Endpoint(
        "GET",
        f"{_INSTANCE}/records",
        lambda on: on.records,
        "Records, in the format of the instance",
        list[bodies.ConsumedRecord],
        parameters=(
            Parameter("timeout", ParameterKind.NUMBER, "The maximum duration of the request in milliseconds"),
            Parameter("max_bytes", ParameterKind.NUMBER, "The maximum number of bytes of keys and values"),
        ),
        more_errors=_CONFLICT | _UNDECODABLE,
    ),
)
