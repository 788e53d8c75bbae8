"""The pure controller of several brokers under random events: brokers come and go, cleanly or not, leaders change the
in-sync replicas, operators reassign, elect, reconfigure, create and delete.

Beside the image the test keeps a model of what the brokers have: the log of every replica, and the committed records of
every partition, which a leader commits by the rules of replication (all in-sync replicas have it, and these are at
least min.insync.replicas). Whatever happens:

- a leader is a replica that is up and in sync; in-sync and eligible replicas are replicas, and no broker is both;
- the leader epoch grows with every other leader, the partition epoch with every change;
- a leader has every committed record, unless an unclean election was allowed or asked for, or all replicas that had
  them crashed or lost their logs;
- the steps of every decision, applied to a store, load as the very image, also if the controller ends half-way.
"""

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import BrokerId, TopicPartition
from kaspar.config import BrokerSettings
from kaspar.controller import decision as decisions
from kaspar.controller.controller import Controller
from kaspar.controller.elections import Rules, TopicRules
from kaspar.controller.events import (
    AlterConfigs,
    AlterPartitions,
    AlterReassignments,
    AssignDirectories,
    BrokersSeen,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ControlledShutdown,
    ControllerEvent,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    ElectionType,
    ElectLeaders,
    FeatureUpdate,
    FenceBrokers,
    IsrChange,
    LogsLost,
    LogsRemoved,
    MorePartitions,
    NewTopic,
    Reassignment,
    RebalanceLeaders,
    ResourceType,
    TopicReference,
    UnregisterBroker,
    UpdateFeatures,
)
from kaspar.controller.features import UpgradeType
from kaspar.metadata.image import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    NO_LEADER,
    BrokerRegistration,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from kaspar.metadata.layout import broker_nodes, store_paths, topic_nodes
from kaspar.metadata.loading import load_brokers, load_image, prepare_store
from kaspar.metadata.store import Create
from tests.property.memory_store import MemoryStore, completed

BROKERS = [BrokerId(number) for number in range(1, 6)]
NAMES = ["a", "b"]
brokers = st.sampled_from(BROKERS)
names = st.sampled_from(NAMES)
replica_lists = st.lists(brokers, min_size=1, max_size=4, unique=True).map(tuple)
seeds = st.integers(0, 2**32)


@dataclass
class Replicated:
    """What the replicas of a partition have: by broker the log, a list of records that are all different."""

    logs: dict[BrokerId, list[int]] = field(default_factory=dict)
    committed: list[int] = field(default_factory=list)


class Cluster(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        # A topic of a few partitions has several nodes, and a decision several transactions.
        self.patches = [
            mock.patch.object(topic_nodes, "PARTITIONS_PER_NODE", 2),
            mock.patch.object(decisions, "_MAX_STEP_BYTES", 700),
        ]
        for patch in self.patches:
            patch.start()
        self.rng = random.Random(0)
        self.store = MemoryStore()
        completed(prepare_store(self.store, "cluster"))
        self.controller = Controller(BrokerSettings.of({"node.id": "1", "num.partitions": "2"}), rng=self.rng)
        self.image = completed(load_image(self.store))
        self.data: dict[tuple[uuid.UUID, int], Replicated] = {}
        self.incarnations: dict[BrokerId, int] = {}
        self.last_crashes: dict[BrokerId, int] = {}
        self.next_record = 0
        self._up: tuple[frozenset[tuple[str, int]], dict[BrokerId, BrokerRegistration]] = (frozenset(), {})
        self.asked_unclean: set[TopicPartition] = set()
        self.joining: dict[tuple[uuid.UUID, int], set[BrokerId]] = {}

    def teardown(self) -> None:
        for patch in self.patches:
            patch.stop()

    # -- the world ---------------------------------------------------------------------------------------------------

    @initialize(seed=seeds, tracks_elr=st.booleans())
    def start(self, seed: int, tracks_elr: bool) -> None:
        self.rng.seed(seed)
        for broker_id in BROKERS[:4]:
            self.register(broker_id, clean=False)
        self.look()
        self.set_elr(int(tracks_elr))
        if tracks_elr:
            self.setting_changes("", "min.insync.replicas", 2, ends_early=False)
        topics = tuple(NewTopic(name, 3, 3) for name in NAMES)
        self.submit(CreateTopics(topics))

    def up(self) -> dict[BrokerId, BrokerRegistration]:
        prefix = f"{store_paths.BROKER_IDS}/"
        nodes = frozenset((path, node.created) for path, node in self.store.nodes.items() if path.startswith(prefix))
        if nodes != self._up[0]:
            self._up = nodes, completed(load_brokers(self.store))
        return self._up[1]

    def register(self, broker_id: BrokerId, *, clean: bool) -> None:
        incarnation = self.incarnations[broker_id] = self.incarnations.get(broker_id, 0) + 1
        if not clean:
            self.last_crashes[broker_id] = incarnation
        last_crash = self.last_crashes.get(broker_id, 0)
        registration = BrokerRegistration(broker_id, -1, (), clean_start=clean, last_crash=last_crash)
        path = broker_nodes.broker_path(broker_id, incarnation)
        self.store.apply([Create(path, broker_nodes.encode_registration(registration), ephemeral=True)])
        if not clean:
            for replicated in self.data.values():
                if log := replicated.logs.get(broker_id):
                    del log[self.rng.randint(0, len(log)) :]

    def unregister(self, broker_id: BrokerId) -> None:
        self.store.nodes.pop(broker_nodes.broker_path(broker_id, self.incarnations[broker_id]))

    def leads(self, partition: PartitionImage) -> bool:
        """Whether the leader does lead: a broker waits until the image has its present registration."""
        known = self.image.brokers.get(partition.leader)
        return known is not None and known == self.up().get(partition.leader)

    def look(self) -> None:
        self.submit(BrokersSeen(self.up()))

    def submit(self, event: ControllerEvent[Any], *, ends_early: bool = False) -> Any:
        """Decide, store and check each step. With `ends_early` the controller ends after the first transaction, and
        another one loads what it left.
        """
        before, crashed = self.image, self.crashed(event)
        changes = event.changes if isinstance(event, AlterPartitions) else ()
        self.joining = {(change.topic_id, change.partition): set(change.new_isr) for change in changes}
        try:
            decided = self.controller.decide(self.image, event)
        except Refused as refused:
            return refused
        ends_early = ends_early and len(decided.steps) > 1
        for step in decided.steps[:1] if ends_early else decided.steps:
            self.store.apply(step.operations)
            self.image = step.image
            stored = completed(load_image(self.store))
            same = replace(stored, brokers=step.image.brokers, shutting_down=step.image.shutting_down)
            assert same == step.image, "the stored image is another"
        self.check_changes(before, crashed)
        if ends_early:
            self.image = completed(load_image(self.store))
            self.look()
        return decided.reply

    def crashed(self, event: ControllerEvent[Any]) -> set[BrokerId]:
        if isinstance(event, LogsLost):
            return {event.broker_id}
        if not isinstance(event, BrokersSeen):
            return set()
        known, seen = self.image.broker_epochs, self.image.broker_incarnations
        started = [one for each, one in event.brokers.items() if one.epoch != known.get(each)]
        missed = {one.broker_id for one in started if one.last_crash > seen.get(one.broker_id, 0)}
        return missed | {one.broker_id for one in started if not one.clean_start}

    # -- brokers -----------------------------------------------------------------------------------------------------

    @rule(broker_id=brokers, is_noticed=st.booleans(), ends_early=st.booleans())
    def broker_stops(self, broker_id: BrokerId, is_noticed: bool, ends_early: bool) -> None:
        if broker_id in self.up():
            self.unregister(broker_id)
        if is_noticed:
            self.submit(BrokersSeen(self.up()), ends_early=ends_early)

    @rule(broker_id=brokers, clean=st.booleans(), is_noticed=st.booleans())
    def broker_starts(self, broker_id: BrokerId, clean: bool, is_noticed: bool) -> None:
        """Or is started again before anybody noticed."""
        if broker_id in self.up():
            self.unregister(broker_id)
        self.register(broker_id, clean=clean)
        if is_noticed:
            self.look()

    @rule(ends_early=st.booleans())
    def brokers_are_looked_at(self, ends_early: bool) -> None:
        self.submit(BrokersSeen(self.up()), ends_early=ends_early)

    @rule(those=st.sets(brokers, min_size=1, max_size=2), stale=st.booleans(), ends_early=st.booleans())
    def brokers_are_fenced(self, those: set[BrokerId], stale: bool, ends_early: bool) -> None:
        known = {each: self.image.brokers[each] for each in those if each in self.image.brokers}
        # A registration that has gone by itself is noticed by a look, not fenced.
        known = {each: one for each, one in known.items() if self.up().get(each) == one}
        event = FenceBrokers(tuple((each, one.epoch - stale) for each, one in known.items()))
        self.submit(event, ends_early=ends_early)
        for broker_id in known:
            assert (broker_id in self.up()) == stale
            if not ends_early:
                assert (broker_id in self.image.brokers) == stale

    @rule(broker_id=brokers, stale=st.booleans())
    def broker_shuts_down(self, broker_id: BrokerId, stale: bool) -> None:
        registration = self.image.brokers.get(broker_id)
        if registration is None:
            return
        reply = self.submit(ControlledShutdown(broker_id, registration.epoch - stale))
        if stale:
            assert isinstance(reply, Refused)
            return
        assert broker_id in self.image.shutting_down
        for name, number in reply:
            partition = self.image.topics[name].partitions[number]
            assert partition.leader == broker_id
            assert not any(self.image.is_active(each) for each in partition.isr)

    @rule(broker_id=brokers)
    def broker_is_unregistered(self, broker_id: BrokerId) -> None:
        reply = self.submit(UnregisterBroker(broker_id))
        if not isinstance(reply, Refused):
            assert not self.image.is_registered(broker_id)
            assert all(broker_id not in deleted.brokers for deleted in self.image.deleted_topics.values())
            for (topic_id, number), replicated in self.data.items():
                if self.image.has_left(broker_id, topic_id, number):
                    replicated.logs.pop(broker_id, None)

    # -- topics, settings, features ----------------------------------------------------------------------------------

    @rule(name=names, partitions=st.integers(1, 5), factor=st.integers(1, 4))
    def topic_is_created(self, name: str, partitions: int, factor: int) -> None:
        self.submit(CreateTopics((NewTopic(name, partitions, factor),)))

    @rule(name=names)
    def topic_grows(self, name: str) -> None:
        if (topic := self.image.topics.get(name)) is not None and len(topic.partitions) < 7:
            self.submit(CreatePartitions((MorePartitions(name, len(topic.partitions) + 1),)))

    @rule(name=names)
    def topic_is_deleted(self, name: str) -> None:
        topic = self.image.topics.get(name)
        self.submit(DeleteTopics((TopicReference(name),)))
        if topic is not None:
            holders = {
                each for (topic_id, _), one in self.data.items() if topic_id == topic.topic_id for each in one.logs
            }
            assert holders <= set(self.image.deleted_topics[topic.topic_id].brokers)

    @rule(broker_id=brokers)
    def logs_are_removed(self, broker_id: BrokerId) -> None:
        """Those of deleted topics, and of partitions that the broker has left."""
        gone = set(self.image.deleted_topics)
        for (topic_id, number), replicated in self.data.items():
            if topic_id in gone or self.image.has_left(broker_id, topic_id, number):
                replicated.logs.pop(broker_id, None)
        self.submit(LogsRemoved(broker_id, tuple(gone)))

    @rule(
        name=st.sampled_from([*NAMES, ""]),
        setting=st.sampled_from(["min.insync.replicas", "unclean.leader.election.enable"]),
        value=st.sampled_from([1, 2, 3]),
        ends_early=st.booleans(),
    )
    def setting_changes(self, name: str, setting: str, value: int, ends_early: bool) -> None:
        resource = ConfigResource(ResourceType.TOPIC if name else ResourceType.BROKER, name)
        text = str(value) if setting == "min.insync.replicas" else str(value == 1).lower()
        change = ConfigChange(resource, (ConfigOperation.set(setting, text),))
        self.submit(AlterConfigs((change,)), ends_early=ends_early)

    @rule(level=st.sampled_from([0, 1, 1, 1]))
    def set_elr(self, level: int) -> None:
        way = UpgradeType.UPGRADE if level else UpgradeType.SAFE_DOWNGRADE
        self.submit(UpdateFeatures((FeatureUpdate(ELIGIBLE_LEADER_REPLICAS_VERSION, level, way),)))

    # -- partitions --------------------------------------------------------------------------------------------------

    @rule(name=names, wanted=st.none() | replica_lists, allow=st.booleans())
    def topic_is_reassigned(self, name: str, wanted: tuple[BrokerId, ...] | None, allow: bool) -> None:
        asked = tuple(Reassignment(name, number, wanted) for number in range(4))
        for reply in self.submit(AlterReassignments(asked, allow)):
            if reply.outcome.error == ErrorCode.NONE:
                partition = self.image.topics[name].partitions[reply.partition]
                assert partition.target_replicas == wanted or (wanted is None and not partition.is_reassigning)

    @rule(kind=st.sampled_from(ElectionType), asked=st.none() | st.tuples(names, st.integers(0, 4)))
    def leaders_are_elected(self, kind: ElectionType, asked: tuple[str, int] | None) -> None:
        if kind is ElectionType.UNCLEAN:
            everything = {TopicPartition(topic.name, number) for topic, number, _ in self.partitions(self.image)}
            self.asked_unclean = everything if asked is None else {TopicPartition(*asked)}
        self.submit(ElectLeaders(kind, None if asked is None else (asked,)))
        self.asked_unclean = set()

    @rule()
    def leaders_are_rebalanced(self) -> None:
        assert self.submit(RebalanceLeaders()) is False

    @rule(broker_id=brokers, seed=seeds, loses=st.booleans())
    def logs_are_found_or_lost(self, broker_id: BrokerId, seed: int, loses: bool) -> None:
        rng = random.Random(seed)
        some = [(topic, number) for topic, number, _ in self.partitions(self.image) if rng.random() < 0.4]
        if not loses:
            places = tuple((topic.topic_id, number, uuid.UUID(int=rng.getrandbits(128))) for topic, number in some)
            self.submit(AssignDirectories(broker_id, places))
            return
        some = [(topic, number) for topic, number in some if broker_id in topic.partitions[number].replicas]
        event = LogsLost(broker_id, tuple((topic.topic_id, number) for topic, number in some))
        given_up = set(self.controller.decide(self.image, event).reply)
        for topic, number in some:
            if (topic.topic_id, number) in given_up:  # otherwise the log is brought back
                self.replicated(topic, number).logs[broker_id] = []
        before = {(topic.topic_id, number): one for topic, number, one in self.partitions(self.image)}
        self.submit(event)
        for topic, number, after in self.partitions(self.image):
            if (topic.topic_id, number) not in given_up:
                assert after == before[topic.topic_id, number]
            elif not self.is_unclean(topic, number):
                assert after.leader != broker_id, "a replica without a log is elected"
                assert broker_id not in after.last_known_elr
                had_all = {*before[topic.topic_id, number].isr, *before[topic.topic_id, number].elr}
                assert not had_all or {*after.isr, *after.elr} & had_all - {broker_id}

    @precondition(lambda self: self.image.topics)
    @invariant()
    def records_are_replicated(self) -> None:
        """Leaders append, some followers fetch, and what all in-sync replicas have is committed."""
        rng = self.rng
        for topic, number, partition in self.partitions(self.image):
            if not self.leads(partition):
                continue
            replicated = self.replicated(topic, number)
            leader_log = replicated.logs.setdefault(partition.leader, [])
            if rng.random() < 0.7:
                leader_log.append(self.next_record)
                self.next_record += 1
            for follower in partition.replicas:
                if follower in self.up() and follower != partition.leader and rng.random() < 0.6:
                    replicated.logs[follower] = list(leader_log)
            self.commit(topic, partition, replicated)

    @rule(seed=seeds)
    def leaders_change_the_in_sync_replicas(self, seed: int) -> None:
        rng = random.Random(seed)
        for leader in list(self.image.brokers):
            changes = [
                self.isr_change(topic, number, partition, rng)
                for topic, number, partition in self.partitions(self.image)
                if partition.leader == leader and self.leads(partition) and rng.random() < 0.7
            ]
            if changes:
                self.submit(AlterPartitions(leader, self.image.brokers[leader].epoch, tuple(changes)))

    def isr_change(self, topic: TopicImage, number: int, partition: PartitionImage, rng: random.Random) -> IsrChange:
        """A leader takes in who has all that it has, and drops whom it likes."""
        replicated = self.replicated(topic, number)
        leader_log = replicated.logs.setdefault(partition.leader, [])
        isr = [partition.leader]
        for follower in partition.replicas:
            has_all = replicated.logs.get(follower, []) == leader_log
            if follower != partition.leader and rng.random() < 0.7 and (has_all or follower in partition.isr):
                isr.append(follower)
        known = self.up()
        epochs = tuple(known[each].epoch if each in known else -1 for each in isr)
        epoch = partition.partition_epoch - (rng.random() < 0.1)
        return IsrChange(topic.topic_id, number, partition.leader_epoch, epoch, tuple(isr), epochs)

    # -- what must hold ----------------------------------------------------------------------------------------------

    @staticmethod
    def partitions(image: ClusterImage) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
        for topic in list(image.topics.values()):
            for number, partition in enumerate(topic.partitions):
                yield topic, number, partition

    def replicated(self, topic: TopicImage, number: int) -> Replicated:
        return self.data.setdefault((topic.topic_id, number), Replicated())

    def rules_of(self, topic: TopicImage) -> TopicRules:
        return Rules.of(self.controller.settings(self.image).config, self.image).of_topic(topic)

    def commit(self, topic: TopicImage, partition: PartitionImage, replicated: Replicated) -> None:
        if len(partition.isr) < min(self.rules_of(topic).min_insync_replicas, len(partition.replicas)):
            return
        leader_log = replicated.logs[partition.leader]
        length = min(len(common(leader_log, replicated.logs.setdefault(each, []))) for each in partition.isr)
        if length > len(replicated.committed):
            replicated.committed = leader_log[:length]

    def check_changes(self, before: ClusterImage, crashed: set[BrokerId]) -> None:
        old = {(topic.topic_id, number): (topic, one) for topic, number, one in self.partitions(before)}
        for topic, number, partition in self.partitions(self.image):
            known = old.get((topic.topic_id, number))
            if known is None:
                assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
                continue
            self.check_epochs(known[1], partition)
            if {*known[1].isr, *known[1].elr} - crashed and not self.is_unclean(topic, number):
                assert partition.isr or partition.elr, "all replicas with the committed records are given up"
            if self.leads(partition):
                self.check_records(topic, number, known[1], crashed)
        for topic_id in before.topic_names.keys() - self.image.topic_names.keys():
            assert topic_id in self.image.deleted_topics

    @staticmethod
    def check_epochs(old: PartitionImage, new: PartitionImage) -> None:
        assert new.leader_epoch - old.leader_epoch in (0, 1)
        if new.leader != old.leader or not set(old.replicas) <= set(new.replicas):
            assert new.leader_epoch > old.leader_epoch
        is_same = old._replace(directories=()) == new._replace(directories=())
        assert new.partition_epoch == old.partition_epoch + (not is_same)

    def is_unclean(self, topic: TopicImage, number: int) -> bool:
        return self.rules_of(topic).allows_unclean or TopicPartition(topic.name, number) in self.asked_unclean

    def check_records(self, topic: TopicImage, number: int, old: PartitionImage, crashed: set[BrokerId]) -> None:
        new = topic.partitions[number]
        replicated = self.replicated(topic, number)
        held = replicated.logs.setdefault(new.leader, [])
        intact = {*old.isr, *old.elr} - crashed
        unclean = self.is_unclean(topic, number)
        if not unclean and intact and old.leader != new.leader:
            # Or it has just come in sync: the leader is about to stop, or has been reassigned.
            assert new.leader in intact | self.joining.get((topic.topic_id, number), set())
        if held[: len(replicated.committed)] != replicated.committed:
            assert unclean or not intact, "a leader lacks committed records"
            replicated.committed = common(held, replicated.committed)

    @precondition(lambda self: self.image.topics)
    @invariant()
    def every_partition_is_sound(self) -> None:
        for _, _, partition in self.partitions(self.image):
            replicas, isr, elr = set(partition.replicas), set(partition.isr), set(partition.elr)
            assert len(replicas) == len(partition.replicas) > 0
            assert len(isr) == len(partition.isr)
            assert isr | elr <= replicas
            assert not isr & elr
            assert set(partition.last_known_elr) <= replicas
            assert set(partition.adding_replicas) | set(partition.removing_replicas) <= replicas
            assert not set(partition.adding_replicas) & set(partition.removing_replicas)
            assert not partition.directories or len(partition.directories) == len(partition.replicas)
            if partition.leader == NO_LEADER:
                assert not any(self.image.is_active(each) for each in isr), "a replica in sync could lead"
            else:
                assert partition.leader in isr
                assert partition.leader in self.image.brokers
            if not self.image.has_elr:
                assert not elr


def common(one: list[int], other: list[int]) -> list[int]:
    length = next((index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    return one[: min(len(one), len(other)) if length is None else length]


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
