"""Transactions of several producers under delays, repetitions, timeouts, a log that refuses, and crashes at any step.

Partitions are played as leaders behave: they ask the coordinator before the first batch of a transaction, refuse epochs
that are over, and take markers in any order, late and twice. Whatever happens:
- a coordinator that reads the log knows what the one before it knew;
- what one transaction wrote is committed everywhere or nowhere, as reported to its client;
- no marker, and no request, of one transaction ends another;
- when all is settled, nothing is left open.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.transactions.actions import WriteFences, WriteMarkers
from kaspar.transactions.shard import TransactionShard
from kaspar.transactions.state import TRANSITIONS, TransactionState
from tests.unit.transactions.coordinator import DAY_MS, MINUTE_MS, SETTINGS, Coordinator, pair

IDS = ("one", "two")
PARTITIONS = (TopicPartition("a", 0), TopicPartition("b", 0))
OVER = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_TXN_STATE})


@dataclass(eq=False)
class Written:
    """What one transaction of one client wrote, and what the client knows of its end."""

    asked: bool | None = None
    """To commit or to abort: a client that has asked for one does not ask for the other."""
    reported: bool | None = None


@dataclass(eq=False)
class Producer:
    transactional_id: str
    pair: ProducerIdAndEpoch
    version: int
    written: Written | None = None
    is_over: bool = False
    decides: ProducerIdAndEpoch | None = None
    """It has prepared its transaction; this pair ends it."""
    added: dict[TopicPartition, Written] = field(default_factory=dict)

    def add(self, coordinator: Coordinator, partition: TopicPartition) -> ErrorCode:
        """By the older rules a client adds each partition to each transaction itself, before it writes to it."""
        if self.version == 2 or self.added.get(partition) is self.written:
            return ErrorCode.NONE
        code = coordinator.add(self.pair, partition, version=0, transactional_id=self.transactional_id)
        if code is ErrorCode.NONE:
            assert self.written is not None
            self.added[partition] = self.written
        return code


@dataclass(eq=False)
class Open:
    pair: ProducerIdAndEpoch
    records: list[Written] = field(default_factory=list)


class Leader:
    """One partition: for each producer id its epoch, its open transaction, and how those before it ended."""

    def __init__(self, name: TopicPartition) -> None:
        self.name = name
        self.epochs: dict[int, int] = {}
        self.coordinator_epochs: dict[int, int] = {}
        self.open: dict[int, Open] = {}
        self.ended: list[tuple[Written, bool]] = []

    def write(self, coordinator: Coordinator, producer: Producer) -> ErrorCode:
        producer_id, epoch = producer.pair
        if epoch < self.epochs.get(producer_id, -1):
            return ErrorCode.PRODUCER_FENCED
        begun = self.open.get(producer_id)
        if begun is None or begun.pair != producer.pair:
            code = self._ask(coordinator, producer)
            if code is not ErrorCode.NONE:
                return code
            assert producer_id not in self.open, "a transaction may begin before the one before it has ended here"
            begun = self.open[producer_id] = Open(producer.pair)
        assert producer.written is not None
        begun.records.append(producer.written)
        self.epochs[producer_id] = epoch
        return ErrorCode.NONE

    def fence(self, action: WriteFences) -> None:
        producer_id, epoch = action.producer
        if action.coordinator_epoch < self.coordinator_epochs.get(producer_id, -1):
            return
        if self.epochs.get(producer_id, -1) >= epoch:
            return
        self.epochs[producer_id] = epoch
        self.open.setdefault(producer_id, Open(action.producer)).pair = action.producer

    def _ask(self, coordinator: Coordinator, producer: Producer) -> ErrorCode:
        if producer.version == 2:
            return coordinator.add(producer.pair, self.name, transactional_id=producer.transactional_id)
        return coordinator.verify(producer.pair, self.name, transactional_id=producer.transactional_id)[self.name]

    def take(self, marker: WriteMarkers) -> bool:
        """Whether the marker was taken, or is not needed any more."""
        producer_id, epoch = marker.producer
        if marker.coordinator_epoch < self.coordinator_epochs.get(producer_id, -1):
            return False
        known = self.epochs.get(producer_id, -1)
        begun = self.open.get(producer_id)
        if epoch < known or (marker.transaction_version == 2 and epoch == known and begun is not None):
            return True  # refused: the producer has gone on
        self.epochs[producer_id] = epoch
        self.coordinator_epochs[producer_id] = marker.coordinator_epoch
        if begun is not None:
            del self.open[producer_id]
            self.ended += [(record, marker.committed) for record in begun.records]
        return True


@dataclass(eq=False)
class Delivery:
    """A marker on its way to the partitions that do not have it yet."""

    action: WriteMarkers
    waiting: set[TopicPartition]


class TransactionsMachine(RuleBasedStateMachine):
    two_phase_commit = False

    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator(replace(SETTINGS, two_phase_commit=self.two_phase_commit))
        self.follower = TransactionShard(
            self.coordinator.settings, 0, 0, next_producer_id=lambda: 0, transaction_version=lambda: 2
        )
        """Knows nothing but the log."""
        self.replayed = 0
        self.leaders = {name: Leader(name) for name in PARTITIONS}
        self.producers: list[Producer] = []
        self.deliveries: list[Delivery] = []
        self.reported: list[WriteMarkers] = []
        self.stale: list[tuple[WriteMarkers, TopicPartition]] = []
        self.fences: list[tuple[WriteFences, TopicPartition]] = []
        """On their way. Those of a coordinator that crashed may still arrive."""
        self.delayed: list[tuple[Producer, ProducerIdAndEpoch, Written | None, bool]] = []
        self.written: list[Written] = []

    # -- producers -----------------------------------------------------------------------------------------------------

    @rule(transactional_id=st.sampled_from(IDS), older=st.booleans())
    def a_producer_starts(self, transactional_id: str, older: bool) -> None:
        response = self.coordinator.init(transactional_id=transactional_id)
        if response.error_code == ErrorCode.NONE:
            version = 2 if self.coordinator.version == 2 and not older else 0
            self.producers.append(Producer(transactional_id, pair(response), version))
            del self.producers[:-6]

    def _alive(self, data: Any) -> Producer:
        return data.draw(st.sampled_from([each for each in self.producers if not each.is_over]))  # type: ignore[no-any-return]

    def some_producer_is_alive(self) -> bool:
        return any(not each.is_over for each in self.producers)

    @precondition(some_producer_is_alive)
    @rule(data=st.data())
    def a_producer_goes_on_under_a_new_epoch(self, data: Any) -> None:
        producer = self._alive(data)
        if producer.written is not None or producer.decides is not None:
            return
        response = self.coordinator.init(producer.pair, transactional_id=producer.transactional_id)
        if response.error_code == ErrorCode.NONE:
            producer.pair = pair(response)
        elif response.error_code in OVER:
            producer.is_over = True

    @precondition(some_producer_is_alive)
    @rule(data=st.data(), name=st.sampled_from(PARTITIONS))
    def a_producer_writes(self, data: Any, name: TopicPartition) -> None:
        producer = self._alive(data)
        if producer.decides is not None or (producer.written is not None and producer.written.asked is not None):
            return
        if producer.written is None:
            producer.written = Written()
            self.written.append(producer.written)
        code = producer.add(self.coordinator, name)
        if code is ErrorCode.NONE:
            code = self.leaders[name].write(self.coordinator, producer)
        if code in OVER:
            producer.is_over = True

    @precondition(some_producer_is_alive)
    @rule(data=st.data(), commit=st.booleans(), lost=st.sampled_from([False, False, True]))
    def a_producer_ends_its_transaction(self, data: Any, commit: bool, lost: bool) -> None:
        """Lost: the request is on its way, and the client does not know how far it got."""
        producer = self._alive(data)
        ends_with = producer.decides or producer.pair
        if producer.written is None:
            if producer.version == 0 or commit:
                return  # an abort of nothing is something only for transactions v2
        elif producer.written.asked is None:
            producer.written.asked = commit
        else:
            commit = producer.written.asked
        if producer.version == 2:
            self.delayed.append((producer, ends_with, producer.written, commit))
        if not lost:
            self._deliver_end(producer, ends_with, producer.written, commit)

    def _deliver_end(
        self, producer: Producer, ends_with: ProducerIdAndEpoch, written: Written | None, commit: bool
    ) -> None:
        response = self.coordinator.end(
            ends_with, commit=commit, version=producer.version, transactional_id=producer.transactional_id
        )
        code = ErrorCode(response.error_code)
        is_current = written is producer.written and ends_with == (producer.decides or producer.pair)
        if code is ErrorCode.NONE:
            if written is not None:
                assert written.reported in (None, commit), "two different outcomes were reported"
                written.reported = commit
            if is_current:
                producer.written = producer.decides = None
                producer.pair = pair(response) if producer.version == 2 else producer.pair
        elif code in OVER and is_current:
            producer.is_over = True

    @precondition(lambda self: bool(self.delayed))
    @rule(data=st.data())
    def a_delayed_or_repeated_end_arrives(self, data: Any) -> None:
        self._deliver_end(*data.draw(st.sampled_from(self.delayed)))

    # -- prepared transactions -----------------------------------------------------------------------------------------

    def some_producer_may_prepare(self) -> bool:
        return self.two_phase_commit and self.some_producer_is_alive()

    @precondition(some_producer_may_prepare)
    @rule(data=st.data(), names_itself=st.booleans(), lost=st.sampled_from([False, False, True]))
    def a_producer_prepares(self, data: Any, names_itself: bool, lost: bool) -> None:
        """Lost: the coordinator crashes, or the client goes away, before every partition has its fence."""
        producer = self._alive(data)
        written = producer.written
        if written is None or written.asked is not None:
            return
        if names_itself:
            response = self.coordinator.prepare(
                producer.decides or producer.pair, transactional_id=producer.transactional_id
            )
        else:
            response = self.coordinator.prepare(transactional_id=producer.transactional_id)
        if response.error_code in OVER:
            producer.is_over = True
        elif response.error_code == ErrorCode.NONE:
            if response.ongoing_txn_producer_id == -1:
                producer.pair, producer.written, producer.decides = pair(response), None, None
            elif response.ongoing_txn_producer_id == producer.pair.producer_id and (
                response.ongoing_txn_producer_epoch == producer.pair.producer_epoch
            ):
                self._collect()
                if not lost:
                    self._write_fences(producer.transactional_id)
                    producer.decides = pair(response)
            else:
                producer.is_over = True  # it has taken over what another one wrote, and does not go on

    @precondition(lambda self: any(each.decides for each in self.producers))
    @rule(data=st.data(), name=st.sampled_from(PARTITIONS))
    def who_still_has_the_epoch_from_before_is_fenced_at_every_partition(self, data: Any, name: TopicPartition) -> None:
        producer = data.draw(st.sampled_from([each for each in self.producers if each.decides]))
        old = Producer(producer.transactional_id, producer.pair, producer.version, Written())
        assert self.leaders[name].write(self.coordinator, old) is not ErrorCode.NONE

    def _write_fences(self, transactional_id: str) -> None:
        """Only then is a client told that its transaction is prepared."""
        for action, name in self.fences:
            if action.transactional_id == transactional_id:
                self.leaders[name].fence(action)

    @precondition(lambda self: bool(self.fences))
    @rule(data=st.data())
    def a_partition_takes_its_fence(self, data: Any) -> None:
        action, name = data.draw(st.sampled_from(self.fences))
        self.leaders[name].fence(action)

    @precondition(lambda self: any(each.decides for each in self.producers))
    @rule(data=st.data(), name=st.sampled_from(PARTITIONS))
    def who_may_end_a_prepared_transaction_writes_nothing_more_into_it(self, data: Any, name: TopicPartition) -> None:
        producer = data.draw(st.sampled_from([each for each in self.producers if each.decides]))
        owner = Producer(producer.transactional_id, producer.decides, producer.version, Written())
        if self.coordinator.transaction(producer.transactional_id).state is TransactionState.PREPARED:
            assert self.leaders[name].write(self.coordinator, owner) is not ErrorCode.NONE

    # -- the coordinator -----------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        self.deliveries += [Delivery(action, set(action.partitions)) for action in self.coordinator.markers]
        self.coordinator.markers = []
        self.fences += [(action, name) for action in self.coordinator.fences for name in action.partitions]
        self.coordinator.fences = []
        for delivery in tuple(self.deliveries):
            if not delivery.waiting:
                self._report(delivery)

    def _report(self, delivery: Delivery) -> None:
        self.deliveries.remove(delivery)
        self.reported.append(delivery.action)
        self.coordinator.report(delivery.action)

    @precondition(lambda self: bool(self.deliveries))
    @rule(data=st.data())
    def a_partition_takes_its_marker(self, data: Any) -> None:
        delivery = data.draw(st.sampled_from(self.deliveries))
        name = data.draw(st.sampled_from(sorted(delivery.waiting)))
        assert self.leaders[name].take(delivery.action)
        delivery.waiting.discard(name)
        if delivery.action.transaction_version == 2:
            self.stale.append((delivery.action, name))
        if not delivery.waiting:
            self._report(delivery)

    @precondition(lambda self: bool(self.stale))
    @rule(data=st.data())
    def a_marker_arrives_again(self, data: Any) -> None:
        action, name = data.draw(st.sampled_from(self.stale))
        self.leaders[name].take(action)

    @precondition(lambda self: bool(self.reported))
    @rule(data=st.data())
    def a_report_of_markers_arrives_again(self, data: Any) -> None:
        action = data.draw(st.sampled_from(self.reported))
        if action.transaction_version == 2:
            self.coordinator.report(action)

    @rule()
    def the_coordinator_crashes(self) -> None:
        """What it has sent may still arrive; the next one, in its own epoch, sends it again."""
        self.stale += [(delivery.action, name) for delivery in self.deliveries for name in delivery.waiting]
        self.deliveries = []
        self.coordinator.coordinator_epoch += 1
        self.coordinator.crash()

    @rule(refuses=st.booleans())
    def the_log_refuses_or_takes_records(self, refuses: bool) -> None:
        self.coordinator.refuses = ErrorCode.COORDINATOR_NOT_AVAILABLE if refuses else None

    @rule(milliseconds=st.sampled_from([1, 1_000, 20_000, MINUTE_MS, DAY_MS, 8 * DAY_MS]))
    def time_goes_by(self, milliseconds: int) -> None:
        """While the log refuses, what is due is tried every second: not for days, or the test takes as long."""
        self.coordinator.advance(milliseconds if self.coordinator.refuses is None else min(milliseconds, MINUTE_MS))

    @rule(milliseconds=st.integers(-DAY_MS, DAY_MS))
    def the_wall_clock_jumps(self, milliseconds: int) -> None:
        self.coordinator.jump(milliseconds)

    @rule(version=st.integers(0, 2))
    def the_feature_is_changed(self, version: int) -> None:
        self.coordinator.version = version

    # -- what holds ----------------------------------------------------------------------------------------------------

    @invariant()
    def a_replay_of_the_log_gives_the_same_state(self) -> None:
        self._collect()
        for key, value in self.coordinator.log[self.replayed :]:
            record = self.follower.decode(key, value)
            assert record is not None
            name = record.key.transactional_id  # type: ignore[attr-defined]
            before = self.follower.transactions.get(name)
            self.follower.replay(record, None)
            after = self.follower.transactions.get(name)
            state = TransactionState.EMPTY if before is None else before.state
            assert (TransactionState.DEAD if after is None else after.state) in _following(state)
        self.replayed = len(self.coordinator.log)
        assert self.follower.transactions == self.coordinator.shard.transactions
        assert self.follower.waiting_for_their_owners == self.coordinator.shard.waiting_for_their_owners

    @invariant()
    def nothing_is_both_committed_and_aborted(self) -> None:
        self._outcomes()

    def _outcomes(self) -> dict[Written, bool]:
        outcomes: dict[Written, bool] = {}
        for leader in self.leaders.values():
            for written, committed in leader.ended:
                assert outcomes.setdefault(written, committed) is committed, "committed here and aborted there"
                assert written.reported in (None, committed), "another outcome was reported to its client"
        return outcomes

    def teardown(self) -> None:
        """Everything that is under way arrives, and time goes by until nothing is open any more."""
        coordinator = self.coordinator
        coordinator.refuses = None
        self.the_coordinator_crashes()
        for _ in range(3):
            self._collect()
            for delivery in tuple(self.deliveries):
                for name in delivery.waiting:
                    assert self.leaders[name].take(delivery.action)
                self._report(delivery)
            coordinator.advance(2 * MINUTE_MS)
            coordinator.advance(7 * DAY_MS)
        assert all(not leader.open for leader in self.leaders.values()), "a transaction is left open"
        outcomes = self._outcomes()
        for written, committed in outcomes.items():
            if committed:
                assert written.asked is True, "nobody asked to commit it"


def _following(state: TransactionState) -> set[TransactionState]:
    following = set(TRANSITIONS[state].values())
    if TransactionState.PREPARE_EPOCH_FENCE in following:
        following |= set(TRANSITIONS[TransactionState.PREPARE_EPOCH_FENCE].values())
        following.discard(TransactionState.PREPARE_EPOCH_FENCE)
    return following


class PreparedTransactionsMachine(TransactionsMachine):
    two_phase_commit = True


for machine in (TransactionsMachine, PreparedTransactionsMachine):
    machine.TestCase.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
TestTransactions = TransactionsMachine.TestCase
TestPreparedTransactions = PreparedTransactionsMachine.TestCase
