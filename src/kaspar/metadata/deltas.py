"""Updates of the image as bytes, which a controller sends to the brokers that follow it.

A delta changes one image into another and contains only the differences: for a changed topic, the partitions that have
changed. The whole image is the delta from an empty one. Like an `ImageUpdate`, a delta contains the deletions.
"""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from kaspar.acls.acl import Acl
from kaspar.base.ids import BrokerId
from kaspar.metadata.image import (
    BrokerRegistration,
    ClusterImage,
    Configs,
    DeletedTopic,
    PartitionImage,
    TopicImage,
)
from kaspar.metadata.images import ImageUpdate, ImageVersion
from kaspar.quotas.entities import QuotaEntity
from kaspar.security.delegation_tokens import DelegationToken
from kaspar.security.scram import ScramCredential


class TopicDelta(msgspec.Struct, frozen=True, array_like=True):
    """`partitions` are the changed partitions, by number. `configs`: None if unchanged."""

    name: str
    topic_id: uuid.UUID
    partition_count: int
    partitions: dict[int, PartitionImage]
    configs: dict[str, str] | None


class ImageDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """`follows` is the version of the image that the delta applies to; None if it contains the whole image. Most other
    fields are those of ClusterImage, None where unchanged; ACLs are split into those added and removed. `topics` are
    encoded TopicDeltas, because decoding thousands of them at once would hold the GIL for too long, even in a thread.
    """

    version: ImageVersion
    follows: ImageVersion | None
    cluster_id: str
    controller_id: BrokerId
    controller_epoch: int
    topics: tuple[msgspec.Raw, ...] = ()
    absent_topics: tuple[str, ...] = ()
    said_deletions: tuple[DeletedTopic, ...] = ()
    shutting_down: frozenset[BrokerId] = frozenset()
    features_epoch: int = 0
    next_producer_id: int = 0
    brokers: dict[BrokerId, BrokerRegistration] | None = None
    broker_epochs: dict[BrokerId, int] | None = None
    broker_incarnations: dict[BrokerId, int] | None = None
    deleted_topics: dict[uuid.UUID, DeletedTopic] | None = None
    broker_configs: dict[str, dict[str, str]] | None = None
    group_configs: dict[str, dict[str, str]] | None = None
    client_metrics_configs: dict[str, dict[str, str]] | None = None
    features: dict[str, int] | None = None
    added_acls: dict[str, Acl] | None = None
    removed_acls: tuple[str, ...] = ()
    scram_credentials: dict[str, dict[str, ScramCredential]] | None = None
    delegation_tokens: dict[str, DelegationToken] | None = None
    client_quotas: dict[QuotaEntity, dict[str, float]] | None = None


_MAPPINGS: Final = (
    "brokers",
    "broker_epochs",
    "broker_incarnations",
    "deleted_topics",
    "broker_configs",
    "group_configs",
    "client_metrics_configs",
    "features",
    "scram_credentials",
    "delegation_tokens",
    "client_quotas",
)
_VALUES: Final = (
    "cluster_id",
    "controller_id",
    "controller_epoch",
    "shutting_down",
    "features_epoch",
    "next_producer_id",
)


def delta_between(known: tuple[ImageVersion, ClusterImage] | None, update: ImageUpdate) -> ImageDelta:
    """The delta from the `known` image to that of the update. `update.changed_topics` must contain all topics that
    differ, unless nothing is known.
    """
    new = update.image
    old = ClusterImage(new.cluster_id) if known is None else known[1]
    changed = new.topics.keys() if known is None else update.changed_topics
    fields: dict[str, Any] = {name: getattr(new, name) for name in _VALUES}
    for name in _MAPPINGS:
        value = getattr(new, name)
        if value is not getattr(old, name) and value != getattr(old, name):
            fields[name] = _plain(value)
    return ImageDelta(
        version=update.version,
        follows=None if known is None else known[0],
        topics=tuple(
            msgspec.Raw(_ENCODER.encode(_topic_delta(old.topics.get(name), new.topics[name])))
            for name in sorted(changed)
            if name in new.topics
        ),
        absent_topics=tuple(sorted(name for name in changed if name not in new.topics)),
        said_deletions=update.deleted_topics,
        **_acl_changes(old.acls, new.acls),
        **fields,
    )


def _acl_changes(old: Mapping[str, Acl], new: Mapping[str, Acl]) -> dict[str, Any]:
    if old is new:
        return {}
    added, removed = acls_between(old, new)
    return {"added_acls": added or None, "removed_acls": removed}


def acls_between(old: Mapping[str, Acl], new: Mapping[str, Acl]) -> tuple[dict[str, Acl], tuple[str, ...]]:
    """The ACLs that were added, and the ids of those that were removed."""
    added = {acl_id: acl for acl_id, acl in new.items() if acl_id not in old}
    removed = tuple(acl_id for acl_id in old if acl_id not in new) if len(old) + len(added) > len(new) else ()
    return added, removed


def _topic_delta(old: TopicImage | None, new: TopicImage) -> TopicDelta:
    if old is None or old.topic_id != new.topic_id:
        return TopicDelta(
            new.name, new.topic_id, len(new.partitions), dict(enumerate(new.partitions)), dict(new.configs)
        )
    before = old.partitions
    partitions = {
        number: partition
        for number, partition in enumerate(new.partitions)
        if number >= len(before) or (partition is not before[number] and partition != before[number])
    }
    configs = None if new.configs == old.configs else dict(new.configs)
    return TopicDelta(new.name, new.topic_id, len(new.partitions), partitions, configs)


def _plain(value: Mapping[Any, Any]) -> dict[Any, Any]:
    """A copy with plain dicts: settings may be read-only views of a dict, which msgspec cannot encode."""
    return {key: dict(each) if isinstance(each, Mapping) else each for key, each in value.items()}


def apply_delta(known: ClusterImage | None, delta: ImageDelta) -> ImageUpdate:
    """The update that a delta encodes. Unchanged topics keep their objects. Raises the same errors as `decode_delta`.

    Topics that are missing from a whole image are absent, which does not mean that they were deleted.
    """
    base = known if known is not None and delta.follows is not None else ClusterImage(delta.cluster_id)
    topic_deltas = (_TOPIC_DECODER.decode(each) for each in delta.topics)
    topics = {each.name: _changed_topic(base.topics.get(each.name), each) for each in topic_deltas}
    fields: dict[str, Any] = {name: getattr(delta, name) for name in _VALUES}
    fields |= {name: value for name in _MAPPINGS if (value := getattr(delta, name)) is not None}
    if delta.added_acls or delta.removed_acls:
        acls = {**base.acls, **(delta.added_acls or {})}
        for acl_id in delta.removed_acls:
            acls.pop(acl_id, None)
        fields["acls"] = acls
    image = replace(base.with_topics({**topics, **dict.fromkeys(delta.absent_topics)}), **fields)
    if delta.follows is None and known is not None:
        image, changed, deleted = image.after(known)
        return ImageUpdate(delta.version, image, changed, (*delta.said_deletions, *deleted))
    return ImageUpdate(
        delta.version, image, frozenset(topics) | frozenset(delta.absent_topics), tuple(delta.said_deletions)
    )


def _changed_topic(old: TopicImage | None, delta: TopicDelta) -> TopicImage:
    if old is not None and old.topic_id != delta.topic_id:
        old = None
    before = () if old is None else old.partitions
    partitions = tuple(
        changed if (changed := delta.partitions.get(number)) is not None else before[number]
        for number in range(delta.partition_count)
    )
    configs: Configs = delta.configs if delta.configs is not None else old.configs if old is not None else {}
    return TopicImage(delta.name, delta.topic_id, partitions, configs)


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(ImageDelta)
_TOPIC_DECODER: Final = msgspec.msgpack.Decoder(TopicDelta)


def encode_delta(delta: ImageDelta) -> bytes:
    return _ENCODER.encode(delta)


def decode_delta(encoded: bytes) -> ImageDelta:
    """Decode a delta. Raises msgspec.DecodeError or ValidationError for bytes that are not a delta."""
    return _DECODER.decode(encoded)
