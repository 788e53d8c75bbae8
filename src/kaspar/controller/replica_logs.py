"""Decisions about brokers' reports on their logs: the directory of each log, and logs that are lost or removed."""

import uuid
from collections.abc import Callable, Iterable

from kaspar.base.ids import ZERO_UUID, BrokerId, LeaderEpoch
from kaspar.controller.decision import Decision, Draft, PartitionEdits
from kaspar.controller.elections import Electorate, Rules, remaining_in_sync, settled
from kaspar.controller.events import AssignDirectories, LogsLost, LogsRemoved
from kaspar.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage


def logs_removed(image: ClusterImage, event: LogsRemoved) -> Decision[None]:
    draft = Draft(image)
    for topic_id in dict.fromkeys(event.topic_ids):
        deleted = image.deleted_topics.get(topic_id)
        if deleted is not None and event.broker_id in deleted.brokers:
            draft.logs_removed(deleted, event.broker_id)
    return draft.decide(None)


def assign_directories(image: ClusterImage, event: AssignDirectories, rules: Rules) -> Decision[None]:
    """Store the directories of logs. Leaders, in-sync replicas and epochs change only if a directory has failed."""
    draft = Draft(image)
    places = {(topic_id, number): directory for topic_id, number, directory in event.directories}
    electorate = Electorate.of(image)
    broker = image.brokers.get(event.broker_id)
    usable = broker.log_dirs if broker is not None else ()
    failed = [place for place, directory in places.items() if usable and directory not in usable]
    known = [place for place, directory in places.items() if not usable or directory in usable]

    def placed(partition: PartitionImage, topic: TopicImage, number: int) -> PartitionImage:
        return partition.with_directory(event.broker_id, places[topic.topic_id, number])

    def given_up(partition: PartitionImage, topic: TopicImage, number: int) -> PartitionImage:
        there, of_topic = placed(partition, topic, number), rules.of_topic(topic)
        wanted = there._replace(isr=remaining_in_sync(there, of_topic, electorate))
        return settled(there, wanted, of_topic, electorate)

    _change_partitions(draft, image, event.broker_id, known, placed, only_places=True)
    if failed:
        _change_partitions(draft, draft.image(), event.broker_id, failed, given_up)
    return draft.decide(None)


def logs_lost(image: ClusterImage, event: LogsLost, rules: Rules) -> Decision[tuple[tuple[uuid.UUID, int], ...]]:
    """Remove the broker from the in-sync and the eligible replicas of its lost logs. The leader epoch increases, so
    that readers notice that offsets may be reused for other records.

    The last replica that had all committed records is not given up unless the topic allows an unclean election: its log
    may be restored. The broker has checked that, too (broker/log_places.py), but since then another replica may have
    fallen behind, or have left the partition.
    """
    draft = Draft(image)
    electorate = Electorate(image.brokers, image.shutting_down, logless=frozenset({event.broker_id}))
    given_up: list[tuple[uuid.UUID, int]] = []

    def without_log(partition: PartitionImage, topic: TopicImage, number: int) -> PartitionImage:
        of_topic = rules.of_topic(topic)
        had_all = {*partition.isr, *partition.elr} or {*partition.last_known_elr}
        if event.broker_id in had_all and len(had_all) == 1 and not of_topic.allows_unclean:
            return partition
        given_up.append((topic.topic_id, number))
        unplaced = partition.with_directory(event.broker_id, ZERO_UUID)
        if event.broker_id not in had_all:
            return unplaced
        if partition.replicas == (event.broker_id,):
            changed = _led_again(unplaced, event.broker_id, image)
        else:
            isr = remaining_in_sync(unplaced, of_topic, electorate)
            changed = settled(unplaced, unplaced._replace(isr=isr), of_topic, electorate)
        return changed._replace(
            leader_epoch=LeaderEpoch(partition.leader_epoch + 1), partition_epoch=partition.partition_epoch + 1
        )

    _change_partitions(draft, image, event.broker_id, event.partitions, without_log)
    return draft.decide(tuple(given_up))


def _led_again(partition: PartitionImage, broker_id: BrokerId, image: ClusterImage) -> PartitionImage:
    leader = broker_id if broker_id in image.brokers else NO_LEADER
    return partition._replace(isr=(broker_id,), leader=leader, elr=(), last_known_elr=())


def _change_partitions(
    draft: Draft,
    image: ClusterImage,
    broker_id: BrokerId,
    places: Iterable[tuple[uuid.UUID, int]],
    change: Callable[[PartitionImage, TopicImage, int], PartitionImage],
    *,
    only_places: bool = False,
) -> None:
    """Change those of the partitions that still exist and of which the broker has a replica."""
    edits = PartitionEdits(draft)
    for topic_id, number in places:
        topic = image.topic_by_id(topic_id)
        if topic is None or not 0 <= number < len(topic.partitions):
            continue
        partition = edits.partition(topic, number)
        if broker_id in partition.replicas:
            edits.put(topic, number, change(partition, topic, number))
    edits.store(only_places=only_places)
