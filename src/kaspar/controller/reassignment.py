"""Reassignments: moving a partition to other replicas, step by step (KIP-455, KIP-860).

- Start: the target replicas are added, and those to be removed stay for now. `adding_replicas` and `removing_replicas`
  contain them.
- Completion: once all target replicas are in sync, the others leave. That happens wherever the in-sync replicas change
  (elections.py), or at once if nothing has to be copied.
- Change of the target: added replicas that are not in the new target leave at once. A later cancellation still restores
  the replicas from before the first reassignment.
- Cancellation: the added replicas leave at once.

A broker that is no longer a replica of a partition in the image removes its log (`ClusterImage.has_left`). The checks
and their messages are those of Kafka's ReplicationControlManager.
"""

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId
from kaspar.controller.assignments import check_replicas
from kaspar.controller.decision import Decision, Draft, PartitionEdits
from kaspar.controller.elections import Electorate, Rules, TopicRules, settled
from kaspar.controller.events import DONE, AlterReassignments, Outcome, PartitionOutcome, Reassignment
from kaspar.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage


def alter_reassignments(
    image: ClusterImage, event: AlterReassignments, rules: Rules
) -> Decision[tuple[PartitionOutcome, ...]]:
    draft = Draft(image)
    edits, electorate = PartitionEdits(draft), Electorate.of(image)
    outcomes = []
    for asked in event.reassignments:
        try:
            topic = _topic(image, asked)
            partition, of_topic = edits.partition(topic, asked.partition), rules.of_topic(topic)
            if asked.replicas is None:
                changed = _cancelled(asked, partition, of_topic, electorate)
            else:
                replicas = check_replicas(image, asked.replicas, None)
                if not event.allow_replication_factor_change:
                    _check_factor(partition, replicas)
                changed = _reassigned(asked, partition, replicas, of_topic, electorate)
            edits.put(topic, asked.partition, changed)
            outcome = DONE
        except Refused as refused:
            # Kafka sends no message with this error.
            nothing_to_cancel = refused.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            outcome = Outcome(refused.code) if nothing_to_cancel else Outcome.of(refused)
        outcomes.append(PartitionOutcome(asked.topic, asked.partition, outcome))
    edits.store()
    return draft.decide(tuple(outcomes))


def _topic(image: ClusterImage, asked: Reassignment) -> TopicImage:
    topic = image.topics.get(asked.topic)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {asked.topic}.")
    if not 0 <= asked.partition < len(topic.partitions):
        raise Refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {asked.topic}:{asked.partition}."
        )
    return topic


def _check_factor(partition: PartitionImage, replicas: tuple[BrokerId, ...]) -> None:
    current = len(partition.target_replicas)
    if current != len(replicas):
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"The replication factor is changed from {current} to {len(replicas)}"
        )


def _reassigned(
    asked: Reassignment,
    partition: PartitionImage,
    target: tuple[BrokerId, ...],
    rules: TopicRules,
    electorate: Electorate,
) -> PartitionImage:
    original = _original_replicas(partition)
    removing = tuple(replica for replica in original if replica not in target)
    replicas = target + removing
    wanted = partition.with_replicas(replicas)._replace(
        isr=tuple(replica for replica in partition.isr if replica in replicas),
        adding_replicas=tuple(replica for replica in target if replica not in original),
        removing_replicas=removing,
    )
    if not _has_all_records(partition, wanted):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to change the reassignment of {asked.topic}:{asked.partition} because it would require an unclean "
            "leader election: only replicas that it was adding are in sync.",
        )
    return settled(partition, wanted, rules, electorate)


def _cancelled(
    asked: Reassignment, partition: PartitionImage, rules: TopicRules, electorate: Electorate
) -> PartitionImage:
    if not partition.is_reassigning:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    original = _original_replicas(partition)
    wanted = partition.with_replicas(original)._replace(
        isr=tuple(replica for replica in partition.isr if replica in original),
        adding_replicas=(),
        removing_replicas=(),
    )
    reverted = settled(partition, wanted, rules, electorate)
    if not _has_all_records(partition, wanted) and (not rules.allows_unclean or reverted.leader == NO_LEADER):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {asked.topic}:{asked.partition} because it would require an "
            "unclean leader election.",
        )
    return reverted


def _original_replicas(partition: PartitionImage) -> tuple[BrokerId, ...]:
    return tuple(replica for replica in partition.replicas if replica not in partition.adding_replicas)


def _has_all_records(partition: PartitionImage, wanted: PartitionImage) -> bool:
    """Whether a replica with all committed records remains, if there was one before."""
    before = {*partition.isr, *partition.elr}
    return not before or not before.isdisjoint(wanted.replicas)
