"""A consumer that notes which partitions it holds, in which generation, as a member of its group."""

import struct
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from confluent_kafka import Consumer, TopicPartition

from tests.chaos.actors.launch import IMPATIENT
from tests.chaos.history import Journal, Lost, Owns

GENERATION_AT = 7  # in librdkafka's group metadata, behind its name and version
CONSUMER_PROTOCOL = "consumer"
COOPERATIVE = "cooperative-sticky"
SESSION_TIMEOUT_MS = 2000
NO_SETTINGS: Mapping[str, str | int] = MappingProxyType({})
HEARTBEAT_INTERVAL_MS = 200


class Member:
    """`before_revoke` is called while the partitions are still this member's, `after_loss` when they are not."""

    def __init__(
        self,
        journal: Journal,
        bootstrap: str,
        group: str,
        strategy: str,
        *,
        after_assign: Callable[[], None],
        before_revoke: Callable[[], None],
        after_loss: Callable[[], None],
        instance_id: str | None = None,
        client: Mapping[str, str | int] = NO_SETTINGS,
    ) -> None:
        self.owned: set[tuple[str, int]] = set()
        self._journal = journal
        self._group = group
        self._incremental = strategy in (CONSUMER_PROTOCOL, COOPERATIVE)
        self._after_assign = after_assign
        self._before_revoke = before_revoke
        self._after_loss = after_loss
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                **IMPATIENT,
                "group.id": group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "fetch.wait.max.ms": 20,
                **_protocol(strategy),
                **({"group.instance.id": instance_id} if instance_id else {}),
                **client,
            }
        )

    def subscribe(self, topic: str) -> None:
        self.consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def epoch(self) -> int:
        """The generation, or the member's epoch. librdkafka does not expose it."""
        metadata = bytes(self.consumer.consumer_group_metadata())
        epoch: int = struct.unpack_from("=i", metadata, GENERATION_AT)[0]
        return epoch

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._own(self.owned | _names(partitions) if self._incremental else _names(partitions))
        self._after_assign()

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._before_revoke()
        self._own(self.owned - _names(partitions))

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._journal.note(Lost(actor=self._journal.actor, group=self._group))
        self._own(set())
        self._after_loss()

    def _own(self, partitions: set[tuple[str, int]]) -> None:
        self.owned = partitions
        held = tuple(sorted(partitions))
        self._journal.note(
            Owns(
                actor=self._journal.actor,
                group=self._group,
                member_id=self.consumer.memberid() or "",
                epoch=self.epoch(),
                partitions=held,
            )
        )


def _names(partitions: Iterable[TopicPartition]) -> set[tuple[str, int]]:
    return {(each.topic, each.partition) for each in partitions}


def _protocol(strategy: str) -> dict[str, str | int]:
    if strategy == CONSUMER_PROTOCOL:  # the broker says how often a heartbeat comes
        return {"group.protocol": CONSUMER_PROTOCOL}
    return {
        "group.protocol": "classic",
        "partition.assignment.strategy": strategy,
        "session.timeout.ms": SESSION_TIMEOUT_MS,
        "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
    }
