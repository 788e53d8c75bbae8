"""FindCoordinator: no coordinator is available here yet, for groups, transactions or share groups.

It is served although nothing can be found, because clients read more into it: librdkafka sends lz4 only to a broker
that announces this API, and otherwise sends uncompressed without a word.
"""

from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode
from kaspar.broker.handlers import RequestContext
from kaspar.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
FIRST_VERSION_WITH_SEVERAL_KEYS: Final = 4
FIRST_VERSION_WITH_SHARE_GROUPS: Final = 6


def handle(broker: "Broker", context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    known = {GROUP, TRANSACTION} | ({SHARE} if context.version >= FIRST_VERSION_WITH_SHARE_GROUPS else set())
    if request.key_type in known:
        code, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available."
    else:
        code, message = ErrorCode.INVALID_REQUEST, f"{request.key_type} is no kind of coordinator"
    if context.version < FIRST_VERSION_WITH_SEVERAL_KEYS:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=tuple(
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
            for key in request.coordinator_keys
        )
    )
