"""InitProducerId: an id and epoch to produce with.

Without a transactional id: an id never given out before in the life of the cluster. With one: its coordinator decides.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_PRODUCER_ID
from kaspar.broker.handlers import Answer, RequestContext
from kaspar.coordination import Decision, Now, Ticket
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.schema import Message

if TYPE_CHECKING:
    from kaspar.broker.server import Broker
    from kaspar.transactions.shard import TransactionShard

NO_PRODUCER_EPOCH: Final = -1
FIRST_WITH_PRODUCER_FENCED: Final = 4


def handle(broker: "Broker", context: RequestContext, request: InitProducerIdRequest) -> Answer:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return _new_producer(broker)
    if not broker.producer_ids.at_hand:
        return _initialise_with_ids(broker, context, request)
    return _initialise(broker, context, request)


async def _new_producer(broker: "Broker") -> InitProducerIdResponse:
    try:
        producer_id = await broker.producer_ids.next()
    except Refused as refusal:
        return _refused(refusal.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _initialise_with_ids(broker: "Broker", context: RequestContext, request: InitProducerIdRequest) -> Message:
    try:
        await broker.producer_ids.reserve()
    except Refused as refusal:
        return _refused(refusal.code)
    answer = _initialise(broker, context, request)
    return answer if isinstance(answer, Message) else await answer


def _initialise(
    broker: "Broker", context: RequestContext, request: InitProducerIdRequest
) -> Message | Awaitable[Message]:
    def decide(shard: "TransactionShard", ticket: Ticket, now: Now) -> Decision:
        return shard.init_producer_id(request, ticket, now)

    def refused(code: ErrorCode) -> InitProducerIdResponse:
        if code is ErrorCode.PRODUCER_FENCED and context.version < FIRST_WITH_PRODUCER_FENCED:
            return _refused(ErrorCode.INVALID_PRODUCER_EPOCH)
        return _refused(code)

    assert request.transactional_id is not None
    return broker.transactions.runtime.submit(request.transactional_id, decide, refused)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
