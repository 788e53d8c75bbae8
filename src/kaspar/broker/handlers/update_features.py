"""UpdateFeatures: raises or lowers the levels of features, all that are named or none."""

from typing import TYPE_CHECKING, Final

from kaspar.base.errors import Refused
from kaspar.broker.handlers import RequestContext
from kaspar.metadata.events import DONE, FeatureOutcome, FeatureUpdate, UpdateFeatures
from kaspar.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

NO_MESSAGE: Final = "NONE"  # what Kafka says where nothing is wrong
NOT_UPDATED: Final = "The update failed for all features since the following feature had an error: "


async def handle(broker: "Broker", context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    updates = tuple(
        # Version 0 has no upgrade type, and what it has instead Kafka does not look at: there is no way down.
        FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    )
    try:
        outcomes = await broker.controller.submit(UpdateFeatures(updates, request.validate_only))
    except Refused as refusal:  # by the metadata store: it is full, or not ours any longer
        return UpdateFeaturesResponse(error_code=refusal.code, error_message=refusal.message)
    return _response(outcomes)


def _response(outcomes: tuple[FeatureOutcome, ...]) -> UpdateFeaturesResponse:
    """The first that failed is told for all of them. Since version 2 there are no results beside it."""
    for outcome in (each.outcome for each in outcomes if each.outcome != DONE):
        return UpdateFeaturesResponse(error_code=outcome.error, error_message=f"{NOT_UPDATED}{outcome.message}")
    return UpdateFeaturesResponse(
        results=tuple(UpdatableFeatureResult(feature=each.name, error_message=NO_MESSAGE) for each in outcomes)
    )
