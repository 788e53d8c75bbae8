"""Features: what a cluster's brokers are able to do, and up to which level they do it.

A level that is finalised counts for all clients at once: they hear of it in ApiVersions, and choose by it how they
talk to the cluster. Level 0 is the same as not having the feature. The rules of changing levels, their order and their
sentences are Kafka's.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.metadata.decision import Decision, Draft
from kaspar.metadata.events import DONE, FeatureOutcome, FeatureUpdate, Outcome, UpdateFeatures
from kaspar.metadata.image import GROUP_VERSION, METADATA_VERSION, TRANSACTION_VERSION, ClusterImage


class UpgradeType(IntEnum):
    """Which way a level may be changed."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class SupportedRange(NamedTuple):
    min_version: int
    max_version: int


LEVEL_OF_KAFKA_4_3: Final = 30
"""Kafka's number for the metadata of its release 4.3. Tools read off it which Kafka a cluster is like. It cannot be
changed: the metadata of this cluster is not kept in records of Kafka's.
"""

SUPPORTED: Final[Mapping[str, SupportedRange]] = MappingProxyType(
    {
        GROUP_VERSION: SupportedRange(0, 1),
        METADATA_VERSION: SupportedRange(LEVEL_OF_KAFKA_4_3, LEVEL_OF_KAFKA_4_3),
        TRANSACTION_VERSION: SupportedRange(0, 2),
    }
)
"""What this release is able to do."""

FIRST_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {name: supported.max_version for name, supported in SUPPORTED.items()}
)
"""What a new cluster does, and one from before there were features."""

_DISABLED: Final = SupportedRange(0, 0)


def update_features(image: ClusterImage, event: UpdateFeatures) -> Decision[tuple[FeatureOutcome, ...]]:
    """All of it or nothing: if one level cannot be changed, none is."""
    levels = dict(image.features)
    replies = []
    for update in event.updates:
        try:
            _check(image, update)
        except Refused as refused:
            replies.append(FeatureOutcome(update.name, Outcome.of(refused)))
            continue
        replies.append(FeatureOutcome(update.name, DONE))
        levels[update.name] = update.level
        if not update.level:
            del levels[update.name]
    draft = Draft(image)
    failed = any(reply.outcome != DONE for reply in replies)
    if not failed and not event.validate_only and levels != image.features:
        draft.put_features(levels, image.features_epoch + 1)
    return draft.decide(tuple(replies))


def _check(image: ClusterImage, update: FeatureUpdate) -> None:
    if update.upgrade_type not in UpgradeType.__members__.values() or update.upgrade_type == UpgradeType.UNKNOWN:
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if update.level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    supported = SUPPORTED.get(update.name, _DISABLED)
    if not supported.min_version <= update.level <= supported.max_version:
        raise _invalid(update, _why_not_supported(image, supported))
    if update.name not in SUPPORTED:
        raise _invalid(update, f"Feature {update.name} not found.")
    current = image.features.get(update.name, 0)
    if update.level < current and update.upgrade_type == UpgradeType.UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if update.level > current and update.upgrade_type != UpgradeType.UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")


def _why_not_supported(image: ClusterImage, supported: SupportedRange) -> str:
    if supported == _DISABLED:
        return f"Local controller {image.controller_id} does not support this feature."
    return (
        f"Local controller {image.controller_id} only supports versions {supported.min_version}-{supported.max_version}"
    )


def _invalid(update: FeatureUpdate, problem: str) -> Refused:
    return Refused(
        ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {update.level} for feature {update.name}. {problem}"
    )
