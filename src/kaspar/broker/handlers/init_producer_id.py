"""InitProducerId: an id for an idempotent producer, never given out twice in the life of the cluster."""

from typing import TYPE_CHECKING

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import RequestContext
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


async def handle(broker: "Broker", context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    try:
        _check(request)
        producer_id = await broker.producer_ids.next()
    except Refused as refusal:
        return InitProducerIdResponse(error_code=refusal.code, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _check(request: InitProducerIdRequest) -> None:
    if request.transactional_id == "":
        raise Refused(ErrorCode.INVALID_REQUEST, "a transactional id may be absent, but not empty")
    if request.transactional_id is not None:
        raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this broker does not coordinate transactions yet")
