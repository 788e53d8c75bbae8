"""FindCoordinator: which broker coordinates a group or a transactional id: the leader of its partition.

The first one who asks has the internal topic made, and is answered when it is there: Kafka makes its clients ask again.
"""

import re
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from kaspar.broker.coordination.runtime import AnyRuntime
    from kaspar.broker.server import Broker

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
FIRST_VERSION_WITH_SEVERAL_KEYS: Final = 4
FIRST_VERSION_WITH_SHARE_GROUPS: Final = 6
SHARE_KEY: Final = re.compile(r".+:[A-Za-z0-9_-]{22}:[0-9]+", re.DOTALL)
NO_MESSAGE: Final = "NONE"  # what Kafka says where nothing is wrong


def handle(broker: "Broker", context: RequestContext, request: FindCoordinatorRequest) -> Answer:
    several = context.version >= FIRST_VERSION_WITH_SEVERAL_KEYS
    keys = request.coordinator_keys if several else (request.key,)
    try:
        if request.key_type == SHARE and context.version >= FIRST_VERSION_WITH_SHARE_GROUPS:
            return _response(context, tuple(_no_share_coordinator(key) for key in keys))
        runtime = _runtime(broker, request.key_type)
    except Refused as refusal:
        return _response(context, tuple(_refused(key, refusal) for key in keys))
    if runtime.topic.name in broker.image.topics:
        return _response(context, tuple(_found(broker, context, runtime, key) for key in keys))
    return _find_when_made(broker, context, runtime, keys)


async def _find_when_made(
    broker: "Broker", context: RequestContext, runtime: "AnyRuntime", keys: tuple[str, ...]
) -> FindCoordinatorResponse:
    try:
        await runtime.ensure_topic()
    except Refused as refusal:
        return _response(context, tuple(_refused(key, refusal) for key in keys))
    return _response(context, tuple(_found(broker, context, runtime, key) for key in keys))


def _runtime(broker: "Broker", key_type: int) -> "AnyRuntime":
    if key_type == GROUP:
        return broker.groups.runtime
    if key_type == TRANSACTION:
        return broker.transactions.runtime
    raise Refused(ErrorCode.INVALID_REQUEST, f"{key_type} is no kind of coordinator")


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
