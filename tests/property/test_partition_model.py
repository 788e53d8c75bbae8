"""A partition under random appends, syncs, changes of leadership and truncations, beside a model that keeps lists.

Checked after every step: the high watermark is what the model says, and goes back only where the log is cut; nobody who
waits for a commit is called before it, or twice; a waiter that is left when the leadership ends is called then.
"""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId, Offset
from kaspar.replication.state import Role
from kaspar.storage.truncation import truncate_to
from tests.unit.replication.partitions import ME, OTHER, Reader, append, leadership, make_partition
from tests.unit.storage.logs import NOW_MS, log_config, make_batch


class Waiter:
    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self.calls = 0
        self.must_be_called = False

    def __call__(self) -> None:
        self.calls += 1


class PartitionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="kaspar-partition-")
        self.partition = make_partition(Path(self.folder.name))
        self.reader = Reader()
        self.partition.fetch_waiters.add(self.reader)
        self.waiters: list[Waiter] = []
        self.leader_epoch = -1
        self.partition_epoch = -1
        # The model: the leader, the ISR, how far this replica has the log, and what is committed. The other
        # replica never fetches, so what it must have too is committed only when it is no longer in sync.
        self.leader = OTHER
        self.leads = False
        self.in_sync: tuple[BrokerId, ...] = ()
        self.group_commit = False
        self.end = 0
        self.synced = 0
        self.durable = 0
        self.committed = 0
        self.bytes_appended = 0

    def teardown(self) -> None:
        self.partition.log.abandon()
        self.folder.cleanup()

    def commit(self) -> None:
        """What the model says is committed now."""
        if self.leads and self.in_sync == (ME,):
            self.committed = max(self.committed, self.durable)

    # -- what happens to a partition ---------------------------------------------------------------------------------

    @rule(new_epoch=st.booleans(), leader=st.sampled_from([ME, OTHER]), both=st.booleans())
    def decided_by_the_controller(self, new_epoch: bool, leader: BrokerId, both: bool) -> None:
        first = self.leader_epoch < 0
        if new_epoch or first:
            self.leader_epoch += 1
            self.partition_epoch = 0
            self.leader = leader
        else:
            self.partition_epoch += 1
        led_before = self.leads
        self.leads = self.leader == ME
        self.in_sync = (ME, OTHER) if both else (self.leader,)
        if led_before and not self.leads:
            self.everyone_must_be_called()
        if self.leads:
            self.durable = self.synced if self.group_commit else self.end
        self.commit()
        self.partition.lead_or_follow(
            leadership(
                leader=self.leader, epoch=self.leader_epoch, partition_epoch=self.partition_epoch, in_sync=self.in_sync
            )
        )

    @precondition(lambda self: self.leader_epoch > 0)
    @rule(leader=st.sampled_from([ME, OTHER]))
    def an_older_decision_comes_late(self, leader: BrokerId) -> None:
        self.partition.lead_or_follow(leadership(leader=leader, epoch=self.leader_epoch - 1, partition_epoch=99))

    @rule(waits=st.booleans())
    def append(self, waits: bool) -> None:
        batch = make_batch()
        if not self.leads:
            try:
                append(self.partition, batch)
            except Refused:
                return
            raise AssertionError("an append was taken by a replica that does not lead")
        appended = append(self.partition, batch)
        assert appended.base_offset == self.end
        self.end += 1
        self.bytes_appended += len(batch)
        if not self.group_commit:
            self.durable = self.end
        self.commit()
        if waits and self.committed < self.end:
            waiter = Waiter(self.end)
            self.waiters.append(waiter)
            self.partition.when_committed(Offset(self.end), waiter)

    @rule()
    def sync(self) -> None:
        """As broker/syncing.py does; also on a replica that has just lost the leadership."""
        self.synced = self.partition.log.flush()
        assert self.synced == self.end
        if self.leads:
            self.durable = self.synced if self.group_commit else self.end
        self.commit()
        self.partition.durable_up_to(Offset(self.synced))

    @rule(group_commit=st.booleans())
    def flush_messages_changes(self, group_commit: bool) -> None:
        self.group_commit = group_commit
        self.partition.log.reconfigure(log_config(flush_messages=1) if group_commit else log_config())

    @precondition(lambda self: not self.leads and self.end > 0)
    @rule(back=st.integers(1, 3))
    def follower_truncates(self, back: int) -> None:
        target = max(0, self.end - back)
        truncate_to(self.partition.log, target, now_ms=NOW_MS)
        self.partition.state.truncated(Offset(target))
        self.end = target
        self.synced = min(self.synced, target)
        self.committed = min(self.committed, target)

    @rule()
    def retire(self) -> None:
        self.partition.retire()
        self.everyone_must_be_called()
        self.leads = False

    # -- what must hold ----------------------------------------------------------------------------------------------

    def everyone_must_be_called(self) -> None:
        for waiter in self.waiters:
            waiter.must_be_called = True

    @invariant()
    def roles_agree(self) -> None:
        assert (self.partition.state.role is Role.LEADER) == self.leads

    @invariant()
    def high_watermark_is_the_models(self) -> None:
        assert self.partition.high_watermark == self.committed

    @invariant()
    def waiters_are_called_once_and_in_time(self) -> None:
        for waiter in self.waiters:
            due = waiter.must_be_called or waiter.end_offset <= self.committed
            assert waiter.calls == (1 if due else 0)

    @invariant()
    def readers_hear_of_committed_bytes_only(self) -> None:
        assert sum(self.reader.notified) <= self.bytes_appended


TestPartition = PartitionMachine.TestCase
TestPartition.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
