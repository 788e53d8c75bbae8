"""UpdateFeatures: raises or lowers the levels of features, either all that are named or none."""

from typing import Final

from kaspar.base.errors import Refused
from kaspar.controller.channel import ControllerChannel
from kaspar.controller.events import DONE, FeatureOutcome, FeatureUpdate, UpdateFeatures
from kaspar.network.api import RequestContext
from kaspar.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

NO_MESSAGE: Final = "NONE"  # Kafka's message for success
NOT_UPDATED: Final = "The update failed for all features since the following feature had an error: "


class UpdateFeaturesHandler:
    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller

    async def __call__(self, context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
        updates = tuple(
            # Version 0 has no upgrade type. Kafka ignores the field that it has instead: it allows no downgrade.
            FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
            for update in request.feature_updates
        )
        try:
            outcomes = await self._controller.submit(UpdateFeatures(updates, request.validate_only))
        except Refused as refusal:  # there is no controller now, or the metadata store is full
            return UpdateFeaturesResponse(error_code=refusal.code, error_message=refusal.message)
        return _response(outcomes)


def _response(outcomes: tuple[FeatureOutcome, ...]) -> UpdateFeaturesResponse:
    """The response. The first failure stands for all features; since version 2 there are no results besides it."""
    for outcome in (each.outcome for each in outcomes if each.outcome != DONE):
        return UpdateFeaturesResponse(error_code=outcome.error, error_message=f"{NOT_UPDATED}{outcome.message}")
    return UpdateFeaturesResponse(
        results=tuple(UpdatableFeatureResult(feature=each.name, error_message=NO_MESSAGE) for each in outcomes)
    )
