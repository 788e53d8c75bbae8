"""UpdateFeatures: raises or lowers the levels of features, all that are named or none."""

from typing import TYPE_CHECKING, Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.broker.handlers import RequestContext
from kaspar.metadata.events import DONE, FeatureOutcome, FeatureUpdate, Outcome, UpdateFeatures
from kaspar.metadata.features import UpgradeType
from kaspar.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

FIRST_WITH_UPGRADE_TYPE: Final = 1
FIRST_WITH_ONE_RESULT: Final = 2
NOT_UPDATED: Final = "The update failed for all features since the following feature had an error: "


async def handle(broker: "Broker", context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    updates = tuple(_update(update, context.version) for update in request.feature_updates)
    try:
        outcomes = await broker.controller.submit(UpdateFeatures(updates, request.validate_only))
    except Refused as refusal:  # by the metadata store: it is full, or not ours any longer
        return UpdateFeaturesResponse(error_code=refusal.code, error_message=refusal.message)
    return _response(context.version, outcomes)


def _update(update: FeatureUpdateKey, version: int) -> FeatureUpdate:
    if version >= FIRST_WITH_UPGRADE_TYPE:
        return FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
    upgrade_type = UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
    return FeatureUpdate(update.feature, update.max_version_level, upgrade_type)


def _response(version: int, outcomes: tuple[FeatureOutcome, ...]) -> UpdateFeaturesResponse:
    failed = next((each for each in outcomes if each.outcome != DONE), None)
    if version >= FIRST_WITH_ONE_RESULT:
        outcome = Outcome() if failed is None else failed.outcome
        message = None if failed is None else f"{NOT_UPDATED}{outcome.message}"
        return UpdateFeaturesResponse(error_code=outcome.error, error_message=message)
    return UpdateFeaturesResponse(
        error_code=ErrorCode.NONE,
        results=tuple(
            UpdatableFeatureResult(feature=each.name, error_code=each.outcome.error, error_message=each.outcome.message)
            for each in outcomes
        ),
    )
