"""Members of consumer groups (KIP-848) in single steps: a test decides what each heartbeat says, and sees the response.

one = RawConsumer(client, "readers", topics=("orders",))
one.join()
one.heartbeat(topic_partitions=one.reported)
"""

import uuid
from dataclasses import dataclass, field
from typing import Any

from kaspar.base.errors import ErrorCode
from kaspar.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kaspar.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)
from tests.peers.raw_client import RawClient

HEARTBEAT, DESCRIBE = 1, 1
REBALANCE_MS = 20_000


@dataclass
class RawConsumer:
    client: RawClient
    group_id: str
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    member_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    epoch: int = 0
    owned: set[tuple[uuid.UUID, int]] = field(default_factory=set)

    def say(self, epoch: int, version: int = HEARTBEAT, **said: Any) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat with these fields, and its response; the client keeps nothing of it."""
        words = {"instance_id": self.instance_id, "topic_partitions": None, **said}
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=epoch, **words
        )
        return self.client.call(request, ConsumerGroupHeartbeatResponse, version)

    def join(self, version: int = HEARTBEAT) -> ConsumerGroupHeartbeatResponse:
        self.owned = set()
        return self._take(self.say(0, version, **self.everything))

    @property
    def everything(self) -> dict[str, Any]:
        return {
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": self.topics,
            "subscribed_topic_regex": self.pattern,
            "server_assignor": self.assignor,
            "topic_partitions": self.reported,
        }

    def heartbeat(self, **said: Any) -> ConsumerGroupHeartbeatResponse:
        return self._take(self.say(self.epoch, **said))

    def step(self) -> ConsumerGroupHeartbeatResponse:
        """The member has applied its assignment, and reports what it owns."""
        return self.heartbeat(topic_partitions=self.reported)

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        return self.say(epoch)

    @property
    def reported(self) -> tuple[RequestTopicPartitions, ...]:
        return tuple(
            RequestTopicPartitions(
                topic_id=topic, partitions=tuple(sorted(each for owner, each in self.owned if owner == topic))
            )
            for topic in sorted({topic for topic, _ in self.owned})
        )

    @property
    def partitions(self) -> list[int]:
        return sorted(partition for _, partition in self.owned)

    def _take(self, response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        if response.error_code == ErrorCode.NONE:
            self.member_id = response.member_id or self.member_id
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.owned = {
                    (topic.topic_id, partition)
                    for topic in response.assignment.topic_partitions
                    for partition in topic.partitions
                }
        return response


def describe_consumer_group(
    client: RawClient, group_id: str, version: int = DESCRIBE, *, operations: bool = False
) -> DescribedGroup:
    request = ConsumerGroupDescribeRequest(group_ids=(group_id,), include_authorized_operations=operations)
    (group,) = client.call(request, ConsumerGroupDescribeResponse, version).groups
    return group
