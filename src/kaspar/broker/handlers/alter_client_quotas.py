"""AlterClientQuotas: the controller decides; the response has the outcome of each entity."""

from kaspar.base.errors import Refused
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import AlterClientQuotas, Outcome, QuotaAlteration, QuotaOutcome
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntryData,
    ResponseEntityData,
    ResponseEntryData,
)


class AlterClientQuotasHandler:
    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller

    async def __call__(self, context: RequestContext, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
        event = AlterClientQuotas(tuple(map(_alteration, request.entries)), request.validate_only)
        try:
            outcomes = await self._controller.submit(event)
        except Refused as refusal:  # there is no controller now, or the metadata store is full
            outcomes = tuple(QuotaOutcome(each.entity, Outcome.of(refusal)) for each in event.alterations)
        return AlterClientQuotasResponse(entries=tuple(map(_entry, outcomes)))


def _alteration(entry: RequestEntryData) -> QuotaAlteration:
    return QuotaAlteration(
        tuple((part.entity_type, part.entity_name) for part in entry.entity),
        tuple((operation.key, None if operation.remove else operation.value) for operation in entry.ops),
    )


def _entry(outcome: QuotaOutcome) -> ResponseEntryData:
    return ResponseEntryData(
        error_code=outcome.outcome.error,
        error_message=outcome.outcome.message,
        entity=tuple(ResponseEntityData(entity_type=kind, entity_name=name) for kind, name in outcome.entity),
    )
