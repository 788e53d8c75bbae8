"""The transaction coordinator of one partition of `__transaction_state`: all transactional ids that belong to it.

Durable state is `transactions`, and only `replay` changes it. Besides, a shard has state that may be lost in a restart:
the times of events on the steady clock (`Watches`), and the epoch that a client had before its last one (`LastEpochs`).

Rules:
- A transaction is ended in two steps. First the decision is in the log (PrepareCommit, PrepareAbort). When that is
  committed, the client gets its response and markers are written. When every partition has its marker, the end is in
  the log too. A coordinator that is loaded writes the markers of every transaction between these steps.
- A report of markers counts only for the pair with which they were written: a late report of one transaction does not
  complete another.
- A transaction is prepared in two steps as well: first this is in the log, then its partitions get their fences. A
  coordinator that is loaded does not know which fences were written, and writes those of all prepared transactions
  again.
- A transaction that is open for longer than its timeout is aborted, and its producer is fenced. One that waits for its
  owner's decision has no timeout; it is aborted when it is older than the broker allows, but not right after a start.
- An unused id is forgotten after it was idle for long.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import ProducerIdAndEpoch, TopicPartition
from kaspar.coordination import Decision, Now, StoredRecord, Timer
from kaspar.protocol.messages.describe_transactions import TransactionState as DescribedTransaction
from kaspar.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kaspar.protocol.messages.init_producer_id import InitProducerIdRequest
from kaspar.protocol.messages.list_transactions import ListTransactionsRequest
from kaspar.protocol.messages.list_transactions import TransactionState as ListedTransaction
from kaspar.protocol.schema import Message
from kaspar.transactions import init, listing, stored
from kaspar.transactions.actions import TransactionCompleted, WriteFences, WriteMarkers
from kaspar.transactions.ending import end
from kaspar.transactions.init import Terms
from kaspar.transactions.partitions import add_partitions, result_of, verify_partitions
from kaspar.transactions.settings import CoordinatorSettings
from kaspar.transactions.state import (
    ENDING_STATES,
    NO_EPOCH,
    OPEN_STATES,
    TRANSACTIONS_V2,
    Transaction,
    TransactionState,
)
from kaspar.transactions.watches import LastEpochs, Watches

RETRY_MS: Final = 1_000
"""When a step for which no client waits is retried after the log has refused it."""
LOOK_AT_ONCE: Final = 2000
"""The number of ids that are looked at in one turn of the event loop ..."""
FORGET_AT_ONCE: Final = 250
"""... or that are forgotten in it: their tombstones are one batch."""
PREPARED_AFTER_LOADING_MS: Final = 60 * 60_000
"""The minimum time for which a transaction may wait for its owner after its coordinator was loaded. The owner may have
been unable to decide while no broker ran, and a wrong clock may be corrected after the start."""


class TimeoutOf(NamedTuple):
    transactional_id: str


class CompletionOf(NamedTuple):
    transactional_id: str
    producer: ProducerIdAndEpoch


class _Expiry(Enum):
    """The timer for looking at all ids of the shard."""

    EXPIRY = "expiry"


EXPIRY: Final = _Expiry.EXPIRY
UNFINISHED_STATES: Final = OPEN_STATES | ENDING_STATES


class TransactionShard:
    def __init__(
        self,
        settings: CoordinatorSettings,
        partition: int,
        coordinator_epoch: int,
        *,
        next_producer_id: Callable[[], int],
        transaction_version: Callable[[], int],
    ) -> None:
        """`next_producer_id` returns an unused id, or raises Refused; `transaction_version` returns the finalized level
        of that feature.
        """
        self.partition = partition
        self.transactions: dict[str, Transaction] = {}
        self.waiting_for_their_owners: dict[str, Transaction] = {}
        """Open transactions without a timeout. Each blocks readers until its owner decides."""
        self._unfinished: dict[str, Transaction] = {}
        """Transactions that are open or being ended."""
        self._to_look_at: deque[str] = deque()
        """The remaining ids of the round that looks for unused ones."""
        self._settings = settings
        self._coordinator_epoch = coordinator_epoch
        self._next_producer_id = next_producer_id
        self._transaction_version = transaction_version
        self._watches = Watches()
        self._last_epochs = LastEpochs()

    # -- the log -----------------------------------------------------------------------------------------------------

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        return stored.decode(key, value)

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        return stored.encode(record, version=self._transaction_version())

    def replay(self, record: StoredRecord, producer: ProducerIdAndEpoch | None) -> None:
        transactional_id = stored.id_of(record)
        transaction = stored.from_record(record)
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            self._watches.forget(transactional_id)
            self._last_epochs.forget(transactional_id)
        else:
            self.transactions[transactional_id] = transaction
        if transaction is not None and transaction.state in UNFINISHED_STATES:
            self._unfinished[transactional_id] = transaction
        else:
            self._unfinished.pop(transactional_id, None)
        if transaction is not None and transaction.waits_for_its_owner:
            self.waiting_for_their_owners[transactional_id] = transaction
        else:
            self.waiting_for_their_owners.pop(transactional_id, None)

    def load(self, key: bytes, value: bytes | None, producer: ProducerIdAndEpoch | None) -> bool:
        record = self.decode(key, value)
        if record is not None:
            self.replay(record, producer)
        return record is not None

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Ignored: nothing is written to this topic in a transaction, so markers have no meaning here."""

    def loaded(self, now: Now) -> Decision:
        decision = Decision(timers=[Timer(EXPIRY, now.steady_ms + self._settings.expiry_interval_ms)])
        self._watches.loaded(now)
        for transaction in self._unfinished.values():
            if transaction.state in OPEN_STATES:
                decision.add_timers(self._watch(transaction, now))
            if transaction.state is TransactionState.PREPARED:
                decision.add_action(self._fences_of(transaction))
            elif transaction.state in ENDING_STATES:
                decision.add_action(self._markers_of(transaction))
        return decision

    # -- requests ----------------------------------------------------------------------------------------------------

    def init_producer_id(self, request: InitProducerIdRequest, now: Now) -> Decision:
        init.check_request(request, self._settings)
        transactional_id = request.transactional_id
        assert transactional_id is not None
        before = self.transactions.get(transactional_id)
        after = init.initialise(
            before,
            request,
            last_epoch=NO_EPOCH if before is None else self._last_epochs.of(before),
            terms=self._terms(now, self._transaction_version()),
        )
        if after is before:
            return Decision(response=init.response(after))
        self._last_epochs.forget(transactional_id)
        if before is not None and after.state is TransactionState.EMPTY and request.producer_id >= 0:
            self._last_epochs.raised(before, after)
        return self._change(before, after, now, init.response(after))

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        now: Now,
        *,
        version: int,
    ) -> Decision:
        """The response is an AddPartitionsToTxnResult, because a request for several transactions contains one of each.
        `version` is the transaction.version that the client uses.
        """
        before = self._known(transactional_id)
        after = add_partitions(before, producer, partitions, terms=self._terms(now, version))
        response = result_of(transactional_id, dict.fromkeys(sorted(partitions), ErrorCode.NONE))
        if after is before:
            return Decision(response=response)
        return self._change(before, after, now, response)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: frozenset[TopicPartition], now: Now
    ) -> Message:
        codes = verify_partitions(self._known(transactional_id), producer, sorted(partitions))
        return result_of(transactional_id, codes)

    def end(self, request: EndTxnRequest, now: Now, *, version: int) -> Decision:
        """`version` is the transaction.version that the client uses."""
        before = self._known(request.transactional_id)
        after = end(
            before,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            committed=request.committed,
            terms=self._terms(now, version),
        )
        current = after.client_producer
        response = EndTxnResponse()
        if version >= TRANSACTIONS_V2:
            response = EndTxnResponse(producer_id=current.producer_id, producer_epoch=current.producer_epoch)
        if after is before:
            return Decision(response=response)
        return self._change(before, after, now, response)

    def describe(self, transactional_id: str, now: Now) -> DescribedTransaction:
        if not transactional_id:
            raise Refused(ErrorCode.INVALID_REQUEST, "The transactional id is empty.")
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise Refused(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"Transactional id {transactional_id} is unknown.")
        return listing.describe(transaction)

    def list_transactions(
        self, request: ListTransactionsRequest, matches: Callable[[str], bool], now: Now
    ) -> Iterator[ListedTransaction | None]:
        """Yield each transaction, or None where a filter excludes it."""

        def age_ms(transaction: Transaction) -> int:
            """The age of a transaction; of one that may time out, by the clock that ends it."""
            if transaction.state in UNFINISHED_STATES:
                return self._watches.age_ms(transaction, now)
            return now.wall_ms - transaction.start_ms

        return listing.listed(tuple(self.transactions.values()), request, matches, age_ms)

    # -- markers and timers ------------------------------------------------------------------------------------------

    def markers_written(self, transactional_id: str, producer: ProducerIdAndEpoch, now: Now) -> Decision:
        """Complete the transaction: every partition has the marker that was written with this pair."""
        before = self.transactions.get(transactional_id)
        if before is None or before.state not in ENDING_STATES or before.producer != producer:
            return Decision()
        self._watches.touched(transactional_id, now)
        again = CompletionOf(transactional_id, producer)
        return Decision(
            records=[stored.to_record(before.completed(now.wall_ms))],
            actions=[TransactionCompleted(transactional_id)],
            if_refused=lambda code, now: Decision(timers=[Timer(again, now.steady_ms + RETRY_MS)]),
        )

    def timer_fired(self, key: Hashable, now: Now) -> Decision:
        match key:
            case TimeoutOf(transactional_id):
                return self._maybe_time_out(transactional_id, now)
            case CompletionOf(transactional_id, producer):
                return self.markers_written(transactional_id, producer, now)
            case _Expiry.EXPIRY:
                return self._forget_idle(now)
            case _:
                raise AssertionError(f"no timer has the key {key!r}")

    def _maybe_time_out(self, transactional_id: str, now: Now) -> Decision:
        self._watches.woke(transactional_id)
        before = self.transactions.get(transactional_id)
        if before is None or before.state not in OPEN_STATES:
            return Decision()
        if now.steady_ms < self._deadline_ms(before, now):
            return Decision(timers=self._watch(before, now))
        again = Decision(timers=[Timer(TimeoutOf(transactional_id), now.steady_ms + RETRY_MS)])
        terms = self._terms(now, self._transaction_version())
        try:
            after = before.fenced(version=terms.version, now_ms=terms.now_ms, next_producer_id=terms.next_producer_id)
        except Refused:  # no producer id is available, and this one's epochs are exhausted
            return again
        decision = self._change(before, after, now)
        decision.if_refused = lambda code, now: again
        return decision

    def _forget_idle(self, now: Now) -> Decision:
        """Forget the idle ids in the next slice of a round over all ids."""
        to_look_at = self._to_look_at
        if not to_look_at:
            to_look_at.extend(self.transactions)
        tombstones: list[StoredRecord] = []
        for _ in range(min(LOOK_AT_ONCE, len(to_look_at))):
            transaction = self.transactions.get(to_look_at.popleft())
            if transaction is not None and self._is_idle(transaction, now):
                tombstones.append(stored.to_record(transaction.expired()))
                if len(tombstones) == FORGET_AT_ONCE:
                    break
        next_ms = now.steady_ms + (0 if to_look_at else self._settings.expiry_interval_ms)
        return Decision(records=tombstones, timers=[Timer(EXPIRY, next_ms)], if_refused=self._forgetting_refused)

    def _is_idle(self, transaction: Transaction, now: Now) -> bool:
        return (
            transaction.state not in UNFINISHED_STATES
            and self._watches.idle_ms(transaction, now) >= self._settings.expiration_ms
        )

    def _forgetting_refused(self, code: ErrorCode, now: Now) -> Decision:
        self._to_look_at.clear()
        return Decision(timers=[Timer(EXPIRY, now.steady_ms + RETRY_MS)])

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _known(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise Refused(ErrorCode.INVALID_REQUEST, "The transactional id is empty.")
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"Transactional id {transactional_id} is unknown.")
        return transaction

    def _terms(self, now: Now, version: int) -> Terms:
        return Terms(version, now.wall_ms, self._next_producer_id)

    def _change(
        self, before: Transaction | None, after: Transaction, now: Now, response: Message | None = None
    ) -> Decision:
        transactional_id = after.transactional_id
        self._watches.touched(transactional_id, now)
        decision = Decision((stored.to_record(after),), response)
        if after.state in OPEN_STATES:
            if before is None or before.state not in OPEN_STATES:
                self._watches.started(transactional_id, now)
            decision.add_timers(self._watch(after, now))
            if after.state is TransactionState.PREPARED:
                decision.add_action(self._fences_of(after))
        elif after.state in ENDING_STATES:
            assert before is not None
            if after.client_version >= TRANSACTIONS_V2:
                self._last_epochs.raised(before, after)
            decision.add_action(self._markers_of(after))
        return decision

    def _fences_of(self, transaction: Transaction) -> WriteFences:
        return WriteFences(
            transaction.transactional_id, transaction.fence, self._coordinator_epoch, transaction.partitions
        )

    def _markers_of(self, transaction: Transaction) -> WriteMarkers:
        return WriteMarkers(
            transaction.transactional_id,
            transaction.producer,
            self._coordinator_epoch,
            transaction.partitions,
            transaction.state is TransactionState.PREPARE_COMMIT,
            transaction.client_version,
        )

    def _watch(self, transaction: Transaction, now: Now) -> list[Timer]:
        deadline_ms = self._deadline_ms(transaction, now)
        if self._watches.wakes_by(transaction.transactional_id, deadline_ms):
            return []
        return [Timer(TimeoutOf(transaction.transactional_id), deadline_ms)]

    def _deadline_ms(self, transaction: Transaction, now: Now) -> int:
        began_ms = now.steady_ms - self._watches.age_ms(transaction, now)
        if not transaction.waits_for_its_owner:
            return began_ms + transaction.timeout_ms
        deadline_ms = began_ms + self._settings.prepared_max_age_ms
        return max(deadline_ms, self._watches.least_deadline_ms(transaction, PREPARED_AFTER_LOADING_MS))
