"""Consume, transform, produce: what it reads and what it makes of it are committed together, in transactions.

A record becomes one of the target topic, in the partition of the same number, that says where it came from. Some
transactions are aborted on purpose. A processor that is fenced ends with exit code FENCED.
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaException, Message, Producer, TopicPartition

from tests.chaos.actors.launch import IMPATIENT, Settings, read_settings, stop_at_sigterm
from tests.chaos.actors.membership import Member
from tests.chaos.history import Derived, EndAsked, Ended, Killed

FENCED = 3
ABORTED_SHARE = 0.1
MOST_RECORDS = 40  # of one transaction
POLL_SECONDS = 0.05
TRANSACTION_TIMEOUT_MS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorSettings(Settings):
    transactional_id: str
    source: str
    target: str
    group: str
    strategy: str


class Fenced(Exception):
    """Another life of this transactional id has begun."""


class MustAbort(Exception):
    """The transaction cannot be committed any more."""


class Processor:
    def __init__(self, settings: ProcessorSettings) -> None:
        self.settings = settings
        self.journal = settings.journal()
        self.rng = random.Random(f"{settings.seed} {settings.actor}")
        self.transaction = -1
        self.positions: dict[tuple[str, int], int] = {}  # of the open transaction; empty: none is open
        self.expected: dict[tuple[str, int], int] = {}  # which offset comes next, once a partition has been read
        self.rewind_due = False
        self.member = Member(
            self.journal,
            settings.bootstrap,
            settings.group,
            settings.strategy,
            after_assign=self._find_the_group,
            before_revoke=self.finish,
            after_loss=self.abort,
            client=settings.client,
        )
        self.producer = Producer(
            {
                "bootstrap.servers": settings.bootstrap,
                **IMPATIENT,
                "transactional.id": settings.transactional_id,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": 1,
                **settings.client,
            }
        )

    def run(self) -> int:
        stop = stop_at_sigterm()
        try:
            insist(self.producer.init_transactions)
            self.member.subscribe(self.settings.source)
            while not stop.is_set():
                self._process_some()
            self.finish()
            self.member.consumer.close()
        except Fenced:
            self.journal.note(Killed(actor=self.settings.actor))
            os._exit(FENCED)  # at once: librdkafka would first leave the group, and waits for that in vain at times
        return 0

    def _find_the_group(self) -> None:
        """librdkafka does so too, but takes UNSTABLE_OFFSET_COMMIT for no offset, and begins with the first record, if
        another assignment comes before the response (rd_kafka_assignment_apply_offsets)."""
        self.expected.clear()
        self.rewind_due = True

    def _process_some(self) -> None:
        """One transaction, or part of one that a rebalance ends."""
        for _ in range(self.rng.randint(1, MOST_RECORDS)):
            if self.rewind_due and not self.positions:  # the open transaction ends first: it has not committed yet
                self._rewind()
            message = self.member.consumer.poll(POLL_SECONDS)
            if message is None:
                break
            error = message.error()
            if error is None:
                self._process(message)
            elif error.fatal():
                raise AssertionError(f"the consumer cannot go on: {error}")
        if self.positions:
            self.finish(self.rng.random() >= ABORTED_SHARE)

    def _process(self, message: Message) -> None:
        topic, partition, offset, value = message.topic(), message.partition(), message.offset(), message.value()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        assert isinstance(value, bytes)
        where = (topic, partition)
        if self.rewind_due or where not in self.member.owned:
            return  # it was on its way when that was decided
        if offset != self.expected.get(where, offset):
            self.rewind_due = True
            return
        if not self.positions:
            self.producer.begin_transaction()
            self.transaction += 1
        derived = Derived(self.settings.actor, self.transaction, topic, partition, offset, value.decode())
        try:
            self.producer.produce(self.settings.target, derived.text().encode(), partition=partition)
        except KafkaException as exception:
            # A record before this one was not delivered: librdkafka takes no more until the transaction is aborted.
            if exception.args[0].name() != "_STATE" or not self.positions:
                raise
            self.abort()
            return
        self.positions[where] = self.expected[where] = offset + 1

    def finish(self, commit: bool = True) -> None:
        """End the open transaction, if there is one: as asked, or by aborting where a commit is refused."""
        if not self.positions:
            return
        if not commit:
            self.abort()
            return
        offsets = [TopicPartition(*partition, offset) for partition, offset in self.positions.items()]
        metadata = self.member.consumer.consumer_group_metadata()
        try:
            insist(lambda: self.producer.send_offsets_to_transaction(offsets, metadata))
            self.journal.note(EndAsked(actor=self.settings.actor, transaction=self.transaction, commit=True))
            insist(self.producer.commit_transaction)
        except MustAbort:
            self.abort()
            return
        self.journal.note(Ended(actor=self.settings.actor, transaction=self.transaction, committed=True))
        self.positions.clear()

    def abort(self) -> None:
        if not self.positions:
            return
        self.journal.note(EndAsked(actor=self.settings.actor, transaction=self.transaction, commit=False))
        insist(self.producer.abort_transaction)
        self.journal.note(Ended(actor=self.settings.actor, transaction=self.transaction, committed=False))
        self.positions.clear()
        self.rewind_due = True

    def _rewind(self) -> None:
        """Go back to where the group is: what was read beyond it is to be read again."""
        held = [TopicPartition(*partition) for partition in self.member.owned]
        try:
            for found in self.member.consumer.committed(held, timeout=10) if held else ():
                if found.error is not None:
                    raise KafkaException(found.error)
                offset = max(found.offset, 0)
                self.member.consumer.seek(TopicPartition(found.topic, found.partition, offset))
                self.expected[found.topic, found.partition] = offset
        except KafkaException:
            return  # the broker is down, or a partition has only just been assigned: once more after the next poll
        self.rewind_due = False


def insist(step: Callable[[], object]) -> None:
    """Do it again while the client says that it may pass."""
    while True:
        try:
            step()
        except KafkaException as exception:
            error = exception.args[0]
            if error.fatal():
                raise Fenced from exception
            if error.txn_requires_abort():
                raise MustAbort from exception
            if not error.retriable() and error.name() not in ("_TIMED_OUT", "_TRANSPORT"):
                raise
        else:
            return


if __name__ == "__main__":
    raise SystemExit(Processor(read_settings(ProcessorSettings)).run())
