"""FindCoordinator: which broker coordinates a group or a transactional id: the leader of its partition.

The first one who asks has the internal topic made, and is answered when it is there: Kafka makes its clients ask again.
"""

import re
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from kaspar.broker.coordination.groups import Groups
    from kaspar.broker.coordination.runtime import AnyRuntime
    from kaspar.broker.coordination.transactions import Transactions
    from kaspar.broker.server import Broker

FIRST_VERSION_WITH_SEVERAL_KEYS: Final = 4
FIRST_VERSION_WITH_SHARE_GROUPS: Final = 6
SHARE_KEY: Final = re.compile(r".+:[A-Za-z0-9_-]{22}:[0-9]+", re.DOTALL)
NO_MESSAGE: Final = "NONE"  # what Kafka says where nothing is wrong


class CoordinatorType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


def handle(broker: "Broker", context: RequestContext, request: FindCoordinatorRequest) -> Answer:
    several = context.version >= FIRST_VERSION_WITH_SEVERAL_KEYS
    keys = request.coordinator_keys if several else (request.key,)
    coordinators = broker.coordinators
    match request.key_type:
        case CoordinatorType.GROUP:
            return _find(broker, context, keys, coordinators.made_groups, coordinators.load_groups)
        case CoordinatorType.TRANSACTION:
            return _find(broker, context, keys, coordinators.made_transactions, coordinators.load_transactions)
        case CoordinatorType.SHARE if context.version >= FIRST_VERSION_WITH_SHARE_GROUPS:
            return _response(context, tuple(_no_share_coordinator(key) for key in keys))
    refusal = Refused(ErrorCode.INVALID_REQUEST, f"{request.key_type} is no kind of coordinator")
    return _response(context, tuple(_refused(key, refusal) for key in keys))


def _find(
    broker: "Broker",
    context: RequestContext,
    keys: tuple[str, ...],
    coordinator: "Groups | Transactions | None",
    load: "Callable[[], Awaitable[Groups | Transactions]]",
) -> Answer:
    if coordinator is not None and coordinator.runtime.topic.name in broker.image.topics:
        return _response(context, tuple(_found(broker, context, coordinator.runtime, key) for key in keys))
    return _find_when_made(broker, context, keys, load)


async def _find_when_made(
    broker: "Broker",
    context: RequestContext,
    keys: tuple[str, ...],
    load: "Callable[[], Awaitable[Groups | Transactions]]",
) -> FindCoordinatorResponse:
    runtime: AnyRuntime = (await load()).runtime
    try:
        await runtime.ensure_topic()
    except Refused as refusal:
        return _response(context, tuple(_refused(key, refusal) for key in keys))
    return _response(context, tuple(_found(broker, context, runtime, key) for key in keys))


def _no_share_coordinator(key: str) -> Coordinator:
    """As Kafka answers when the topic of share groups is not there. Their keys are group, topic id and partition."""
    if not SHARE_KEY.fullmatch(key):
        return _refused(key, Refused(ErrorCode.INVALID_REQUEST, "the key is no group id, topic id and partition"))
    return _refused(key, Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "share groups are not served yet"))


def _found(broker: "Broker", context: RequestContext, runtime: "AnyRuntime", key: str) -> Coordinator:
    image = broker.image
    topic = image.topics.get(runtime.topic.name)
    leader = image.reachable_leader(topic.partitions[runtime.partition_of(key)]) if topic is not None else -1
    for registered, endpoint in broker.endpoints_for(context.listener):
        if registered.broker_id == leader:
            return Coordinator(
                key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_message=NO_MESSAGE
            )
    return _refused(key, Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator's partition has no leader"))


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
