"""What a guard is, and the kinds that many APIs share.

A guard is called in place of the handler of an API. It removes from a request what the client may not do, passes the
rest to the handler, and adds the errors to the response where Kafka has them. So handlers know nothing of permissions,
and cannot reveal what they never see.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, cast

from kaspar.acls.acl import CLUSTER_NAME, AclOperation, ResourceType
from kaspar.base.errors import ErrorCode
from kaspar.broker.authorization.access import Access, Caller
from kaspar.metadata.images import ImageSource
from kaspar.network.api import Handler, HandlerResult, PartlyEncoded, RequestContext, Response
from kaspar.protocol import codec
from kaspar.protocol.schema import Message

MESSAGES: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}

_CODES: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


@dataclass(frozen=True, slots=True)
class Need:
    """A permission that an API needs. `denied` is what the response has without it: an error code, or a sentence where
    there is no code. `of` limits it to some resources or requests.
    """

    operation: AclOperation
    resource_type: ResourceType
    denied: ErrorCode | str = ""
    of: str = ""

    @property
    def code(self) -> ErrorCode:
        return self.denied if isinstance(self.denied, ErrorCode) else _CODES[self.resource_type]

    def is_authorized(self, caller: Caller, name: str = CLUSTER_NAME, *, count: int = 1) -> bool:
        return caller.is_authorized(self.operation, self.resource_type, name, count=count)


def need(operation: AclOperation, resource_type: ResourceType, *, of: str = "") -> Need:
    """A permission without which the response has the error of its resource type."""
    return Need(operation, resource_type, _CODES[resource_type], of)


class Guard(Protocol):
    @property
    def needs(self) -> tuple[Need, ...]: ...

    def __call__(self, call: "Call", request: Any) -> HandlerResult: ...


@dataclass(frozen=True, slots=True)
class Call:
    """A request on its way to its handler."""

    caller: Caller
    context: RequestContext
    images: ImageSource
    handler: Handler

    def proceed(self, request: Message) -> HandlerResult:
        return self.handler(self.context, request)


def guarded(handler: Handler, guard: Guard, access: Access, images: ImageSource) -> Handler:
    def handle(context: RequestContext, request: Message) -> HandlerResult:
        return guard(Call(access.caller_of(context), context, images, handler), request)

    return handle


def then(result: HandlerResult, change: Callable[[Response], Response]) -> HandlerResult:
    """Apply `change` to the response: now if it is there, otherwise when it is."""
    if isinstance(result, Message | PartlyEncoded):
        return change(result)
    return _later(result, change)


async def _later(result: Awaitable[Response], change: Callable[[Response], Response]) -> Response:
    return change(await result)


def with_elements(
    response: Response,
    name: str,
    elements: Sequence[Message],
    version: int,
    *,
    first: bool,
    places: Sequence[int] = (),
) -> Response:
    """The response with more elements in one of its arrays: before or after the existing ones, or at given places."""
    if not isinstance(response, PartlyEncoded) or name not in response.encoded:
        message: Any = response.message if isinstance(response, PartlyEncoded) else response
        there = getattr(message, name) or ()
        message = replace(message, **{name: tuple(_joined(elements, there, first, places))})
        return response._replace(message=message) if isinstance(response, PartlyEncoded) else cast(Message, message)
    more = [codec.write(element, version) for element in elements]
    encoded = response.encoded[name]
    counts = Counter(response.error_counts)
    counts.update(getattr(element, "error_code", ErrorCode.NONE) for element in elements)
    return response._replace(
        encoded={**response.encoded, name: _joined(more, encoded, first, places)}, error_counts=counts
    )


def _joined(more: Sequence[Any], there: Sequence[Any], first: bool, places: Sequence[int]) -> list[Any]:
    if not places:
        return [*more, *there] if first else [*there, *more]
    joined = list(there)
    for place, element in zip(places, more, strict=True):
        joined.insert(place, element)
    return joined


@dataclass(frozen=True, slots=True)
class Whole:
    """A guard for a request that needs one permission, on the cluster or on the resource that it names."""

    need: Need
    refuse: Callable[[RequestContext, Any, ErrorCode], Message]
    name: Callable[[Any], str] = lambda request: CLUSTER_NAME

    @property
    def needs(self) -> tuple[Need, ...]:
        return (self.need,)

    def __call__(self, call: Call, request: Any) -> HandlerResult:
        if self.need.is_authorized(call.caller, self.name(request)):
            return call.proceed(request)
        return self.refuse(call.context, request, self.need.code)


@dataclass(frozen=True, slots=True)
class Each:
    """A guard for a request in which each element of an array needs the permission on the resource that it names. The
    elements without it are refused; the handler gets the others, if there are any.
    """

    need: Need
    array: str
    results: str
    name: Callable[[Any], str]
    refuse: Callable[[Any, ErrorCode], Message]
    respond: Callable[[tuple[Any, ...]], Message]
    refused_first: bool = False
    in_place: bool = False
    """Whether the results are in the order of the request, one for each element."""
    distinct: bool = False
    """Whether an element that is named twice has one result."""

    @property
    def needs(self) -> tuple[Need, ...]:
        return (self.need,)

    def __call__(self, call: Call, request: Any) -> HandlerResult:
        elements = getattr(request, self.array)
        if self.distinct:
            elements = tuple(dict.fromkeys(elements))
        denied = denied_names(call.caller, self.need, map(self.name, elements))
        if not denied:
            return call.proceed(request)
        refused = tuple(self.refuse(each, self.need.code) for each in elements if self.name(each) in denied)
        allowed = tuple(each for each in elements if self.name(each) not in denied)
        if not allowed:
            return self.respond(refused)
        version = call.context.version
        places = [number for number, each in enumerate(elements) if self.name(each) in denied] if self.in_place else ()
        return then(
            call.proceed(replace(request, **{self.array: allowed})),
            lambda response: with_elements(
                response, self.results, refused, version, first=self.refused_first, places=places
            ),
        )


def denied_names(caller: Caller, needed: Need, names: Any) -> frozenset[str]:
    """The names that the client lacks the permission for. Each is checked once, however often it occurs."""
    return frozenset(
        name for name, count in Counter(names).items() if not needed.is_authorized(caller, name, count=count)
    )


def only(
    response: Response, name: str, element_class: type[Message], keep: Callable[[Any], bool], version: int
) -> HandlerResult:
    """The response with only those elements of one of its arrays that the client may see."""
    if isinstance(response, PartlyEncoded) and name in response.encoded:
        return _only_encoded(response, name, element_class, keep, version)
    message: Any = response.message if isinstance(response, PartlyEncoded) else response
    message = replace(message, **{name: tuple(each for each in getattr(message, name) if keep(each))})
    return response._replace(message=message) if isinstance(response, PartlyEncoded) else cast(Message, message)


_AT_ONCE: Final = 200


async def _only_encoded(
    response: PartlyEncoded, name: str, element_class: type[Message], keep: Callable[[Any], bool], version: int
) -> PartlyEncoded:
    """Filter encoded elements. There may be thousands: other requests are handled in between."""
    kept: list[bytes] = []
    for number, data in enumerate(response.encoded[name]):
        if number % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
        element, _ = codec.read(element_class, version, data)
        if keep(element):
            kept.append(data)
    return response._replace(encoded={**response.encoded, name: kept})


async def only_later(
    result: Awaitable[Response],
    name: str,
    element_class: type[Message],
    keep: Callable[[Any], bool],
    version: int,
) -> Response:
    filtered = only(await result, name, element_class, keep, version)
    return filtered if isinstance(filtered, Message | PartlyEncoded) else await filtered


def filtered(
    result: HandlerResult, name: str, element_class: type[Message], keep: Callable[[Any], bool], version: int
) -> HandlerResult:
    if isinstance(result, Message | PartlyEncoded):
        return only(result, name, element_class, keep, version)
    return only_later(result, name, element_class, keep, version)
