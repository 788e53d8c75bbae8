"""A shard at work: events go in one after another, decisions are carried out, answers go out when they are committed.

Rules:
- One event at a time. What comes while a decision is carried out lines up behind it.
- The records of a decision are one batch. When it is in the log, and only then, the shard takes its records in.
- Replies and actions wait until everything in the partition's log is committed, for the shard has decided on all of
  it. With one replica that is the case at once, and a request is answered in the same turn of the loop.
- Whoever waits for an answer gets one: also when its time is up, and when this broker no longer leads the partition.
"""

import functools
from collections import deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from kaspar.base.errors import ErrorCode, Refused, StorageFailure
from kaspar.base.ids import Offset, ProducerIdAndEpoch
from kaspar.base.log import get_log
from kaspar.broker.coordination.tickets import Answer, Refusal, RequestTicket
from kaspar.coordination import Action, Decision, Now, OneRecord, Reply, Shard, StoredRecord, Ticket, Timer
from kaspar.protocol.schema import Message
from kaspar.records import Codec, Record, build_batch, build_plain_batch
from kaspar.replication.partition import Partition
from kaspar.storage import PreparedBatch, prepare, prepare_plain

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

S = TypeVar("S", bound=Shard)
Decide: TypeAlias = Callable[[S, Ticket, Now], Decision]
DecideOne: TypeAlias = Callable[[S, Now], OneRecord | None]
Wait: TypeAlias = Callable[[S, Ticket], bool]
Question: TypeAlias = Callable[[S, Now], Message]

FIRST_SEQUENCE: Final = 0
NO_SEQUENCE: Final = -1

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
    """What a client of a coordinator is told when the coordinator's log answers with this code: Kafka's choices."""
    return _CODES.get(code, code)


class _Uncommitted:
    """Replies and actions that wait for the records behind them."""

    __slots__ = ("actions", "replies")

    def __init__(self, replies: list[Reply], actions: list[Action]) -> None:
        self.replies = replies
        self.actions = actions


class ActiveShard(Generic[S]):
    def __init__(
        self,
        broker: "Broker",
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
        self._broker = broker
        self._codec = codec
        self._write_timeout_ms = write_timeout_ms
        self._perform = perform
        self._metrics = broker.metrics.topics.of(partition.topic_partition.topic)
        self._timers = broker.timers
        self._timer_keys: set[Hashable] = set()
        self._busy = False
        self._events: deque[Callable[[], None]] = deque()
        self._uncommitted: set[_Uncommitted] = set()
        self._given_up = False

    # -- events --------------------------------------------------------------------------------------------------------

    def submit(self, decide: Decide[S], refused: Refusal) -> Answer:
        ticket = RequestTicket(refused)
        if self._busy:
            self._events.append(functools.partial(self._take, decide, ticket))
            return ticket.wait_among(self.waiting)
        self._busy = True
        try:
            self._take(decide, ticket)
        finally:
            self._busy = False
            if self._events:
                self._work_off()
        if self._given_up:
            ticket.refuse(ErrorCode.NOT_COORDINATOR)
        return ticket.message or ticket.wait_among(self.waiting)

    def try_at_once(self, decide: DecideOne[S]) -> bool:
        """The short way of an event that comes to one record, which is committed when it is appended. False where it
        does not, or where it is refused: then nothing has happened, and `submit` says what is to be done.
        """
        partition = self.partition
        terms = partition.log.plain_terms
        if self._busy or terms is None or self._codec is not Codec.NONE or not partition.state.commits_alone:
            return False
        self._busy = True
        try:
            now = self._broker.now()
            one = decide(self.shard, now)
            if one is None:
                return False
            key, value, take_in = one
            batch = build_plain_batch(((key, value),), now.wall_ms)
            prepared = prepare_plain(batch, 0, len(batch), terms, now.wall_ms)
            if prepared is None:
                return False
            partition.append_as_leader(prepared, acks_all=True, now_ms=now.wall_ms)
            take_in()
        except Refused:
            return False
        except StorageFailure as failure:
            self._broker.log_directory_failed(failure)
            return False
        finally:
            self._busy = False
            if self._events:
                self._work_off()
        self._metrics.bytes_in += len(batch)
        self._metrics.messages_in += 1
        return True

    def wait_at_once(self, wait: Wait[S], refused: Refusal) -> RequestTicket | None:
        """The short way of an event after which somebody waits, and nothing else is different. None where there is more
        to it: then nothing has happened, and `submit` says what is to be done.
        """
        if self._busy:
            return None
        ticket = RequestTicket(refused)
        return ticket.wait_among(self.waiting) if wait(self.shard, ticket) else None

    def ask(self, question: Question[S], refused: Refusal) -> Answer:
        ticket = RequestTicket(refused)
        if self._busy:
            self._events.append(functools.partial(self._answer, question, ticket))
        else:
            self._answer(question, ticket)
        return ticket.message or ticket.wait_among(self.waiting)

    def run(self, decide: Callable[[S, Now], Decision]) -> None:
        """An event that nobody waits for. A refusal is nobody's, so it is logged."""
        self._events.append(functools.partial(self._run, decide))
        if not self._busy:
            self._work_off()

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """A marker that ends a transaction on this partition is in the log."""
        self._events.append(functools.partial(self.shard.replay_marker, producer, committed=committed))
        if not self._busy:
            self._work_off()

    def _work_off(self) -> None:
        """What lined up, in the order in which it came."""
        events = self._events
        while events and not self._given_up:
            self._busy = True
            try:
                events.popleft()()
            except Exception as problem:  # the edge: nobody further up knows this event
                log.exception("a coordinator met a bug", partition=self.partition.topic_partition)
                self._broker.request_failed(problem)
            finally:
                self._busy = False

    def _take(self, decide: Decide[S], ticket: RequestTicket) -> None:
        now = self._broker.now()
        try:
            decision = decide(self.shard, ticket, now)
        except Refused as refusal:
            ticket.refuse(refusal.code)
            return
        self._carry_out(decision, now)

    def _run(self, decide: Callable[[S, Now], Decision]) -> None:
        now = self._broker.now()
        try:
            decision = decide(self.shard, now)
        except Refused as refusal:
            log.warning(
                "a coordinator's own event was refused",
                partition=self.partition.topic_partition,
                code=refusal.code.name,
                reason=refusal.message,
            )
            return
        self._carry_out(decision, now)

    def _answer(self, question: Question[S], ticket: RequestTicket) -> None:
        now = self._broker.now()
        try:
            message = question(self.shard, now)
        except Refused as refusal:
            ticket.refuse(refusal.code)
            return
        if self._all_committed():
            ticket.answer(message)
        else:
            self._wait_for_commit([Reply(ticket, message)], [], now)

    # -- decisions -----------------------------------------------------------------------------------------------------

    def _carry_out(self, decision: Decision, now: Now) -> None:
        if decision.timers:
            self._set_timers(decision.timers)
        if decision.records:
            try:
                self._append(decision.records, decision.producer, now)
            except Refused as refusal:
                self._refuse(decision, refusal, now)
                return
            except StorageFailure as failure:
                self._broker.log_directory_failed(failure)
                self._refuse(decision, Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(failure)), now)
                return
        if decision.replies or decision.actions:
            if self._all_committed():
                self._deliver(decision.replies, decision.actions)
            else:
                self._wait_for_commit(decision.replies, decision.actions, now)

    def _append(self, records: list[StoredRecord], producer: ProducerIdAndEpoch | None, now: Now) -> None:
        partition, shard = self.partition, self.shard
        wall_ms = now.wall_ms
        encoded = [shard.encode(record) for record in records]
        config = partition.log.config
        if producer is None and self._codec is Codec.NONE:
            prepared = self._prepared(build_plain_batch(encoded, wall_ms), wall_ms)
        elif producer is None:
            compressed = build_batch([Record(wall_ms, *each) for each in encoded], codec=self._codec)
            prepared = self._prepared(compressed, wall_ms)
        else:
            batch = build_batch(
                [Record(wall_ms, *each) for each in encoded],
                codec=self._codec,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=FIRST_SEQUENCE,
                transactional=True,
            )
            # Every batch says so, as in Kafka: the log is not to count sequences of what the producer did not send.
            prepared = prepare(batch, 0, len(batch), config, wall_ms)._replace(base_sequence=NO_SEQUENCE)
        appended = partition.append_as_leader(prepared, acks_all=True, now_ms=wall_ms)
        self._metrics.bytes_in += prepared.end - prepared.start
        self._metrics.messages_in += len(records)
        if partition.log.unflushed_messages >= config.flush_messages:
            self._broker.syncing.ask(partition)
        try:
            for record in records:
                shard.replay(record, producer)
        except Exception as problem:
            raise AssertionError(
                f"records from offset {appended.base_offset} of {partition.topic_partition} are in the log, and its "
                f"coordinator cannot take them in: {problem!r}"
            ) from problem

    def _prepared(self, batch: bytearray, now_ms: int) -> PreparedBatch:
        log = self.partition.log
        plain = None if log.plain_terms is None else prepare_plain(batch, 0, len(batch), log.plain_terms, now_ms)
        return plain or prepare(batch, 0, len(batch), log.config, now_ms)

    def _refuse(self, decision: Decision, refusal: Refused, now: Now) -> None:
        """The log took nothing of it."""
        code = coordinator_code(refusal.code)
        if code is ErrorCode.UNKNOWN_SERVER_ERROR:
            log.error(
                "a coordinator's records were refused", partition=self.partition.topic_partition, reason=refusal.message
            )
        for ticket, _ in decision.replies:
            _request(ticket).refuse(code)
        if decision.if_refused is not None and not self._given_up:
            self._carry_out(decision.if_refused(code, now), now)

    # -- answers -------------------------------------------------------------------------------------------------------

    def _all_committed(self) -> bool:
        partition = self.partition
        return partition.state.high_watermark >= partition.log.log_end_offset

    @property
    def is_settled(self) -> bool:
        """No event is at work, and all that the shard knows is committed."""
        return not self._busy and self._all_committed()

    def _deliver(self, replies: list[Reply], actions: list[Action]) -> None:
        for ticket, message in replies:
            assert isinstance(ticket, RequestTicket)
            ticket.answer(message)
        for action in actions:
            self._perform(self.index, action)

    def _wait_for_commit(self, replies: list[Reply], actions: list[Action], now: Now) -> None:
        uncommitted = _Uncommitted(replies, actions)
        self._uncommitted.add(uncommitted)
        end_offset = Offset(self.partition.log.log_end_offset)
        if replies:
            self._timers.set(self._timed_out, uncommitted, now.steady_ms + self._write_timeout_ms)

        def committed() -> None:
            if self._given_up:
                return
            self._uncommitted.discard(uncommitted)
            self._timers.cancel(self._timed_out, uncommitted)
            if self.partition.state.high_watermark >= end_offset:
                self._deliver(uncommitted.replies, uncommitted.actions)
            else:  # woken because the partition is no longer ours to commit
                self._refuse_all(uncommitted.replies, coordinator_code(self.partition.why_not_leader().code))

        self.partition.when_committed(end_offset, committed)

    def _timed_out(self, key: Hashable) -> None:
        """Nobody waits any longer. The records are in the log, and when they are committed their actions are due."""
        assert isinstance(key, _Uncommitted)
        replies, key.replies = key.replies, []
        self._refuse_all(replies, coordinator_code(ErrorCode.REQUEST_TIMED_OUT))

    @staticmethod
    def _refuse_all(replies: list[Reply], code: ErrorCode) -> None:
        for ticket, _ in replies:
            _request(ticket).refuse(code)

    # -- timers --------------------------------------------------------------------------------------------------------

    def _set_timers(self, timers: list[Timer]) -> None:
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
        """This broker coordinates the partition no longer: whoever waits is told so, and nothing more happens here."""
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
    """Every ticket that a shard was ever handed is one of ours."""
    assert isinstance(ticket, RequestTicket)
    return ticket
