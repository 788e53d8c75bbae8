"""AlterUserScramCredentials: the controller decides; the response has the outcome of each user."""

from kaspar.base.errors import Refused
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import AlterScramCredentials, NamedOutcome, Outcome, ScramDeletion, ScramUpsertion
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


class AlterUserScramCredentialsHandler:
    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller

    async def __call__(
        self, context: RequestContext, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        event = AlterScramCredentials(
            tuple(ScramDeletion(each.name, each.mechanism) for each in request.deletions),
            tuple(
                ScramUpsertion(each.name, each.mechanism, each.iterations, each.salt, each.salted_password)
                for each in request.upsertions
            ),
        )
        try:
            outcomes = await self._controller.submit(event)
        except Refused as refusal:  # there is no controller now, or the metadata store is full
            users = dict.fromkeys([each.user for each in event.deletions] + [each.user for each in event.upsertions])
            outcomes = tuple(NamedOutcome(user, Outcome.of(refusal)) for user in users)
        return AlterUserScramCredentialsResponse(
            results=tuple(
                AlterUserScramCredentialsResult(
                    user=each.name, error_code=each.outcome.error, error_message=each.outcome.message
                )
                for each in outcomes
            )
        )
