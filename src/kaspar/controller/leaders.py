"""Elections on request (KIP-460), and moving leadership back to the preferred replicas."""

from kaspar.base.errors import ErrorCode, Refused
from kaspar.controller.decision import Decision, Draft, PartitionEdits
from kaspar.controller.elections import Election, Electorate, Rules, remaining_in_sync, settled
from kaspar.controller.events import (
    DONE,
    ElectionType,
    ElectLeaders,
    Outcome,
    PartitionOutcome,
    RebalanceLeaders,
)
from kaspar.metadata.image import NO_LEADER, ClusterImage, PartitionImage

MAX_ELECTIONS_PER_REBALANCE = 1000
"""Kafka's controller has the same limit. Each election makes clients look up the leader again."""

_NOT_NEEDED = Outcome(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
_NOT_AVAILABLE = {
    ElectionType.PREFERRED: Outcome(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    ),
    ElectionType.UNCLEAN: Outcome(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
    ),
}


def elect_leaders(image: ClusterImage, event: ElectLeaders, rules: Rules) -> Decision[tuple[PartitionOutcome, ...]]:
    if event.election_type not in list(ElectionType):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown election type {event.election_type}")
    kind = ElectionType(event.election_type)
    draft = Draft(image)
    elections = _Elections(image, rules, PartitionEdits(draft))
    asked = event.partitions if event.partitions is not None else _all_partitions(image)
    outcomes = [PartitionOutcome(name, number, elections.hold(name, number, kind)) for name, number in asked]
    elections.edits.store()
    if event.partitions is None:
        outcomes = [each for each in outcomes if each.outcome != _NOT_NEEDED]
    return draft.decide(tuple(outcomes))


def rebalance_leaders(image: ClusterImage, event: RebalanceLeaders, rules: Rules) -> Decision[bool]:
    """Move leadership back to the preferred replicas, on all brokers and without a tolerated percentage of imbalance,
    as in Kafka's controller without ZooKeeper.
    """
    draft = Draft(image)
    elections = _Elections(image, rules, PartitionEdits(draft))
    held = 0
    for topic in image.topics.values():
        for number, partition in enumerate(topic.partitions):
            preferred = partition.replicas[0]
            if partition.leader in (preferred, NO_LEADER) or preferred not in partition.isr:
                continue
            if held == MAX_ELECTIONS_PER_REBALANCE:
                elections.edits.store()
                return draft.decide(True)
            held += elections.hold(topic.name, number, ElectionType.PREFERRED) == DONE
    elections.edits.store()
    return draft.decide(False)


class _Elections:
    def __init__(self, image: ClusterImage, rules: Rules, edits: PartitionEdits) -> None:
        self.edits = edits
        self._image = image
        self._rules = rules
        self._electorate = Electorate.of(image)

    def hold(self, name: str, number: int, kind: ElectionType) -> Outcome:
        topic = self._image.topics.get(name)
        if topic is None:
            return Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
        if not 0 <= number < len(topic.partitions):
            return Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}")
        partition = self.edits.partition(topic, number)
        if not self._needs_election(partition, kind):
            return _NOT_NEEDED
        election, wanted, rules = Election.PREFERRED, partition, self._rules.of_topic(topic)
        if kind is ElectionType.UNCLEAN:
            election = Election.UNCLEAN
            wanted = partition._replace(isr=remaining_in_sync(partition, rules, self._electorate))
        elected = settled(partition, wanted, rules, self._electorate, election)
        if elected.leader in (partition.leader, NO_LEADER):
            return _NOT_AVAILABLE[kind]
        self.edits.put(topic, number, elected)
        return DONE

    def _needs_election(self, partition: PartitionImage, kind: ElectionType) -> bool:
        if kind is ElectionType.PREFERRED:
            return partition.leader != partition.replicas[0]
        return self._electorate.lacks_leader(partition)


def _all_partitions(image: ClusterImage) -> list[tuple[str, int]]:
    return [(topic.name, number) for topic in image.topics.values() for number in range(len(topic.partitions))]
