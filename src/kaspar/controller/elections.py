"""Who leads a partition, and which replicas are in sync or eligible: the rules of KIP-966 (PartitionChangeBuilder).

Every change of a partition ends in `settled`: it completes a reassignment that is due, maintains the eligible leader
replicas, elects a leader and advances the epochs. So all events follow the same rules:

- The leader is one of the in-sync replicas: the current leader if possible, else the first in the order of replicas.
  If there is none, it is an eligible leader replica; then the last known leader; then, if that is allowed, any replica
  that is up, although records may be lost (unclean).
- A replica that crashed since the controller last saw it may lack the end of its log. It is elected after all others,
  and leaves the in-sync and eligible replicas, unless it is the last: then it leads in a new epoch.
- A replica that leaves the in-sync replicas while there are fewer than min.insync.replicas stays eligible: nothing is
  committed until there are enough again, so it lacks no committed record. Then the eligible replicas are cleared.
- Without the feature (`eligible.leader.replicas.version` 0) the last in-sync replicas stay in sync even while they are
  down.
- The leader epoch increases with every new leader, and when replicas leave the partition. The partition epoch increases
  with every change.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from enum import Enum

from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.config import BrokerConfig, LogConfig
from kaspar.metadata.image import NO_LEADER, BrokerRegistration, ClusterImage, PartitionImage, TopicImage

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"
_NONE: frozenset[BrokerId] = frozenset()


class Election(Enum):
    IN_SYNC = "a leader that lacks no committed record, or any if the topic allows that"
    PREFERRED = "the first replica if it may lead, else as before"
    UNCLEAN = "any replica, if no other is left"


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The settings of a topic that affect elections. `tracks_elr`: eligible leader replicas are on in the cluster."""

    min_insync_replicas: int
    allows_unclean: bool
    tracks_elr: bool

    def has_enough(self, partition: PartitionImage) -> bool:
        """Whether the leader can commit records (KIP-966): a partition with fewer replicas than min.insync.replicas
        needs all of them. Leaders apply the same rule (replication/partition.py).
        """
        return len(partition.isr) >= min(self.min_insync_replicas, len(partition.replicas))


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for all topics: a topic's own settings, or else those of the controller's broker."""

    config: BrokerConfig
    tracks_elr: bool

    @classmethod
    def of(cls, config: BrokerConfig, image: ClusterImage) -> "Rules":
        return cls(config, image.has_elr)

    def of_topic(self, topic: TopicImage) -> TopicRules:
        configs = topic.configs
        min_isr = configs.get(MIN_INSYNC_REPLICAS)
        unclean = configs.get(UNCLEAN_LEADER_ELECTION)
        return TopicRules(
            self.config.min_insync_replicas if min_isr is None else int(min_isr),
            self.config.unclean_leader_election_enable if unclean is None else _is_true(unclean),
            self.tracks_elr,
        )


def _is_true(value: str) -> bool:
    return bool(LogConfig.declared[UNCLEAN_LEADER_ELECTION].parse(value))


@dataclass(frozen=True, slots=True)
class Electorate:
    """The brokers that are up, and the reasons against electing some of them: they are `shutting_down`, `crashed` since
    they were last seen, or have lost the log in question (`logless`).
    """

    brokers: Mapping[BrokerId, BrokerRegistration]
    shutting_down: Set[BrokerId] = _NONE
    crashed: Set[BrokerId] = _NONE
    logless: Set[BrokerId] = _NONE

    @classmethod
    def of(cls, image: ClusterImage) -> "Electorate":
        return cls(image.brokers, image.shutting_down)

    def can_lead(self, partition: PartitionImage, broker_id: BrokerId) -> bool:
        """Whether the broker is up, is not shutting down, and can use the directory that has the log."""
        return broker_id not in self.shutting_down and self.can_serve(partition, broker_id)

    def can_serve(self, partition: PartitionImage, broker_id: BrokerId) -> bool:
        """Whether the broker is up, and can use the directory that has the log (KIP-858)."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            return False
        if not broker.log_dirs or not partition.directories:
            return True
        directory = partition.directory_of(broker_id)
        return directory is None or directory in broker.log_dirs

    def lacks_leader(self, partition: PartitionImage) -> bool:
        """Whether there is no leader, or the leader is up but cannot use the directory that has its log."""
        leader = partition.leader
        return leader == NO_LEADER or (leader in self.brokers and not self.can_serve(partition, leader))

    def is_sound(self, partition: PartitionImage, broker_id: BrokerId) -> bool:
        """Whether the broker can lead, and has not lost any records."""
        has_all = broker_id not in self.crashed and broker_id not in self.logless
        return has_all and self.can_lead(partition, broker_id)


def remaining_in_sync(partition: PartitionImage, rules: TopicRules, electorate: Electorate) -> tuple[BrokerId, ...]:
    """The in-sync replicas that are sound. If there are none, those that must stay in sync nevertheless."""
    isr = tuple(replica for replica in partition.isr if electorate.is_sound(partition, replica))
    if isr or not partition.isr:
        return isr
    if rules.tracks_elr and any(electorate.is_sound(partition, replica) for replica in partition.elr):
        return ()  # an eligible replica is elected
    intact = _without(partition.isr, electorate.crashed | electorate.logless)
    if partition.leader in intact and partition.leader in electorate.brokers:
        # The leader is shutting down, or its log directory is missing. No other replica can take over, so it leads as
        # long as it is up. Without the directory it cannot serve requests, and another replica is elected if an unclean
        # election is allowed (`_with_leader`).
        return (partition.leader,)
    if rules.tracks_elr:
        return ()
    if intact:
        # All are down. No record was committed without any of them, so each of them can lead when it is back.
        return intact
    crashed = _without(partition.isr, electorate.logless)
    return (partition.leader,) if partition.leader in crashed else crashed[:1]


def settled(
    old: PartitionImage,
    wanted: PartitionImage,
    rules: TopicRules,
    electorate: Electorate,
    election: Election = Election.IN_SYNC,
) -> PartitionImage:
    """The partition with the replicas and in-sync replicas of `wanted`, a leader, and the epochs of `old` increased as
    needed. `old` itself if nothing changes.
    """
    wanted = _reassigned(wanted)
    wanted = _with_eligible(old, wanted, rules, electorate)
    wanted = _with_leader(old, wanted, rules, electorate, election)
    is_new_term = wanted.leader != old.leader or (
        # The leader may have lost the end of its log, and must not reuse the lost offsets in the same epoch.
        wanted.leader != NO_LEADER and (wanted.leader in electorate.crashed or wanted.leader in electorate.logless)
    )
    if is_new_term or (wanted.replicas != old.replicas and not set(old.replicas) <= set(wanted.replicas)):
        wanted = wanted._replace(leader_epoch=LeaderEpoch(old.leader_epoch + 1))
    if wanted == old:
        return old
    return wanted._replace(partition_epoch=old.partition_epoch + 1)


def _reassigned(partition: PartitionImage) -> PartitionImage:
    """Complete a reassignment if all its target replicas are in sync (PartitionReassignmentReplicas)."""
    if not partition.is_reassigning:
        return partition
    target = partition.target_replicas
    if not target or not set(target) <= set(partition.isr):
        return partition
    done = partition.with_replicas(target)
    return done._replace(isr=_only(partition.isr, target), adding_replicas=(), removing_replicas=())


def _with_eligible(
    old: PartitionImage, wanted: PartitionImage, rules: TopicRules, electorate: Electorate
) -> PartitionImage:
    if not rules.tracks_elr:
        if not wanted.elr and not wanted.last_known_elr:
            return wanted
        # The eligible replicas remain from when the feature was on. Nothing is committed without a leader, so they are
        # in sync.
        isr = wanted.isr or _only(wanted.elr, wanted.replicas)
        return wanted._replace(isr=isr, elr=(), last_known_elr=())
    if rules.has_enough(wanted):
        return wanted._replace(elr=(), last_known_elr=())
    unsound = electorate.crashed | electorate.logless
    members = {*old.isr, *old.elr}.difference(wanted.isr, unsound)
    elr = _only(wanted.replicas, members)
    last_leader = (old.leader,) if old.leader != NO_LEADER else old.last_known_elr
    if not last_leader and not wanted.isr and not elr:
        last_leader = _only(wanted.replicas, {*old.isr, *old.elr})[:1]
    last_leader = _only(_without(last_leader, electorate.logless), wanted.replicas)
    return wanted._replace(elr=elr, last_known_elr=last_leader)


def _with_leader(
    old: PartitionImage, wanted: PartitionImage, rules: TopicRules, electorate: Electorate, election: Election
) -> PartitionImage:
    leader = _clean_leader(old, wanted, electorate, election)
    allows_unclean = election is Election.UNCLEAN or (election is Election.IN_SYNC and rules.allows_unclean)
    if allows_unclean and leader in wanted.isr and not electorate.can_serve(wanted, leader):
        other = _unclean_leader(wanted, electorate)
        if other != NO_LEADER:
            return wanted._replace(leader=other, isr=(other,), elr=(), last_known_elr=())
    if leader in wanted.isr:
        is_as_wanted = leader == wanted.leader and not wanted.last_known_elr
        return wanted if is_as_wanted else wanted._replace(leader=leader, last_known_elr=())
    if leader != NO_LEADER:
        elected = wanted._replace(leader=leader, isr=(leader,), elr=_without(wanted.elr, {leader}), last_known_elr=())
        return elected._replace(elr=()) if rules.has_enough(elected) else elected
    if allows_unclean:
        leader = _unclean_leader(wanted, electorate)
    if leader != NO_LEADER:
        return wanted._replace(leader=leader, isr=(leader,), elr=(), last_known_elr=())
    last_known = wanted.last_known_elr if not wanted.isr else ()
    return wanted._replace(leader=NO_LEADER, last_known_elr=last_known)


def _clean_leader(old: PartitionImage, wanted: PartitionImage, electorate: Electorate, election: Election) -> BrokerId:
    pool = wanted.isr or wanted.elr
    first = wanted.replicas[:1] if election is Election.PREFERRED else ()
    for replica in (*first, old.leader, *wanted.replicas):
        if replica in pool and electorate.is_sound(wanted, replica):
            return replica
    if old.leader in wanted.isr and old.leader in electorate.brokers:
        return old.leader
    # The remaining candidates have crashed: the last in-sync replica, or the last known leader.
    last = _without(wanted.isr if pool else wanted.last_known_elr, electorate.logless)
    return next((replica for replica in last if electorate.can_lead(wanted, replica)), NO_LEADER)


def _unclean_leader(partition: PartitionImage, electorate: Electorate) -> BrokerId:
    up = [replica for replica in partition.replicas if electorate.can_lead(partition, replica)]
    return next(iter(_without(up, electorate.logless)), up[0] if up else NO_LEADER)


def _only(replicas: Iterable[BrokerId], those: Iterable[BrokerId]) -> tuple[BrokerId, ...]:
    kept = set(those)
    return tuple(replica for replica in replicas if replica in kept)


def _without(replicas: Iterable[BrokerId], those: Set[BrokerId]) -> tuple[BrokerId, ...]:
    return tuple(replica for replica in replicas if replica not in those)
