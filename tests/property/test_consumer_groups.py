"""A group shard under everything that can happen to a consumer group: members of both protocols that come, go, fall
silent and miss responses, topics that change, a log that refuses, and a coordinator that crashes.

After every step the log, replayed from its beginning or compacted, gives the state that is there; no partition has two
owners; and no client has a partition that the coordinator does not count as its own. In the end, when all is quiet, the
group is stable and every partition is read.
"""

import uuid
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kaspar.base.errors import ErrorCode
from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import StoredRecord
from kaspar.groups.classic_group import ClassicGroup
from kaspar.groups.consumer_group import ConsumerGroup
from kaspar.groups.shard import GroupShard
from kaspar.protocol.consumer_protocol import read_assignment, read_subscription, write_assignment
from kaspar.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from tests.unit.groups.consumer.shell import Consumer, ConsumerShell, subscription, topic_id
from tests.unit.groups.shell import GROUP, Waiting

TOPICS = ("orders", "payments", "refunds")
SUBSCRIPTIONS = st.sampled_from([("orders",), ("orders", "payments"), ("payments", "refunds"), ("refunds",)])
PATTERNS = st.sampled_from([".*", "o.*|p.*", "re.*", "none"])
INSTANCES = st.none() | st.sampled_from(["i", "j"])
POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
FOREVER_ROUNDS = 60


class EagerConsumer:
    """A client of the classic protocol that gives everything up before it joins. It leads if it has to."""

    def __init__(self, shell: ConsumerShell, topics: tuple[str, ...], instance_id: str | None) -> None:
        self.shell = shell
        self.topics = topics
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: set[tuple[uuid.UUID, int]] = set()
        self.joining: Waiting | None = None
        self.syncing: Waiting | None = None
        self.is_fenced = False
        """Another has taken its instance id over: it gives up."""

    def step(self) -> None:
        if self.is_fenced:
            return
        if self.joining is not None:
            if self.joining.response is not None:
                self._joined(self.joining)
        elif self.syncing is not None:
            if self.syncing.response is not None:
                self._synced(self.syncing)
        elif self.generation < 0:
            self._join()
        else:
            code = self.shell.heartbeat(self.member_id, self.generation, instance_id=self.instance_id)
            if code is not ErrorCode.NONE:
                self._begin_again(code)

    def _begin_again(self, code: ErrorCode) -> None:
        self.owned = set()
        self.generation = -1
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.is_fenced = True
            return
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self._join()

    def _join(self) -> None:
        self.owned = set()
        self.generation = -1
        self.syncing = None
        self.joining = self.shell.join(
            self.member_id, instance_id=self.instance_id, protocols={"range": subscription(*self.topics)}
        )

    def _joined(self, ticket: Waiting) -> None:
        self.joining = None
        response = ticket.response
        if ticket.code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._join()
        elif ticket.code is ErrorCode.NONE:
            self.member_id = response.member_id
            self.generation = response.generation_id
            assignments = self._assign(response.members) if response.leader == self.member_id else None
            self.syncing = self.shell.sync(self.member_id, self.generation, assignments, instance_id=self.instance_id)
        else:
            self._begin_again(ticket.code)

    def _assign(self, members: Any) -> dict[str, bytes]:
        """Each topic in turn, to the members that read it."""
        reads = {member.member_id: read_subscription(member.metadata).topics for member in members}
        shares: dict[str, list[TopicPartition]] = {member_id: [] for member_id in reads}
        for name, count in self.shell.counts.items():
            readers = [member_id for member_id, topics in reads.items() if name in topics]
            for position, reader in enumerate(readers):
                partitions = tuple(range(position, count, len(readers)))
                if partitions:
                    shares[reader].append(TopicPartition(topic=name, partitions=partitions))
        return {
            member_id: write_assignment(ConsumerProtocolAssignment(assigned_partitions=tuple(share)), 3)
            for member_id, share in shares.items()
        }

    def _synced(self, ticket: Waiting) -> None:
        self.syncing = None
        if ticket.code is not ErrorCode.NONE:
            self._begin_again(ticket.code)
            return
        octets = ticket.response.assignment
        self.owned = {
            (topic_id(topic.topic), partition)
            for topic in (read_assignment(octets).assigned_partitions if octets else ())
            for partition in topic.partitions
        }


class ConsumerGroups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shell = ConsumerShell(orders=3, payments=2)
        self.consumers: dict[str, Consumer] = {}
        self.eager: list[EagerConsumer] = []
        self.records: list[StoredRecord] = []
        """What is in the log."""
        self._ids = 0

    @initialize(interval_ms=st.sampled_from([0, 1_000, 15_000]), policy=st.sampled_from(POLICIES))
    def settings(self, interval_ms: int, policy: str) -> None:
        chosen = GroupSettings(
            group_consumer_assignment_interval_ms=interval_ms,
            group_consumer_migration_policy=policy,
            group_initial_rebalance_delay_ms=0,
        )
        self.shell = ConsumerShell(chosen, orders=3, payments=2)

    # -- members of the consumer protocol ------------------------------------------------------------------------------

    @rule(topics=SUBSCRIPTIONS, instance_id=INSTANCES)
    def consumer_comes(self, topics: tuple[str, ...], instance_id: str | None) -> None:
        if len(self.consumers) < 4:
            self._ids += 1
            name = f"c{self._ids}"
            self.consumers[name] = Consumer(self.shell, name, topics=topics, instance_id=instance_id).join()

    @rule(pattern=PATTERNS)
    def consumer_with_a_pattern_comes(self, pattern: str) -> None:
        if len(self.consumers) < 4:
            self._ids += 1
            name = f"c{self._ids}"
            self.consumers[name] = Consumer(self.shell, name, pattern=pattern).join()

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def consumer_heartbeats(self, data: st.DataObject) -> None:
        consumer = self._any(data)
        if not consumer.is_fenced:
            consumer.heartbeat()

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def response_is_lost(self, data: st.DataObject) -> None:
        consumer = self._any(data)
        if consumer.epoch > 0 and not consumer.is_fenced:
            consumer.miss_a_response()

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), topics=SUBSCRIPTIONS | st.just(()))
    def consumer_subscribes(self, data: st.DataObject, topics: tuple[str, ...]) -> None:
        consumer = self._any(data)
        if consumer.epoch > 0 and consumer.pattern is None and not consumer.is_fenced:
            consumer.subscribe(*topics)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), for_a_while=st.booleans())
    def consumer_leaves(self, data: st.DataObject, for_a_while: bool) -> None:
        consumer = self._any(data)
        consumer.leave(-2 if for_a_while and consumer.instance_id is not None else -1)
        del self.consumers[consumer.member_id]

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def consumer_falls_silent(self, data: st.DataObject) -> None:
        del self.consumers[self._any(data).member_id]

    def _any(self, data: st.DataObject) -> Consumer:
        return self.consumers[data.draw(st.sampled_from(sorted(self.consumers)))]

    # -- members of the classic protocol -------------------------------------------------------------------------------

    @rule(topics=SUBSCRIPTIONS, instance_id=INSTANCES)
    def eager_consumer_comes(self, topics: tuple[str, ...], instance_id: str | None) -> None:
        if len(self.eager) < 2:
            self.eager.append(EagerConsumer(self.shell, topics, instance_id))
            self.eager[-1].step()

    @precondition(lambda self: self.eager)
    @rule(data=st.data())
    def eager_consumer_steps(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.eager)).step()

    @precondition(lambda self: self.eager)
    @rule(data=st.data(), politely=st.booleans())
    def eager_consumer_goes(self, data: st.DataObject, politely: bool) -> None:
        gone = data.draw(st.sampled_from(self.eager))
        self.eager.remove(gone)
        if politely and gone.member_id:
            self.shell.leave((gone.member_id, gone.instance_id))

    # -- the rest of the world -----------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0, 1, 5, 11, 46, 61, 601]))
    def time_passes(self, seconds: int) -> None:
        self.shell.advance(1_000 * seconds)

    @rule(name=st.sampled_from(TOPICS), count=st.integers(0, 5))
    def topic_changes(self, name: str, count: int) -> None:
        """A topic does not lose partitions; it can only be recreated."""
        if count == 0 or count > self.shell.counts.get(name, 0):
            self.shell.change_topics(**{name: count})

    @rule()
    def threads_work(self) -> None:
        self.shell.work()

    @rule(refuses=st.booleans())
    def log_refuses(self, refuses: bool) -> None:
        self.shell.refuses = ErrorCode.NOT_ENOUGH_REPLICAS if refuses else None

    @rule()
    def coordinator_crashes(self) -> None:
        self.shell.refuses = None
        self.shell.actions.clear()
        self.shell.crash()

    # -- what always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def replay_gives_the_state_that_is_there(self) -> None:
        for key, value, _ in self.shell.log[len(self.records) :]:
            record = self.shell.shard.decode(key, value)
            assert record is not None
            self.records.append(record)
        last = {record.key: record for record in self.records}
        compacted = [record for record in self.records if record is last[record.key] and record.value is not None]
        here = durable(self.shell.shard)
        assert durable(replayed(self.records)) == here
        assert durable(replayed(compacted)) == here

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        group = self.shell.shard.groups.get(GROUP)
        if isinstance(group, ConsumerGroup):
            owned = [
                (topic, partition)
                for member in group.membership.state.members.values()
                for partitions in (member.assigned, member.pending_revocation)
                for topic, epochs in partitions.items()
                for partition in epochs
            ]
            assert len(owned) == len(set(owned))

    @invariant()
    def no_client_has_what_is_not_its_own(self) -> None:
        group = self.shell.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return
        clients = [(each.member_id, each.epoch, each.owned) for each in self.consumers.values()]
        clients += [(each.member_id, each.generation, each.owned) for each in self.eager]
        for member_id, epoch, owned in clients:
            member = group.membership.state.members.get(member_id)
            if member is None or (member.uses_classic_protocol and member.member_epoch != epoch):
                continue
            for topic, partition in owned:
                assert member.epoch_of(topic, partition) is not None

    def teardown(self) -> None:
        """Nothing happens any more but heartbeats."""
        self.shell.refuses = None
        for _ in range(FOREVER_ROUNDS):
            self.shell.advance(2_000)
            self.shell.work()
            for consumer in self.consumers.values():
                if not consumer.is_fenced:
                    consumer.heartbeat()
            for eager in self.eager:
                eager.step()
        group = self.shell.shard.groups.get(GROUP)
        if group is None:
            return
        assert group.state_name in ("Stable", "Empty")
        if isinstance(group, ConsumerGroup):
            members = group.membership.state.members
            clients: list[Consumer | EagerConsumer] = [*self.consumers.values(), *self.eager]
            owned = [pair for each in clients if each.member_id in members for pair in each.owned]
            assert len(owned) == len(set(owned))
            assert set(owned) == {
                (topic_id(name), partition)
                for name in group.membership.state.subscribed_topics()
                for partition in range(self.shell.counts.get(name, 0))
            }


def replayed(records: list[StoredRecord]) -> GroupShard:
    shard = GroupShard(GroupSettings(), 0)
    for record in records:
        shard.replay(record, None)
    return shard


def durable(shard: GroupShard) -> dict[str, Any]:
    return {
        group_id: vars(group.membership.state) if isinstance(group, ConsumerGroup) else _stored(group)
        for group_id, group in shard.groups.items()
    }


def _stored(group: Any) -> Any:
    assert isinstance(group, ClassicGroup)
    return group.membership.stored


TestConsumerGroups = ConsumerGroups.TestCase
TestConsumerGroups.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
