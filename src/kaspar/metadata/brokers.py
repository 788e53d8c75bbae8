"""Decisions about brokers and the partitions they lead: who comes and goes, elections, in-sync replicas."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ZERO_UUID, BrokerId, LeaderEpoch, ProducerId
from kaspar.metadata.decision import Decision, Draft
from kaspar.metadata.events import (
    DONE,
    AllocateProducerIds,
    AlterPartitions,
    AssignDirectories,
    BrokersSeen,
    IsrChange,
    IsrOutcome,
    LogsLost,
    LogsRemoved,
    Outcome,
    ProducerIdBlock,
)
from kaspar.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from kaspar.metadata.layout import PARTITIONS_PER_NODE

PRODUCER_IDS_PER_BLOCK = 1000
_MAX_PRODUCER_ID = (1 << 63) - 1


def brokers_seen(image: ClusterImage, event: BrokersSeen) -> Decision[None]:
    """Elects leaders where a leader is gone, or came back after a crash.

    A leader that restarted after a crash may have lost the end of its log, and would give the lost offsets to other
    records: so it leads in a new epoch. One that closed its logs in order has lost nothing and goes on in the old
    one.
    """
    restarted = {
        broker_id
        for broker_id, broker in event.brokers.items()
        if broker.epoch != image.broker_epochs.get(broker_id) and not broker.clean_start
    }
    draft = Draft(image)
    for topic in image.topics.values():
        elected = tuple(_elected(partition, event, restarted) for partition in topic.partitions)
        if elected != topic.partitions:
            _put_partitions(draft, topic, elected)
    epochs = {**image.broker_epochs, **{broker_id: broker.epoch for broker_id, broker in event.brokers.items()}}
    if event.brokers != image.brokers or epochs != image.broker_epochs:
        # Last, so that after a crash half-way the elections are held again: an epoch too many does no harm.
        draft.put_brokers(event.brokers, epochs)
    return draft.decide(None)


def _elected(partition: PartitionImage, event: BrokersSeen, restarted: set[BrokerId]) -> PartitionImage:
    if partition.leader in event.brokers:
        if partition.leader not in restarted:
            return partition
        leader = partition.leader
    else:
        candidates = (replica for replica in partition.replicas if replica in partition.isr)
        leader = next((replica for replica in candidates if replica in event.brokers), NO_LEADER)
        if leader == NO_LEADER == partition.leader:
            return partition
    isr = partition.isr
    if leader != NO_LEADER:
        # Who is down cannot be in sync. The last one stays, for it alone has every committed record.
        isr = tuple(replica for replica in isr if replica in event.brokers)
    return partition._replace(
        leader=leader,
        isr=isr,
        leader_epoch=LeaderEpoch(partition.leader_epoch + 1),
        partition_epoch=partition.partition_epoch + 1,
    )


def _put_partitions(
    draft: Draft, topic: TopicImage, changed: tuple[PartitionImage, ...], *, only_places: bool = False
) -> None:
    """Node by node, for a giant topic's new leaders may be too much for one transaction."""
    for end in range(PARTITIONS_PER_NODE, len(changed) + PARTITIONS_PER_NODE, PARTITIONS_PER_NODE):
        draft.put_topic(replace(topic, partitions=changed[:end] + topic.partitions[end:]), only_places=only_places)


def logs_removed(image: ClusterImage, event: LogsRemoved) -> Decision[None]:
    draft = Draft(image)
    for topic_id in dict.fromkeys(event.topic_ids):
        deleted = image.deleted_topics.get(topic_id)
        if deleted is not None and event.broker_id in deleted.brokers:
            draft.logs_removed(deleted, event.broker_id)
    return draft.decide(None)


def assign_directories(image: ClusterImage, event: AssignDirectories) -> Decision[None]:
    """Says nothing of who leads or is in sync, so no epoch changes."""
    draft = Draft(image)
    places = {(topic_id, number): directory for topic_id, number, directory in event.directories}
    _change_partitions(
        draft,
        event.broker_id,
        places,
        lambda one, place: one.with_directory(event.broker_id, places[place]),
        only_places=True,
    )
    return draft.decide(None)


def logs_lost(image: ClusterImage, event: LogsLost) -> Decision[None]:
    """Whatever leads then does so in a new epoch, for offsets may be given to other records: by that readers notice."""
    draft = Draft(image)

    def without_log(partition: PartitionImage, place: tuple[uuid.UUID, int]) -> PartitionImage:
        unplaced = partition.with_directory(event.broker_id, ZERO_UUID)
        if event.broker_id not in partition.isr:
            return unplaced
        isr = tuple(one for one in partition.isr if one != event.broker_id) or (event.broker_id,)
        up = [one for one in isr if one in image.brokers]
        return unplaced._replace(
            isr=isr,
            leader=partition.leader if partition.leader in up else next(iter(up), NO_LEADER),
            leader_epoch=LeaderEpoch(partition.leader_epoch + 1),
            partition_epoch=partition.partition_epoch + 1,
        )

    _change_partitions(draft, event.broker_id, event.partitions, without_log)
    return draft.decide(None)


def _change_partitions(
    draft: Draft,
    broker_id: BrokerId,
    places: Iterable[tuple[uuid.UUID, int]],
    change: Callable[[PartitionImage, tuple[uuid.UUID, int]], PartitionImage],
    *,
    only_places: bool = False,
) -> None:
    """Change those of the partitions that there still are, and that the broker has a replica of."""
    image = draft.image()
    by_topic: dict[uuid.UUID, list[int]] = {}
    for topic_id, number in places:
        by_topic.setdefault(topic_id, []).append(number)
    for topic_id, numbers in by_topic.items():
        topic = image.topic_by_id(topic_id)
        if topic is None:
            continue
        changed = list(topic.partitions)
        for number in numbers:
            if number < len(changed) and broker_id in changed[number].replicas:
                changed[number] = change(changed[number], (topic_id, number))
        if tuple(changed) != topic.partitions:
            _put_partitions(draft, topic, tuple(changed), only_places=only_places)


def allocate_producer_ids(image: ClusterImage, event: AllocateProducerIds) -> Decision[ProducerIdBlock]:
    """The block is written as given out before anyone gets it, so no id is ever given twice, whatever crashes."""
    first = image.next_producer_id
    if first > _MAX_PRODUCER_ID - PRODUCER_IDS_PER_BLOCK:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "Exhausted all producer ids")
    draft = Draft(image)
    draft.put_next_producer_id(first + PRODUCER_IDS_PER_BLOCK)
    return draft.decide(ProducerIdBlock(ProducerId(first), PRODUCER_IDS_PER_BLOCK))


def alter_partitions(image: ClusterImage, event: AlterPartitions) -> Decision[tuple[IsrOutcome, ...]]:
    """The leaders of partitions ask for other in-sync replicas."""
    broker = image.brokers.get(event.broker_id)
    if broker is None or broker.epoch != event.broker_epoch:
        raise Refused(
            ErrorCode.STALE_BROKER_EPOCH, f"Broker {event.broker_id} is not up in epoch {event.broker_epoch}."
        )
    draft = Draft(image)
    replies: list[IsrOutcome] = []
    for change in event.changes:
        try:
            topic, partition = _changed_partition(image, draft, event.broker_id, change)
            changed = partition._replace(isr=change.new_isr, partition_epoch=partition.partition_epoch + 1)
            draft.put_topic(_with_partition(topic, change.partition, changed))
            replies.append(IsrOutcome(change, DONE, changed))
        except Refused as refused:
            replies.append(IsrOutcome(change, Outcome.of(refused)))
    return draft.decide(tuple(replies))


def _changed_partition(
    image: ClusterImage, draft: Draft, leader: BrokerId, change: IsrChange
) -> tuple[TopicImage, PartitionImage]:
    name = image.topic_names.get(change.topic_id)
    topic = None if name is None else draft.topic(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    if not 0 <= change.partition < len(topic.partitions):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    partition = topic.partitions[change.partition]
    if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.partition_epoch:
        raise Refused(ErrorCode.NOT_CONTROLLER, "The broker knows more than this controller.")
    if change.leader_epoch < partition.leader_epoch:
        raise Refused(ErrorCode.FENCED_LEADER_EPOCH, "The leader epoch is over.")
    if leader != partition.leader:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker {leader} does not lead the partition.")
    if change.partition_epoch < partition.partition_epoch:
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, "The partition was changed meanwhile.")
    _check_isr(image, partition, leader, change.new_isr)
    return topic, partition


def _check_isr(image: ClusterImage, partition: PartitionImage, leader: BrokerId, isr: Sequence[BrokerId]) -> None:
    if leader not in isr or len(set(isr)) < len(isr) or not set(isr) <= set(partition.replicas):
        raise Refused(
            ErrorCode.INVALID_REQUEST, "The in-sync replicas must be replicas, distinct, and have the leader."
        )
    if down := [replica for replica in isr if replica not in image.brokers]:
        raise Refused(ErrorCode.INELIGIBLE_REPLICA, f"Not up, so not in sync: {', '.join(map(str, down))}.")


def _with_partition(topic: TopicImage, number: int, partition: PartitionImage) -> TopicImage:
    partitions = (*topic.partitions[:number], partition, *topic.partitions[number + 1 :])
    return replace(topic, partitions=partitions)
