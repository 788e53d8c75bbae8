"""Features: what the brokers of a cluster support, and the level in use (KIP-584).

A finalised level applies to all clients at once: they read it from ApiVersions and choose the protocol by it. Level 0
is the same as not having the feature. The rules for changing levels, their order and their messages are Kafka's.
"""

from enum import IntEnum
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.config import BrokerConfig, BrokerSettings
from kaspar.controller.decision import Decision, Draft
from kaspar.controller.elections import MIN_INSYNC_REPLICAS
from kaspar.controller.events import DONE, FeatureOutcome, FeatureUpdate, Outcome, UpdateFeatures
from kaspar.controller.in_sync import forget_eligible
from kaspar.metadata.features import SUPPORTED, SupportedRange
from kaspar.metadata.image import CLUSTER_DEFAULT, ELIGIBLE_LEADER_REPLICAS_VERSION, ClusterImage


class UpgradeType(IntEnum):
    """The direction in which a level may be changed."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


_DISABLED: Final = SupportedRange(0, 0)


def update_features(
    image: ClusterImage, event: UpdateFeatures, settings: BrokerSettings
) -> Decision[tuple[FeatureOutcome, ...]]:
    """Change all levels, or none if one of them cannot be changed."""
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
        _prepare_eligible_replicas(draft, image, levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0, settings)
        draft.put_features(levels, image.features_epoch + 1)
    return draft.decide(tuple(replies))


def _prepare_eligible_replicas(draft: Draft, image: ClusterImage, is_on: bool, settings: BrokerSettings) -> None:
    """Prepare for eligible leader replicas being turned on or off. Turning them on makes min.insync.replicas a setting
    of the cluster, because controller and leaders have to agree on it (Kafka's maybeGenerateElrSafetyRecords). Turning
    them off clears them.
    """
    if is_on and not image.has_elr:
        cluster = image.cluster_broker_config
        if MIN_INSYNC_REPLICAS not in cluster:
            value = settings.static.get(MIN_INSYNC_REPLICAS, str(BrokerConfig.declared[MIN_INSYNC_REPLICAS].default))
            draft.put_configs("broker_configs", CLUSTER_DEFAULT, {**cluster, MIN_INSYNC_REPLICAS: value})
        for resource, configs in image.broker_configs.items():
            if resource != CLUSTER_DEFAULT and MIN_INSYNC_REPLICAS in configs:
                others = {name: value for name, value in configs.items() if name != MIN_INSYNC_REPLICAS}
                draft.put_configs("broker_configs", resource, others)
    elif image.has_elr and not is_on:
        forget_eligible(draft, image.topics.values(), for_good=True)


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
