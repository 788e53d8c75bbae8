"""InitProducerId: a producer id and epoch to produce with.

Without a transactional id, the producer id is one that the cluster has never used before. With one, its coordinator
decides.
"""

import contextlib
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import NO_PRODUCER_ID
from kaspar.broker.coordination.coordinators import Coordinators
from kaspar.broker.coordination.producer_ids import ProducerIds
from kaspar.broker.coordination.tickets import Response
from kaspar.network.api import HandlerResult, RequestContext
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kaspar.protocol.schema import Message

NO_PRODUCER_EPOCH: Final = -1
FIRST_WITH_PRODUCER_FENCED: Final = 4


class InitProducerIdHandler:
    def __init__(self, producer_ids: ProducerIds, coordinators: Coordinators) -> None:
        """The transaction coordinator is created when it is first needed: an idempotent producer does not need it."""
        self._producer_ids = producer_ids
        self._coordinators = coordinators

    def __call__(self, context: RequestContext, request: InitProducerIdRequest) -> HandlerResult:
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
            return _refused(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is None:
            return self._new_producer()
        if request.keep_prepared_txn:
            return self._prepare(context, request)
        if not self._producer_ids.available:
            return self._initialize_with_ids(context, request)
        return self._initialize(context, request)

    async def _new_producer(self) -> InitProducerIdResponse:
        try:
            producer_id = await self._producer_ids.next()
        except Refused as refusal:
            return _refused(refusal.code)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    async def _initialize_with_ids(self, context: RequestContext, request: InitProducerIdRequest) -> Message:
        """Initialize after waiting for producer ids. As in Kafka, a broker that is not the coordinator says so whether
        it has ids or not, and a transactional id that is known needs no new producer id: neither waits for a
        controller.
        """
        assert request.transactional_id is not None
        try:
            shard = self._coordinators.transactions.runtime.shard_of(request.transactional_id)
        except Refused as refusal:
            return _refused(refusal.code)
        if request.transactional_id not in shard.transactions:
            with contextlib.suppress(Refused):  # the coordinator refuses the request then
                await self._producer_ids.reserve()
        response = self._initialize(context, request)
        return response if isinstance(response, Message) else await response

    def _initialize(self, context: RequestContext, request: InitProducerIdRequest) -> Response:
        def refused(code: ErrorCode) -> InitProducerIdResponse:
            if code is ErrorCode.PRODUCER_FENCED and context.version < FIRST_WITH_PRODUCER_FENCED:
                return _refused(ErrorCode.INVALID_PRODUCER_EPOCH)
            return _refused(code)

        assert request.transactional_id is not None
        return self._coordinators.transactions.runtime.submit(
            request.transactional_id, lambda shard, now: shard.init_producer_id(request, now), refused
        )

    async def _prepare(self, context: RequestContext, request: InitProducerIdRequest) -> Message:
        """Initialize and keep a prepared transaction (KIP-939). If there is one, the response waits until its
        partitions accept no more records.
        """
        if not self._producer_ids.available:
            response = await self._initialize_with_ids(context, request)
        else:
            initialized = self._initialize(context, request)
            response = initialized if isinstance(initialized, Message) else await initialized
        assert isinstance(response, InitProducerIdResponse)
        if response.error_code != ErrorCode.NONE or response.ongoing_txn_producer_id == NO_PRODUCER_ID:
            return response
        assert request.transactional_id is not None
        code = await self._coordinators.transactions.fenced(request.transactional_id)
        return response if code is ErrorCode.NONE else _refused(code)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
