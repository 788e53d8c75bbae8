"""The features of a cluster: the levels that its nodes support, the finalized ones, and updates (KIP-584, KIP-778)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.client.admin.session import Admin, refusal, refuse
from kaspar.client.core import API_VERSIONS_REQUEST
from kaspar.protocol.messages.api_versions import ApiVersionsResponse
from kaspar.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_NO_EPOCH = -1


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class LevelRange(NamedTuple):
    first: int
    last: int


class FeatureUpdate(NamedTuple):
    level: int
    """0 disables the feature."""
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True)
class FeatureMetadata:
    supported: Mapping[str, LevelRange]
    """The levels that the node supports."""
    finalized: Mapping[str, int]
    """The levels of the whole cluster. A feature that is not here is at level 0."""
    epoch: int | None
    """The epoch of the finalized levels; None if the node does not know them."""


def describe_features(admin: Admin, *, node_id: int | None = None) -> FeatureMetadata:
    """The features as reported by this node, or by any (None). Raises Refused."""
    call = "describeFeatures"
    if node_id is None:
        response = admin.ask_any(call, API_VERSIONS_REQUEST, ApiVersionsResponse, at_controllers=True)
    else:
        response = admin.ask_broker(call, node_id, API_VERSIONS_REQUEST, ApiVersionsResponse)
    refuse(response.error_code)
    epoch = response.finalized_features_epoch
    return FeatureMetadata(
        {each.name: LevelRange(each.min_version, each.max_version) for each in response.supported_features},
        {each.name: each.max_version_level for each in response.finalized_features},
        None if epoch == _NO_EPOCH else epoch,
    )


def update_features(
    admin: Admin, updates: Mapping[str, FeatureUpdate], *, validate_only: bool = False
) -> dict[str, Refused | None]:
    """Update features. Returns for each why it was not updated, or None. Since version 2 of the API all or none of them
    are updated.
    """
    request = UpdateFeaturesRequest(
        timeout_ms=admin.timeout_ms,
        feature_updates=tuple(
            FeatureUpdateKey(
                feature=name,
                max_version_level=update.level,
                allow_downgrade=update.upgrade_type is not UpgradeType.UPGRADE,
                upgrade_type=update.upgrade_type,
            )
            for name, update in updates.items()
        ),
        validate_only=validate_only,
    )
    try:
        response = admin.ask_controller("updateFeatures", request, UpdateFeaturesResponse)
    except Refused as refused:
        return dict.fromkeys(updates, refused)
    if response.error_code != ErrorCode.NONE:
        return dict.fromkeys(updates, refusal(response.error_code, response.error_message))
    of_feature = {each.feature: refusal(each.error_code, each.error_message) for each in response.results}
    return {name: of_feature.get(name) for name in updates}
