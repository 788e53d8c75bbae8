"""The group coordinator of a broker: the shards of `__consumer_offsets`, and what their decisions ask for beyond it.

What is slow runs in threads; its outcome comes back to the shard as an event, on which the shard may decide anew, for
the group may have changed meanwhile.
"""

from typing import TYPE_CHECKING

from kaspar.broker.coordination.internal_topics import consumer_offsets
from kaspar.broker.coordination.runtime import Runtime
from kaspar.broker.coordination.topics import ImageTopics
from kaspar.coordination import Action, Decision, Now
from kaspar.groups.shard import GroupShard
from kaspar.metadata import ClusterImage

if TYPE_CHECKING:
    from kaspar.broker.server import Broker


class Groups:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.runtime: Runtime[GroupShard] = Runtime(
            broker, consumer_offsets(broker.config), self._new_shard, self._perform
        )

    def start(self) -> None:
        self.runtime.follow()

    async def stop(self) -> None:
        await self.runtime.stop()

    def _new_shard(self, partition: int, leader_epoch: int) -> GroupShard:
        return GroupShard(self._broker.config, partition)

    def _perform(self, partition: int, action: Action) -> None:
        raise AssertionError(f"groups ask for nothing like {action}")

    def image_changed(self, old: ClusterImage, new: ClusterImage, changed_topics: frozenset[str]) -> None:
        if changed_topics or new.brokers is not old.brokers:
            topics = ImageTopics(new)

            def decide(shard: GroupShard, now: Now) -> Decision:
                return shard.topics_changed(topics, now)

            for partition in self.runtime.active_shards():
                self.runtime.run(partition, decide)
