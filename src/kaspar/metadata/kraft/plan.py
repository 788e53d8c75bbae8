"""Plans the adoption of a Kafka folder: what the result would be, what would be lost, and what prevents it. Pure: the
plan is shown before anything is changed.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kaspar.base.ids import BrokerId, TopicPartition, uuid_to_text
from kaspar.config import BrokerConfig
from kaspar.metadata.features import FIRST_LEVELS, LEVEL_OF_KAFKA_4_3, SUPPORTED
from kaspar.metadata.image import METADATA_VERSION, ClusterImage, DeletedTopic, TopicImage
from kaspar.metadata.kraft.folder import KafkaFolder
from kaspar.metadata.kraft.security import security_losses, security_obstacles, take_security
from kaspar.metadata.kraft.settings import TakenSettings, counted, listed, take_settings
from kaspar.metadata.kraft.state import BROKER, CLIENT_METRICS, GROUP, TOPIC, KRaftState
from kaspar.metadata.kraft.unread_groups import UnreadGroups

_WITHOUT_GROUPS: Final = frozenset({"share.version", "streams.version"})
"""Features for kinds of groups that Kaspar does not have. If there are no such groups, nothing is lost."""
_TIERED: Final = "remote.storage.enable"


@dataclass(frozen=True, slots=True)
class AdoptionPlan:
    """`directories` are the paths of the log directories by id. Each of `obstacles` prevents the adoption, `losses` are
    not adopted, `notes` are for information.
    """

    image: ClusterImage
    directories: Mapping[uuid.UUID, str]
    obstacles: tuple[str, ...]
    losses: tuple[str, ...]
    notes: tuple[str, ...]


def plan_adoption(
    state: KRaftState,
    folder: KafkaFolder,
    config: BrokerConfig,
    *,
    end_offset: int,
    unread: UnreadGroups,
    unfinished_bytes: int = 0,
) -> AdoptionPlan:
    """`end_offset` is the metadata log's: Kafka's feature epochs are its offsets, and Kaspar's continue from there."""
    settings = take_settings(state, config.node_id)
    topics = {
        topic.name: TopicImage(
            topic.name,
            topic.topic_id,
            tuple(partition for _, partition in sorted(topic.partitions.items())),
            settings.by_type[TOPIC].get(topic.name, {}),
        )
        for topic in state.topics.values()
    }
    image = ClusterImage(
        cluster_id=next(iter(folder.directories.values())).cluster_id,
        topics=topics,
        topic_names={topic.topic_id: name for name, topic in topics.items()},
        deleted_topics=_deleted(state, folder, BrokerId(config.node_id)),
        broker_configs=settings.by_type[BROKER],
        group_configs=settings.by_type[GROUP],
        client_metrics_configs=settings.by_type[CLIENT_METRICS],
        next_producer_id=state.next_producer_id,
        features=_features(state),
        features_epoch=end_offset,
        **take_security(state)._asdict(),
    )
    return AdoptionPlan(
        image,
        folder.directory_ids,
        tuple(_obstacles(state, folder, image, config.node_id)),
        tuple(_losses(state, settings, unread, image, config.node_id)),
        tuple(_notes(state, folder, image, unfinished_bytes)),
    )


def _features(state: KRaftState) -> dict[str, int]:
    """The feature levels: those of the Kafka cluster, except that metadata.version is always that of Kafka 4.3."""
    levels = {name: level for name, level in state.features.items() if name in SUPPORTED}
    return {**levels, METADATA_VERSION: FIRST_LEVELS[METADATA_VERSION]}


def _deleted(state: KRaftState, folder: KafkaFolder, node_id: BrokerId) -> dict[uuid.UUID, DeletedTopic]:
    """Topics that Kafka had deleted when it was stopped, but whose logs it had not removed yet."""
    return {
        found.topic_id: DeletedTopic(state.removed_topics[found.topic_id], found.topic_id, (node_id,))
        for found in folder.partitions
        if found.topic_id is not None and found.topic_id in state.removed_topics
    }


# -- what forbids it ---------------------------------------------------------------------------------------------------


def _obstacles(state: KRaftState, folder: KafkaFolder, image: ClusterImage, node_id: int) -> Iterator[str]:
    yield from _identity_obstacles(state, folder, node_id)
    yield from _feature_obstacles(state)
    yield from security_obstacles(state)
    partitions = {
        TopicPartition(name, number): partition
        for name, topic in image.topics.items()
        for number, partition in enumerate(topic.partitions)
    }
    elsewhere = [str(one) for one, partition in partitions.items() if partition.replicas != (node_id,)]
    if elsewhere:
        yield (
            f"partitions have replicas on other nodes than {node_id}: {listed(elsewhere)}. Reassign them to node "
            f"{node_id} alone while Kafka runs"
        )
    away = [
        f"{one} in {uuid_to_text(directory)}"
        for one, partition in partitions.items()
        if (directory := partition.directory_of(BrokerId(node_id))) is not None
        and directory not in folder.directory_ids
    ]
    if away:
        yield f"partitions are in log directories that are not in log.dirs, by their ids: {listed(away)}"
    gaps = [
        topic.name for topic in state.topics.values() if sorted(topic.partitions) != [*range(len(topic.partitions))]
    ]
    if gaps:
        yield f"the metadata log lacks partitions of topics: {listed(gaps)}"
    if tiered := [name for name, topic in image.topics.items() if topic.configs.get(_TIERED, "").lower() == "true"]:
        yield (
            f"topics have records in tiered storage, which would be missing: {listed(tiered)}. Set {_TIERED}=false "
            "and remote.log.delete.on.disable=true while Kafka runs, or copy them"
        )
    if old := [path for found in folder.partitions for path in found.old_segments]:
        yield (
            "segments have the record format of a Kafka before 0.11, which is not read here: "
            f"{listed(old)}. Copy these topics while Kafka runs"
        )


def _identity_obstacles(state: KRaftState, folder: KafkaFolder, node_id: int) -> Iterator[str]:
    clusters = {meta.cluster_id for meta in folder.directories.values()}
    if len(clusters) > 1:
        yield f"the log directories belong to several clusters: {', '.join(sorted(clusters))}"
    for path, meta in folder.directories.items():
        if meta.node_id != node_id:
            yield f"{path} belongs to node {meta.node_id}, and node.id is {node_id}"
        if meta.directory_id is None:
            yield f"{path} has no directory.id: start it once with Kafka 3.7 or newer"
    if len(set(folder.directory_ids)) < sum(meta.directory_id is not None for meta in folder.directories.values()):
        yield "two of log.dirs have the same directory.id: one is a copy of the other"
    if state.voters != {node_id}:
        voters = ", ".join(map(str, sorted(state.voters))) or "none"
        yield (
            f"the voters of the metadata quorum are {voters}: only a node that is broker and sole controller can be "
            "adopted"
        )


def _feature_obstacles(state: KRaftState) -> Iterator[str]:
    version = state.features.get(METADATA_VERSION)
    if version is None:
        yield "the metadata log has no metadata.version"
    elif version > LEVEL_OF_KAFKA_4_3:
        yield (
            f"metadata.version is {version}, and this release knows those up to {LEVEL_OF_KAFKA_4_3}, that of Kafka 4.3"
        )
    for name, level in sorted(state.features.items()):
        supported = SUPPORTED.get(name)
        if supported is not None and name != METADATA_VERSION and level > supported.max_version:
            yield f"{name} is {level}, and this release supports levels up to {supported.max_version}"


# -- what is lost ------------------------------------------------------------------------------------------------------


def _losses(
    state: KRaftState, settings: TakenSettings, unread: UnreadGroups, image: ClusterImage, node_id: int
) -> Iterator[str]:
    yield from settings.losses
    yield from security_losses(state)
    for kind, groups in (("share", unread.share), ("streams", unread.streams)):
        if groups:
            yield f"{counted(groups, f'{kind} group')}, which this release does not have: {listed(groups)}"
    if others := sorted(state.brokers.keys() - {node_id}):
        yield f"the registrations of other brokers, which have no replicas: {listed([str(one) for one in others])}"
    for name, level in sorted(state.features.items()):
        if name not in SUPPORTED and name not in _WITHOUT_GROUPS:
            yield f"the feature {name} at level {level} is not known here"


# -- what is good to know ----------------------------------------------------------------------------------------------


def _notes(state: KRaftState, folder: KafkaFolder, image: ClusterImage, unfinished_bytes: int) -> Iterator[str]:
    if folder.unclean:
        yield (
            f"Kafka was not stopped in order ({listed(folder.unclean)}): the first start checks the logs, as Kafka's "
            "would"
        )
    if unfinished_bytes:
        yield f"the last write to the metadata log was cut off; its {unfinished_bytes} bytes do not count"
    known = {(found.topic_partition, found.topic_id) for found in folder.partitions}
    unnamed = {found.topic_partition for found in folder.partitions if found.topic_id is None}
    missing = [
        str(one)
        for name, topic in image.topics.items()
        for number in range(len(topic.partitions))
        if ((one := TopicPartition(name, number)), topic.topic_id) not in known and one not in unnamed
    ]
    if missing:
        yield f"partitions have no folder, and will be offline if Kafka knew where they were: {listed(missing)}"
    strays = [
        found.folder
        for found in folder.partitions
        if found.topic_id not in image.topic_names
        and found.topic_id not in image.deleted_topics
        and not (found.topic_id is None and image.has_partition(found.topic_partition))
    ]
    if strays:
        yield f"folders belong to no topic and are left alone: {listed(strays)}"
    if folder.moving:
        yield f"replicas were being moved between log directories, and will be moved on: {listed(folder.moving)}"
