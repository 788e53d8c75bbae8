"""A loaded shard: it processes events one by one, carries out their decisions, and responds when they are committed.

Rules:
- One event at a time. Events that arrive while a decision is carried out are queued.
- The records of a decision are one batch. The shard replays them once the batch is in the log, and only then.
- Responses, replies and actions wait until everything in the partition's log is committed, because the shard's decision
  may depend on all of it. With one replica they need not wait, and a request has its response in the same turn of the
  loop.
- Every request gets a response, even after a timeout, and when this broker no longer leads the partition.
"""

import functools
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset, ProducerIdAndEpoch
from kaspar.base.log import get_log
from kaspar.broker.coordination.services import CoordinatorServices
from kaspar.broker.coordination.tickets import Refusal, RequestTicket, Response
from kaspar.coordination import Action, Decision, EncodedRecord, Now, Reply, Shard, Ticket, Timer
from kaspar.protocol.schema import Message
from kaspar.records import Codec, Record, build_batch, build_plain_batch
from kaspar.replication.partition import Partition

log = get_log(__name__)

S = TypeVar("S", bound=Shard)
Decide: TypeAlias = Callable[[S, Now], Decision]
Question: TypeAlias = Callable[[S, Now], Message]

FIRST_SEQUENCE: Final = 0

_CODES: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def coordinator_code(code: ErrorCode) -> ErrorCode:
    """The error that clients get when a coordinator's log refuses records with `code`: Kafka's
    handleOperationException.
    """
    return _CODES.get(code, code)


class _Uncommitted:
    """Replies and actions that wait until the records they depend on are committed."""

    __slots__ = ("actions", "replies")

    def __init__(self, replies: Sequence[Reply], actions: Sequence[Action]) -> None:
        self.replies = replies
        self.actions = actions


class ActiveShard(Generic[S]):
    def __init__(
        self,
        services: CoordinatorServices,
        partition: Partition,
        shard: S,
        *,
        codec: Codec,
        write_timeout_ms: int,
        perform: Callable[[int, Action], None],
    ) -> None:
        self.shard = shard
        self.partition = partition
        self.leader_epoch = partition.state.leadership.leader_epoch
        self.index = partition.topic_partition.partition
        self.waiting: set[RequestTicket] = set()
        self._services = services
        self._now = services.now
        self._codec = codec
        self._write_timeout_ms = write_timeout_ms
        self._perform = perform
        self._metrics = services.metrics.of(partition.topic_partition.topic)
        self._timers = services.timers
        self._timer_keys: set[Hashable] = set()
        self._busy = False
        self._events: deque[Callable[[], None]] = deque()
        self._uncommitted: set[_Uncommitted] = set()
        self._given_up = False

    # -- events --------------------------------------------------------------------------------------------------------

    def submit(self, decide: Decide[S], refused: Refusal, ticket: RequestTicket | None = None) -> Response:
        if self._busy:
            ticket = ticket or RequestTicket(refused)
            self._events.append(functools.partial(self._submit_later, decide, ticket))
            return ticket.wait_among(self.waiting)
        self._busy = True
        try:
            now = self._now()
            response: Response | None
            try:
                decision = decide(self.shard, now)
            except Refused as refusal:
                response = refused(refusal.code)
            else:
                response = self._carry_out(decision, now, refused, ticket)
        finally:
            self._busy = False
            if self._events:
                self._drain()
        if response is not None:
            return response
        assert ticket is not None, "a request that may wait has a ticket"
        if self._given_up:
            ticket.refuse(ErrorCode.NOT_COORDINATOR)
        return ticket.message or ticket.wait_among(self.waiting)

    def try_now(self, decide: Decide[S]) -> Message | None:
        """Carry out an event whose response is ready at once, and return the response. None if its records would not be
        committed at once, or are refused. In that case none are in the log, `if_refused` has been applied, and the
        caller uses `submit`, which decides again.
        """
        partition = self.partition
        is_committed_when_appended = partition.state.commits_alone and partition.log.plain_terms is not None
        if self._busy or not is_committed_when_appended:
            return None
        self._busy = True
        try:
            now = self._now()
            decision = decide(self.shard, now)
            assert decision.response is not None, "only what has a response at once can be carried out now"
            if self._append(decision, now) is not None:
                return None
            if decision.replies or decision.actions:
                self._deliver(decision.replies, decision.actions)
        except Refused:
            return None
        finally:
            self._busy = False
            if self._events:
                self._drain()
        return decision.response

    def ask(self, question: Question[S], refused: Refusal) -> Response:
        return self.submit(lambda shard, now: Decision(response=question(shard, now)), refused)

    def run(self, decide: Decide[S]) -> None:
        """Process an event of the coordinator itself. A refusal is logged."""
        self._events.append(functools.partial(self._run, decide))
        if not self._busy:
            self._drain()

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Replay a marker in the partition's log that ends a transaction."""
        self._events.append(functools.partial(self.shard.replay_marker, producer, committed=committed))
        if not self._busy:
            self._drain()

    def _drain(self) -> None:
        """Process the queued events in order."""
        events = self._events
        while events and not self._given_up:
            self._busy = True
            try:
                events.popleft()()
            except Exception as problem:  # the edge: there is no caller for this event
                log.exception("unexpected error in a coordinator", partition=self.partition.topic_partition)
                self._services.failures.on_bug(problem)
            finally:
                self._busy = False

    def _submit_later(self, decide: Decide[S], ticket: RequestTicket) -> None:
        now = self._now()
        try:
            response = self._carry_out(decide(self.shard, now), now, ticket.refused, ticket)
        except Refused as refusal:
            ticket.refuse(refusal.code)
        else:
            if isinstance(response, Message):
                ticket.respond(response)

    def _run(self, decide: Decide[S]) -> None:
        now = self._now()
        try:
            decision = decide(self.shard, now)
        except Refused as refusal:
            log.warning(
                "a coordinator's own event was rejected",
                partition=self.partition.topic_partition,
                code=refusal.code.name,
                reason=refusal.message,
            )
            return
        self._carry_out(decision, now)

    # -- decisions -----------------------------------------------------------------------------------------------------

    def _carry_out(
        self, decision: Decision, now: Now, refused: Refusal | None = None, ticket: RequestTicket | None = None
    ) -> Response | None:
        """Append a decision's records. Returns the response to its request, or the ticket on which it waits until they
        are committed. None if the decision has no response, or there is no request (`refused` is None).
        """
        code = self._append(decision, now)
        if code is not None:
            return None if refused is None or decision.response is None else refused(code)
        if not self._all_committed():
            return self._wait_for_commit(decision, now, refused, ticket)
        if decision.replies or decision.actions:
            self._deliver(decision.replies, decision.actions)
        return decision.response

    def _append(self, decision: Decision, now: Now) -> ErrorCode | None:
        """Set a decision's timers, append its records and replay them. Returns an error if the log refuses them."""
        if decision.timers:
            self._set_timers(decision.timers)
        records = decision.records
        if not records:
            return None
        partition, shard, producer, wall_ms = self.partition, self.shard, decision.producer, now.wall_ms
        try:
            encoded = [each.encoded if type(each) is EncodedRecord else shard.encode(each) for each in records]
            appended, batch = self._services.appender.append_own(
                partition, self._build(encoded, producer, wall_ms), now_ms=wall_ms, counts_sequence=producer is None
            )
        except Refused as refusal:
            return self._refuse(decision, refusal, now)
        except StorageFailure as failure:
            self._services.failures.log_directory_failed(failure)
            return self._refuse(decision, Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(failure)), now)
        metrics = self._metrics
        metrics.bytes_in += batch.end - batch.start
        metrics.messages_in += len(records)
        try:
            for record in records:
                if type(record) is EncodedRecord:
                    record.replay()
                else:
                    shard.replay(record, producer)
        except Exception as problem:
            raise AssertionError(
                f"records from offset {appended.base_offset} of {partition.topic_partition} are in the log, and its "
                f"coordinator cannot replay them: {problem!r}"
            ) from problem
        return None

    def _build(
        self, encoded: Sequence[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch | None, wall_ms: int
    ) -> bytearray:
        """Build one batch of the records. In a transaction it has the first sequence, like such batches in Kafka."""
        if producer is None and self._codec is Codec.NONE:
            return build_plain_batch(encoded, wall_ms)
        records = [Record(wall_ms, *each) for each in encoded]
        if producer is None:
            return build_batch(records, codec=self._codec)
        return build_batch(
            records,
            codec=self._codec,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=FIRST_SEQUENCE,
            transactional=True,
        )

    def _refuse(self, decision: Decision, refusal: Refused, now: Now) -> ErrorCode:
        """Handle a decision whose records were not appended."""
        code = coordinator_code(refusal.code)
        if code is ErrorCode.UNKNOWN_SERVER_ERROR:
            log.error(
                "a coordinator's records were rejected",
                partition=self.partition.topic_partition,
                reason=refusal.message,
            )
        self._refuse_all(decision.replies, code)
        if decision.if_refused is not None and not self._given_up:
            self._carry_out(decision.if_refused(code, now), now)
        return code

    # -- responses -----------------------------------------------------------------------------------------------------

    def _all_committed(self) -> bool:
        partition = self.partition
        return partition.state.high_watermark >= partition.log.log_end_offset

    def _deliver(self, replies: Sequence[Reply], actions: Sequence[Action]) -> None:
        for ticket, message in replies:
            assert isinstance(ticket, RequestTicket)
            ticket.respond(message)
        for action in actions:
            self._perform(self.index, action)

    def _wait_for_commit(
        self, decision: Decision, now: Now, refused: Refusal | None, ticket: RequestTicket | None
    ) -> RequestTicket | None:
        replies = decision.replies
        waiting = None
        if decision.response is not None and refused is not None:
            waiting = (ticket or RequestTicket(refused)).wait_among(self.waiting)
            replies = [Reply(waiting, decision.response), *replies]
        if replies or decision.actions:
            self._hold_back(_Uncommitted(replies, decision.actions), now)
        return waiting

    def _hold_back(self, uncommitted: _Uncommitted, now: Now) -> None:
        self._uncommitted.add(uncommitted)
        end_offset = Offset(self.partition.log.log_end_offset)
        if uncommitted.replies:
            self._timers.set(self._timed_out, uncommitted, now.steady_ms + self._write_timeout_ms)

        def committed() -> None:
            if self._given_up:
                return
            self._uncommitted.discard(uncommitted)
            self._timers.cancel(self._timed_out, uncommitted)
            if self.partition.state.high_watermark >= end_offset:
                self._deliver(uncommitted.replies, uncommitted.actions)
            else:  # woken because this broker no longer leads the partition
                self._refuse_all(uncommitted.replies, coordinator_code(self.partition.why_not_leader().code))

        self.partition.when_committed(end_offset, committed)

    def _timed_out(self, key: Hashable) -> None:
        """Refuse a decision's replies. Its records are in the log, and its actions follow when they are committed."""
        assert isinstance(key, _Uncommitted)
        replies, key.replies = key.replies, ()
        self._refuse_all(replies, coordinator_code(ErrorCode.REQUEST_TIMED_OUT))

    @staticmethod
    def _refuse_all(replies: Sequence[Reply], code: ErrorCode) -> None:
        for ticket, _ in replies:
            _request(ticket).refuse(code)

    # -- timers --------------------------------------------------------------------------------------------------------

    def _set_timers(self, timers: Sequence[Timer]) -> None:
        for key, at_ms in timers:
            if at_ms is not None:
                self._timer_keys.add(key)
                self._timers.set(self._timer_fired, key, at_ms)
            elif key in self._timer_keys:
                self._timer_keys.remove(key)
                self._timers.cancel(self._timer_fired, key)

    def _timer_fired(self, key: Hashable) -> None:
        self._timer_keys.discard(key)
        self.run(lambda shard, now: shard.timer_fired(key, now))

    # -- the end -------------------------------------------------------------------------------------------------------

    def give_up(self, code: ErrorCode) -> None:
        """Refuse the waiting requests and do nothing more: this broker no longer coordinates the partition."""
        if self._given_up:
            return
        self._given_up = True
        for key in self._timer_keys:
            self._timers.cancel(self._timer_fired, key)
        self._timer_keys.clear()
        for uncommitted in self._uncommitted:
            self._timers.cancel(self._timed_out, uncommitted)
            self._refuse_all(uncommitted.replies, code)
        self._uncommitted.clear()
        self._events.clear()
        for ticket in tuple(self.waiting):
            ticket.refuse(code)


def _request(ticket: Ticket) -> RequestTicket:
    """Narrow the type: all tickets that shards get are RequestTickets."""
    assert isinstance(ticket, RequestTicket)
    return ticket
