"""FindCoordinator: the broker that coordinates a group or a transactional id, which is the leader of its partition.

The first request creates the internal topic and waits until it exists; in Kafka clients have to retry.
"""

import re
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.coordination.coordinators import Coordinators
from kaspar.broker.coordination.lookup import CoordinatorLookup
from kaspar.metadata.images import ImageSource
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from kaspar.broker.coordination.groups import Groups
    from kaspar.broker.coordination.runtime import AnyRuntime
    from kaspar.broker.coordination.transactions import Transactions

FIRST_VERSION_WITH_SEVERAL_KEYS: Final = 4
FIRST_VERSION_WITH_SHARE_GROUPS: Final = 6
SHARE_KEY: Final = re.compile(r".+:[A-Za-z0-9_-]{22}:[0-9]+", re.DOTALL)
NO_MESSAGE: Final = "NONE"  # as in Kafka


class CoordinatorType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class FindCoordinatorHandler:
    def __init__(self, coordinators: Coordinators, images: ImageSource) -> None:
        self._coordinators = coordinators
        self._images = images
        self._lookup = CoordinatorLookup(images)

    def __call__(self, context: RequestContext, request: FindCoordinatorRequest) -> HandlerResult:
        several = context.version >= FIRST_VERSION_WITH_SEVERAL_KEYS
        keys = request.coordinator_keys if several else (request.key,)
        coordinators = self._coordinators
        match request.key_type:
            case CoordinatorType.GROUP:
                return self._find(context, keys, coordinators.made_groups, coordinators.load_groups)
            case CoordinatorType.TRANSACTION:
                return self._find(context, keys, coordinators.made_transactions, coordinators.load_transactions)
            case CoordinatorType.SHARE if context.version >= FIRST_VERSION_WITH_SHARE_GROUPS:
                return _response(context, tuple(_no_share_coordinator(key) for key in keys))
        refusal = Refused(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type {request.key_type}.")
        return _response(context, tuple(_refused(key, refusal) for key in keys))

    def _find(
        self,
        context: RequestContext,
        keys: tuple[str, ...],
        coordinator: "Groups | Transactions | None",
        load: "Callable[[], Awaitable[Groups | Transactions]]",
    ) -> HandlerResult:
        if coordinator is not None and coordinator.runtime.topic.name in self._images.current.topics:
            return _response(context, tuple(self._found(context, coordinator.runtime, key) for key in keys))
        return self._find_later(context, keys, load)

    async def _find_later(
        self,
        context: RequestContext,
        keys: tuple[str, ...],
        load: "Callable[[], Awaitable[Groups | Transactions]]",
    ) -> FindCoordinatorResponse:
        """Respond when the coordinator and its internal topic have been created."""
        runtime: AnyRuntime = (await load()).runtime
        try:
            await runtime.ensure_topic()
        except Refused as refusal:
            return _response(context, tuple(_refused(key, refusal) for key in keys))
        return _response(context, tuple(self._found(context, runtime, key) for key in keys))

    def _found(self, context: RequestContext, runtime: "AnyRuntime", key: str) -> Coordinator:
        leader = self._lookup.coordinator_of(runtime.topic.name, key)
        registration = self._images.current.brokers.get(leader)
        for endpoint in registration.endpoints if registration is not None else ():
            if endpoint.listener == context.listener:
                return Coordinator(
                    key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_message=NO_MESSAGE
                )
        return _refused(key, Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available."))


def _no_share_coordinator(key: str) -> Coordinator:
    """The errors of a Kafka cluster without the topic of share groups. A key is group, topic id and partition."""
    if not SHARE_KEY.fullmatch(key):
        refusal = Refused(ErrorCode.INVALID_REQUEST, "The key must be of the form groupId:topicId:partition.")
        return _refused(key, refusal)
    return _refused(key, Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Share groups are not supported."))


def _refused(key: str, refusal: Refused) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=refusal.code, error_message=refusal.message)


def _response(context: RequestContext, found: tuple[Coordinator, ...]) -> FindCoordinatorResponse:
    if context.version >= FIRST_VERSION_WITH_SEVERAL_KEYS:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )
