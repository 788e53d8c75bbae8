"""The group coordinator of a broker: the shards of `__consumer_offsets`, and what their decisions ask for beyond it.

What takes long (resolving patterns, large assignments) runs in threads. Its outcome comes back to the shard as an event
and the shard decides anew, for the group may have changed meanwhile.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

from kaspar.base.log import get_log
from kaspar.broker.coordination.internal_topics import consumer_offsets
from kaspar.broker.coordination.runtime import Runtime
from kaspar.broker.coordination.topics import ImageTopics
from kaspar.coordination import Action, Decision, Now
from kaspar.groups.counts import GroupCounts
from kaspar.groups.patterns import ResolvePatterns
from kaspar.groups.shard import GroupShard
from kaspar.groups.target import ComputeAssignment
from kaspar.metadata import ClusterImage

if TYPE_CHECKING:
    from kaspar.broker.server import Broker

log = get_log(__name__)

E = TypeVar("E")

CONSUMER_PROTOCOL = "consumer"
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0


class Groups:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.counts = GroupCounts()
        self.runtime: Runtime[GroupShard] = Runtime(
            broker, consumer_offsets(broker.config), self._new_shard, self._perform, self._activated
        )
        self._made_under: dict[int, ClusterImage] = {}
        """What the shards that are being loaded know of the cluster."""

    def start(self) -> None:
        self.runtime.follow()

    async def stop(self) -> None:
        await self.runtime.stop()

    @property
    def serves_consumer_protocol(self) -> bool:
        """Whether the new protocol (KIP-848) may be used: the cluster has the feature, and the settings allow it."""
        broker = self._broker
        return (
            broker.image.group_version >= 1 and CONSUMER_PROTOCOL in broker.config.group_coordinator_rebalance_protocols
        )

    def _new_shard(self, partition: int, leader_epoch: int) -> GroupShard:
        image = self._made_under[partition] = self._broker.image
        shard = GroupShard(self._broker.config, partition, self.counts)
        shard.surroundings.change_topics(ImageTopics(image), image.topics)
        return shard

    def _activated(self, partition: int) -> None:
        old, new = self._made_under.pop(partition), self._broker.image
        names = old.topics.keys() | new.topics.keys() if old is not new else set[str]()
        changed = frozenset(name for name in names if old.topics.get(name) is not new.topics.get(name))
        self._tell([partition], old, new, changed)

    # -- what shards are told ------------------------------------------------------------------------------------------

    def image_changed(self, old: ClusterImage, new: ClusterImage, changed_topics: frozenset[str]) -> None:
        self._tell(self.runtime.active_shards(), old, new, changed_topics)

    def _tell(
        self, partitions: Iterable[int], old: ClusterImage, new: ClusterImage, changed_topics: frozenset[str]
    ) -> None:
        if _racks(old) != _racks(new):
            changed_topics = frozenset(new.topics)
        topics, config = ImageTopics(new), self._broker.config

        def decide(shard: GroupShard, now: Now) -> Decision:
            shard.surroundings.settings = config
            shard.surroundings.group_configs = new.group_configs
            return shard.topics_changed(topics, changed_topics, now) if changed_topics else Decision()

        for partition in partitions:
            self.runtime.run(partition, decide)

    # -- what shards ask for -------------------------------------------------------------------------------------------

    def _perform(self, partition: int, action: Action) -> None:
        match action:
            case ResolvePatterns():
                self._compute(partition, action.group_id, action.run, GroupShard.patterns_resolved)
            case ComputeAssignment():
                self._compute(partition, action.group_id, action.run, GroupShard.assignment_computed)
            case _:
                raise AssertionError(f"no shard of groups asks for {action}")

    def _compute(
        self, partition: int, group_id: str, work: Callable[[], E], then: Callable[[GroupShard, E, Now], Decision]
    ) -> None:
        """In a thread; its outcome is an event of the shard that asked for it, which waits for it. So a bug met by one
        attempt is told, and the next attempt comes later.
        """

        async def compute() -> None:
            pause_s = FIRST_PAUSE_S
            while True:
                try:
                    event = await self._broker.run_blocking(work)
                    break
                except Exception as problem:
                    log.exception("work for a group failed", group=group_id)
                    self._broker.request_failed(problem)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self.runtime.run(partition, lambda shard, now: then(shard, event, now))

        self._broker.spawn(compute(), name=f"work for group {group_id}")


def _racks(image: ClusterImage) -> dict[int, str | None]:
    return {broker_id: broker.rack for broker_id, broker in image.brokers.items()}
