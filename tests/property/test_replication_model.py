"""Committed records are never lost nor changed, whatever is late, lost or crashes.

The rules are tried in two ways: by Hypothesis, whose counterexamples are short, and in long random walks, which get
further: a record is lost only after several changes of leaders in the wrong moments.
"""

import random
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import BrokerId
from kaspar.replication.in_sync import AfterRefusal
from kaspar.replication.state import Role
from tests.property.replication_model import BROKERS, LAG_MS, MemoryLog, ModelController, Record, Replica

brokers = st.sampled_from(BROKERS)


class ReplicationMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.controller = ModelController()
        self.replicas = {each: Replica(each, 1, MemoryLog([]), 0) for each in BROKERS}
        self.down: dict[BrokerId, tuple[list[Record], int]] = {}
        """The log of each replica whose process has ended, and its checkpointed high watermark."""
        self.last_epoch = 1
        self.next_value = 0
        self.now_ms = 0
        self.committed: list[Record] = []
        for replica in self.replicas.values():
            replica.see(self.controller.image, 0)

    # -- what happens --------------------------------------------------------------------------------------------------

    @rule(broker_id=brokers, count=st.integers(1, 3))
    def produce(self, broker_id: BrokerId, count: int) -> None:
        replica = self.replicas.get(broker_id)
        if replica is not None and replica.state.role is Role.LEADER:
            for _ in range(count):
                replica.append(self.next_value)
                self.next_value += 1

    @rule(broker_id=brokers, most=st.integers(0, 4))
    def fetch(self, broker_id: BrokerId, most: int) -> None:
        follower = self.replicas.get(broker_id)
        if follower is None or follower.fetch is None or not follower.fetch.is_due(0):
            return
        leader = self.replicas.get(follower.state.leadership.leader)
        if leader is not None:
            asked = follower.fetch.position
            follower.response = leader.serve(broker_id, follower.epoch, asked, most, self.now_ms)

    @rule(broker_id=brokers)
    def response_arrives(self, broker_id: BrokerId) -> None:
        follower = self.replicas.get(broker_id)
        if follower is not None:
            leader = self.replicas.get(follower.state.leadership.leader)
            if leader is not None:
                follower.take(leader.log.log_end_offset)

    @rule(broker_id=brokers)
    def response_is_lost(self, broker_id: BrokerId) -> None:
        if broker_id in self.replicas:
            self.replicas[broker_id].response = None

    @rule(broker_id=brokers)
    def truncate(self, broker_id: BrokerId) -> None:
        if broker_id in self.replicas:
            self.replicas[broker_id].truncate()

    @rule(broker_id=brokers)
    def copy_for_a_while(self, broker_id: BrokerId) -> None:
        """A stretch without faults, which random steps hardly ever are."""
        if broker_id in self.replicas:
            self.replicas[broker_id].see(self.controller.image, self.now_ms)
        for _ in range(3):
            self.fetch(broker_id, 100)
            self.response_arrives(broker_id)
            self.truncate(broker_id)

    @rule(broker_id=brokers)
    def image_arrives(self, broker_id: BrokerId) -> None:
        if broker_id in self.replicas:
            self.replicas[broker_id].see(self.controller.image, self.now_ms)

    @rule(broker_id=brokers, reply_is_lost=st.booleans())
    def in_sync_replicas_change(self, broker_id: BrokerId, reply_is_lost: bool) -> None:
        replica = self.replicas.get(broker_id)
        if replica is None or replica.proposal is None:
            return
        if replica.state.pending is not replica.proposal:
            replica.proposal = None
            return
        code = self.controller.alter(broker_id, replica.proposal)
        if reply_is_lost:
            return
        if code is ErrorCode.NONE:
            replica.proposal = None  # it is pending until the image shows it
        elif replica.state.isr_refused(replica.proposal, code) is not AfterRefusal.RETRY:
            replica.proposal = None

    @rule(broker_id=brokers)
    def followers_are_checked(self, broker_id: BrokerId) -> None:
        replica = self.replicas.get(broker_id)
        if replica is not None and replica.state.role is Role.LEADER:
            end = type(replica.state.high_watermark)(replica.log.log_end_offset)
            replica.proposal = replica.state.maybe_shrink(end, self.now_ms) or replica.proposal
            replica.state.recheck()

    @rule()
    def time_passes(self) -> None:
        self.now_ms += LAG_MS

    @precondition(lambda self: len(self.down) < 3)
    @rule(broker_id=brokers, checkpoint_age=st.integers(0, 3))
    def crash(self, broker_id: BrokerId, checkpoint_age: int) -> None:
        replica = self.replicas.pop(broker_id, None)
        if replica is not None:
            checkpoint = max(0, replica.state.high_watermark - checkpoint_age)
            self.down[broker_id] = (replica.log.records, checkpoint)

    @rule(broker_id=brokers)
    def another_leader_is_elected(self, broker_id: BrokerId) -> None:
        self.controller.elect(broker_id)

    @rule(broker_id=brokers)
    def controller_notices(self, broker_id: BrokerId) -> None:
        if broker_id in self.down and broker_id in self.controller.image.brokers:
            self.controller.lost(broker_id)

    @precondition(lambda self: self.down)
    @rule(broker_id=brokers, lost=st.integers(0, 4))
    def restart(self, broker_id: BrokerId, lost: int) -> None:
        if broker_id not in self.down:
            return
        records, checkpoint = self.down.pop(broker_id)
        self.last_epoch += 1
        is_last = self.controller.restarted(broker_id, self.last_epoch, clean=lost == 0)
        if lost and not is_last:
            records = records[: max(0, len(records) - lost)]
        self.replicas[broker_id] = Replica(broker_id, self.last_epoch, MemoryLog(records), checkpoint)

    # -- what must hold ------------------------------------------------------------------------------------------------

    @invariant()
    def committed_records_stay(self) -> None:
        for replica in self.replicas.values():
            known = replica.log.records[: replica.state.high_watermark]
            assert len(known) == replica.state.high_watermark
            assert known[: len(self.committed)] == self.committed[: len(known)], "a committed record has changed"
            if len(known) > len(self.committed):
                self.committed = known

    @invariant()
    def replicas_in_sync_have_all_that_is_committed(self) -> None:
        for broker_id in self.controller.image.leadership.in_sync_replicas:
            replica = self.replicas.get(broker_id)
            records = self.down[broker_id][0] if replica is None else replica.log.records
            assert records[: len(self.committed)] == self.committed, f"broker {broker_id} lacks committed records"

    @invariant()
    def one_leader_per_epoch(self) -> None:
        leading = [each.state.leadership for each in self.replicas.values() if each.state.role is Role.LEADER]
        assert len({each.leader_epoch for each in leading}) == len(leading)

    @invariant()
    def logs_agree_where_their_epochs_do(self) -> None:
        """Log matching: the same offset and epoch, the same record."""
        logs = [each.log.records for each in self.replicas.values()]
        for offset in range(max(map(len, logs), default=0)):
            found = {log[offset].epoch: log[offset].value for log in logs if offset < len(log)}
            assert all(found[log[offset].epoch] == log[offset].value for log in logs if offset < len(log))


STEPS_OF_A_WALK = 500
WALKS = 500
AT_ONCE = 100


def walk(seed: int) -> ReplicationMachine:
    rng = random.Random(seed)
    machine = ReplicationMachine()

    def one() -> BrokerId:
        return rng.choice(BROKERS)

    def leading() -> BrokerId:
        leaders = [each for each, replica in machine.replicas.items() if replica.state.role is Role.LEADER]
        return rng.choice(leaders or BROKERS)

    crashes = rng.choice((0.3, 0.6, 1))
    steps: list[tuple[float, Callable[[], None]]] = [
        (5, lambda: machine.produce(leading(), rng.randint(1, 3))),
        (9, lambda: machine.fetch(one(), rng.randint(0, 4))),
        (9, lambda: machine.response_arrives(one())),
        (1, lambda: machine.response_is_lost(one())),
        (6, lambda: machine.truncate(one())),
        (8, lambda: machine.copy_for_a_while(one())),
        (6, lambda: machine.image_arrives(one())),
        (6, lambda: machine.in_sync_replicas_change(leading(), rng.random() < 0.2)),
        (3, lambda: machine.followers_are_checked(leading())),
        (1, machine.time_passes),
        (1, lambda: machine.another_leader_is_elected(one())),
        (crashes, lambda: machine.crash(one(), rng.randint(0, 3))),
        (3 * crashes, lambda: machine.controller_notices(one())),
        (3 * crashes, lambda: machine.restart(one(), rng.choice((0, 0, 1, 2, 4)))),
    ]
    checks = (
        machine.committed_records_stay,
        machine.replicas_in_sync_have_all_that_is_committed,
        machine.one_leader_per_epoch,
        machine.logs_agree_where_their_epochs_do,
    )
    weights = [weight for weight, _ in steps]
    for _, step in rng.choices(steps, weights, k=STEPS_OF_A_WALK):
        step()
        for check in checks:
            check()
    return machine


@pytest.mark.parametrize("first", range(0, WALKS, AT_ONCE))
def test_random_walks(first: int) -> None:
    machines = [walk(seed) for seed in range(first, first + AT_ONCE)]
    assert sum(len(machine.committed) for machine in machines) > AT_ONCE * 30, "records are committed"
    assert sum(machine.controller.image.leadership.leader_epoch for machine in machines) > AT_ONCE * 3, "leaders change"


TestReplication = ReplicationMachine.TestCase
TestReplication.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
