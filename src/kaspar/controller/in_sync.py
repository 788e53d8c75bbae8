"""Decisions about changes of the in-sync replicas, which partition leaders request (AlterPartition, KIP-497).

The checks and their order are those of Kafka's ReplicationControlManager. A replica may join only if it is up, not
shutting down, and still has the broker epoch with which the leader saw it catch up (KIP-903): a broker that was
restarted since may have lost records. A replica whose log is in a failed directory may not join either.
"""

from collections.abc import Iterable, Iterator

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.controller.brokers import check_broker_epoch
from kaspar.controller.decision import Decision, Draft, PartitionEdits
from kaspar.controller.elections import Electorate, Rules, settled
from kaspar.controller.events import DONE, AlterPartitions, IsrChange, IsrOutcome, Outcome
from kaspar.metadata.image import ClusterImage, PartitionImage, TopicImage


def alter_partitions(image: ClusterImage, event: AlterPartitions, rules: Rules) -> Decision[tuple[IsrOutcome, ...]]:
    check_broker_epoch(image, event.broker_id, event.broker_epoch)
    draft = Draft(image)
    edits, electorate = PartitionEdits(draft), Electorate.of(image)
    replies: list[IsrOutcome] = []
    for change in event.changes:
        try:
            topic = _topic(image, change)
            partition = edits.partition(topic, change.partition)
            _check(image, partition, event.broker_id, change)
        except Refused as refused:
            replies.append(IsrOutcome(change, Outcome.of(refused)))
            continue
        changed = settled(partition, partition._replace(isr=change.new_isr), rules.of_topic(topic), electorate)
        edits.put(topic, change.partition, changed)
        replies.append(IsrOutcome(change, _outcome(changed, event.broker_id), changed))
    edits.store()
    return draft.decide(tuple(replies))


def _outcome(changed: PartitionImage, leader: BrokerId) -> Outcome:
    if changed.leader == leader:
        return DONE
    return Outcome(
        ErrorCode.NEW_LEADER_ELECTED, f"The change was applied, and broker {changed.leader} is now the leader."
    )


def _topic(image: ClusterImage, change: IsrChange) -> TopicImage:
    topic = image.topic_by_id(change.topic_id)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    if not 0 <= change.partition < len(topic.partitions):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return topic


def _check(image: ClusterImage, partition: PartitionImage, leader: BrokerId, change: IsrChange) -> None:
    if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.partition_epoch:
        raise Refused(ErrorCode.NOT_CONTROLLER, "The broker has newer metadata than this controller.")
    if change.leader_epoch < partition.leader_epoch:
        raise Refused(ErrorCode.FENCED_LEADER_EPOCH, "The leader epoch is stale.")
    if leader != partition.leader:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker {leader} is not the leader of the partition.")
    if change.partition_epoch < partition.partition_epoch:
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, "The partition has changed in the meantime.")
    isr = change.new_isr
    if leader not in isr or len(set(isr)) < len(isr) or not set(isr) <= set(partition.replicas):
        raise Refused(
            ErrorCode.INVALID_REQUEST, "The in-sync replicas must be distinct replicas and include the leader."
        )
    if change.new_isr_epochs and len(change.new_isr_epochs) != len(isr):
        raise Refused(ErrorCode.INVALID_REQUEST, "Each of the in-sync replicas must have a broker epoch.")
    if ineligible := list(_ineligible(image, partition, leader, change)):
        raise Refused(ErrorCode.INELIGIBLE_REPLICA, f"Not eligible to be in sync: {', '.join(ineligible)}.")


def _ineligible(image: ClusterImage, partition: PartitionImage, leader: BrokerId, change: IsrChange) -> Iterator[str]:
    electorate = Electorate.of(image)
    epochs = change.new_isr_epochs or (-1,) * len(change.new_isr)
    for broker_id, epoch in zip(change.new_isr, epochs, strict=True):
        broker = image.brokers.get(broker_id)
        if broker is None:
            yield f"{broker_id} (fenced)"
        elif broker_id in image.shutting_down and broker_id != leader:
            # A leader that is shutting down continues while no other replica can take over.
            yield f"{broker_id} (shutting down)"
        elif epoch not in (-1, broker.epoch):
            yield f"{broker_id} (broker epoch mismatch: requested={epoch} VS expected={broker.epoch})"
        elif broker_id != leader and not electorate.can_lead(partition, broker_id):
            yield f"{broker_id} (log directory offline)"


def forget_eligible(draft: Draft, topics: Iterable[TopicImage], *, for_good: bool = False) -> None:
    """Clear the eligible leader replicas, because min.insync.replicas is about to change and leaders may commit records
    that these replicas lack (Kafka's ClearElrRecord), or, `for_good`, because they are no longer tracked.

    Where no replica is in sync, the eligible ones are the only candidates. Nothing is committed without a leader, so
    there they stay eligible, or with `for_good` become in-sync replicas.
    """
    for topic in topics:
        partitions = tuple(_without_eligible(partition, for_good=for_good) for partition in topic.partitions)
        if partitions != topic.partitions:
            draft.put_partitions(topic, partitions)


def _without_eligible(partition: PartitionImage, *, for_good: bool) -> PartitionImage:
    has_any = partition.elr or partition.last_known_elr
    if not has_any or (not partition.isr and not for_good):
        return partition
    return partition._replace(
        isr=partition.isr or partition.elr,
        elr=(),
        last_known_elr=(),
        partition_epoch=partition.partition_epoch + 1,
    )
