"""A member of a group that reads and commits as it goes, without transactions."""

import random
import time
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition

from tests.chaos.actors.launch import Settings, read_settings, stop_at_sigterm
from tests.chaos.actors.membership import Member
from tests.chaos.history import CommitAcknowledged, CommitAsked, OffsetFetched

MOST_RECORDS = 20  # between two commits
POLL_SECONDS = 0.05
NO_LONGER_A_MEMBER = (
    "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID",
    "REBALANCE_IN_PROGRESS",
    "FENCED_MEMBER_EPOCH",
    "STALE_MEMBER_EPOCH",
    "FENCED_INSTANCE_ID",
    "_ASSIGNMENT_LOST",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings(Settings):
    topic: str
    group: str
    strategy: str


class CommittingMember:
    def __init__(self, settings: MemberSettings) -> None:
        self.settings = settings
        self.journal = settings.journal()
        self.rng = random.Random(f"{settings.seed} {settings.actor}")
        self.stop = stop_at_sigterm()
        self.read_up_to: dict[tuple[str, int], int] = {}  # and not committed yet
        self.member = Member(
            self.journal,
            settings.bootstrap,
            settings.group,
            settings.strategy,
            after_assign=self._ask_where_the_group_is,
            before_revoke=self._commit,
            after_loss=self.read_up_to.clear,
            client=settings.client,
        )

    def run(self) -> int:
        self.member.subscribe(self.settings.topic)
        while not self.stop.is_set():
            for _ in range(self.rng.randint(1, MOST_RECORDS)):
                message = self.member.consumer.poll(POLL_SECONDS)
                if message is None:
                    break
                error = message.error()
                if error is None:
                    topic, partition, offset = message.topic(), message.partition(), message.offset()
                    assert topic is not None
                    assert partition is not None
                    assert offset is not None
                    self.read_up_to[topic, partition] = offset + 1
                elif error.fatal():
                    raise AssertionError(f"the consumer cannot go on: {error}")
            self._commit()
        self.member.consumer.close()
        return 0

    def _commit(self) -> None:
        """Until it is acknowledged, or this is no longer the one to commit."""
        read = {where: offset for where, offset in self.read_up_to.items() if where in self.member.owned}
        self.read_up_to.clear()
        if not read:
            return
        actor, group = self.settings.actor, self.settings.group
        self.journal.note(
            *(
                CommitAsked(actor=actor, group=group, topic=topic, partition=partition, offset=offset)
                for (topic, partition), offset in read.items()
            )
        )
        offsets = [TopicPartition(*where, offset) for where, offset in read.items()]
        while True:
            try:
                responses = self.member.consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as exception:
                if exception.args[0].name() in NO_LONGER_A_MEMBER:
                    return
                continue  # the broker is down or starts
            break
        self.journal.note(
            *(
                CommitAcknowledged(
                    actor=actor, group=group, topic=each.topic, partition=each.partition, offset=each.offset
                )
                for each in responses or ()
                if each.error is None
            )
        )

    def _ask_where_the_group_is(self) -> None:
        """Not while it closes: librdkafka assigns even then, but the question would stand there until it times out."""
        if self.stop.is_set():
            return
        held = [TopicPartition(*where) for where in self.member.owned]
        asked_ns = time.monotonic_ns()
        try:
            responses = self.member.consumer.committed(held, timeout=10) if held else []
        except KafkaException:
            return  # nothing was reported
        self.journal.note(
            *(
                OffsetFetched(
                    actor=self.settings.actor,
                    asked_ns=asked_ns,
                    group=self.settings.group,
                    topic=each.topic,
                    partition=each.partition,
                    offset=max(each.offset, -1),
                )
                for each in responses
                if each.error is None
            )
        )


if __name__ == "__main__":
    raise SystemExit(CommittingMember(read_settings(MemberSettings)).run())
