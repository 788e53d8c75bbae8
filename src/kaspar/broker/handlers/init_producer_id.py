"""InitProducerId: an id for an idempotent producer, never given out twice in the life of the cluster."""

from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_PRODUCER_ID
from kaspar.broker.handlers import RequestContext
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

NO_PRODUCER_EPOCH: Final = -1


async def handle(broker: "Broker", context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    try:
        _check(request)
        producer_id = await broker.producer_ids.next()
    except Refused as refusal:
        return InitProducerIdResponse(error_code=refusal.code, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _check(request: InitProducerIdRequest) -> None:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise Refused(ErrorCode.INVALID_REQUEST, "a producer names both its id and its epoch, or neither")
    if request.transactional_id == "":
        raise Refused(ErrorCode.INVALID_REQUEST, "a transactional id may be absent, but not empty")
    if request.transactional_id is not None:
        raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this broker does not coordinate transactions yet")
