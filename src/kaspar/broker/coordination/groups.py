"""The group coordinator of a broker: the shards of `__consumer_offsets`, and the actions of their decisions.

Slow work (resolving patterns, large assignments) runs in threads. Its result comes back to the shard as an event, on
which the shard decides, because the group may have changed in the meantime.
"""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, TypeVar

from kaspar.base.log import get_log
from kaspar.broker.coordination.internal_topics import consumer_offsets
from kaspar.broker.coordination.runtime import Runtime
from kaspar.broker.coordination.services import CoordinatorServices
from kaspar.broker.coordination.topics import ImageTopics
from kaspar.coordination import Action, Decision, Now
from kaspar.groups.consumer.patterns import ResolvePatterns
from kaspar.groups.consumer.target import ComputeAssignment
from kaspar.groups.counts import GroupCounts
from kaspar.groups.shard import GroupShard
from kaspar.metadata import ClusterImage
from kaspar.metadata.images import ImageChange

log = get_log(__name__)

E = TypeVar("E")

GroupRuntime: TypeAlias = Runtime[GroupShard]

CONSUMER_PROTOCOL = "consumer"
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0


class Groups:
    def __init__(self, services: CoordinatorServices) -> None:
        self._services = services
        self._images = services.images
        self._settings = services.settings
        self.counts = GroupCounts()
        self.runtime: GroupRuntime = Runtime(
            services, consumer_offsets(services.settings.config), self._new_shard, self._perform, self._activated
        )
        self._missed: dict[int, ImageChange] = {}
        """How the image has changed since the shards that are being loaded were created."""

    def start(self) -> None:
        self.runtime.follow()

    async def stop(self) -> None:
        await self.runtime.stop()

    @property
    def serves_consumer_protocol(self) -> bool:
        """Whether the consumer protocol (KIP-848) may be used: the cluster has the feature, and settings allow it."""
        return (
            self._images.current.group_version >= 1
            and CONSUMER_PROTOCOL in self._settings.config.group_coordinator_rebalance_protocols
        )

    def _new_shard(self, partition: int, leader_epoch: int) -> GroupShard:
        image = self._images.current
        self._missed[partition] = ImageChange(image, image, frozenset())
        shard = GroupShard(self._settings.config, partition, self.counts)
        shard.context.change_topics(ImageTopics(image), image.topics)
        return shard

    def _activated(self, partition: int) -> None:
        self._update([partition], self._missed.pop(partition))

    # -- changes of the cluster ----------------------------------------------------------------------------------------

    def image_changed(self, change: ImageChange) -> None:
        self._missed = {partition: missed.merged_with(change) for partition, missed in self._missed.items()}
        self._update(self.runtime.active_shards(), change)

    def _update(self, partitions: Iterable[int], change: ImageChange) -> None:
        new = change.new
        changed_topics = change.changed_topics
        if _racks(change.old) != _racks(new):
            changed_topics |= new.topics.keys()
        deleted: defaultdict[str, set[uuid.UUID]] = defaultdict(set)
        for topic in change.deleted_topics:
            deleted[topic.name].add(topic.topic_id)
        topics, config = ImageTopics(new), self._settings.config

        def decide(shard: GroupShard, now: Now) -> Decision:
            shard.context.settings = config
            shard.context.group_configs = new.group_configs
            if not changed_topics and not deleted:
                return Decision()
            return shard.topics_changed(topics, changed_topics, now, deleted=deleted)

        for partition in partitions:
            self.runtime.run(partition, decide)

    # -- actions of shards ---------------------------------------------------------------------------------------------

    def _perform(self, partition: int, action: Action) -> None:
        match action:
            case ResolvePatterns():
                describes = action.describes
                self._compute(
                    partition,
                    action.group_id,
                    action.run,
                    lambda shard, event, now: shard.patterns_resolved(event.only(describes), now),
                )
            case ComputeAssignment():
                self._compute(partition, action.group_id, action.run, GroupShard.assignment_computed)
            case _:
                raise AssertionError(f"no shard of groups asks for {action}")

    def _compute(
        self, partition: int, group_id: str, work: Callable[[], E], then: Callable[[GroupShard, E, Now], Decision]
    ) -> None:
        """Run work in a thread, and give its result to the shard as an event. The shard waits for it, so work that
        fails is logged and retried.
        """

        async def compute() -> None:
            pause_s = FIRST_PAUSE_S
            while True:
                try:
                    event = await self._services.threads.run_blocking(work)
                    break
                except Exception as problem:
                    log.exception("work for a group failed", group=group_id)
                    self._services.failures.on_bug(problem)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self.runtime.run(partition, lambda shard, now: then(shard, event, now))

        self._services.tasks.spawn(compute(), name=f"work for group {group_id}")


def _racks(image: ClusterImage) -> dict[int, str | None]:
    return {broker_id: broker.rack for broker_id, broker in image.brokers.items()}
