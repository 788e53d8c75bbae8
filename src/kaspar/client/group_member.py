"""A member of a consumer group with the protocol of KIP-848: the coordinator assigns partitions in heartbeat responses.

It is not a consumer: the caller decides what to do with the assigned partitions. It calls `maybe_heartbeat` regularly,
which returns whether the assignment has changed. A member that was fenced joins again, without partitions.
"""

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence

from kaspar.base.errors import ErrorCode, Refused
from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import Client
from kaspar.client.coordinators import CoordinatorKind, request_coordinator
from kaspar.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    RequestTopicPartitions,
)

_JOINS = 0
_LEAVES = -1
_FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_WITHOUT_ASSIGNMENT_S = 0.1  # the heartbeat interval until the member has partitions


class GroupMember:
    def __init__(
        self,
        client: Client,
        group_id: str,
        topics: Sequence[str],
        *,
        rebalance_timeout_ms: int = 300_000,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.member_id = str(uuid.uuid4())
        self.epoch = _JOINS
        self.partitions: frozenset[TopicPartition] = frozenset()
        self._client = client
        self._group_id = group_id
        self._topics = tuple(topics)
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._clock_s = clock_s
        self._due_s = clock_s()
        self._has_joined = False

    @property
    def due_in_s(self) -> float:
        """The time until the next heartbeat."""
        return max(0.0, self._due_s - self._clock_s())

    def maybe_heartbeat(self) -> bool:
        """Send a heartbeat if it is due. True if the assignment has changed. Raises Refused and OSError."""
        return self.due_in_s == 0 and self._heartbeat()

    def leave(self) -> None:
        if self._has_joined:
            self._has_joined = False
            self._request(_LEAVES, owned=None)

    def _heartbeat(self) -> bool:
        try:
            response = self._request(self.epoch, owned=self.partitions)
        except Refused as refused:
            if refused.code not in _FENCED or self.epoch == _JOINS:
                raise
            self.epoch = _JOINS
            had, self.partitions = self.partitions, frozenset()
            return bool(had)
        self._has_joined = True
        self.epoch = response.member_epoch
        changed = response.assignment is not None and self._assign(response.assignment)
        interval_s = response.heartbeat_interval_ms / 1000
        if changed:
            self._due_s = self._clock_s()  # the coordinator waits for the member to acknowledge its assignment
        else:
            self._due_s = self._clock_s() + (interval_s if self.partitions else min(interval_s, _WITHOUT_ASSIGNMENT_S))
        return changed

    def _assign(self, assignment: Assignment) -> bool:
        known = self._client.refresh_metadata(list(self._topics))
        names = {topic.topic_id: topic.name for topic in known.topics}
        assigned = frozenset(
            TopicPartition(name, partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
            if (name := names.get(topic.topic_id)) is not None
        )
        had, self.partitions = self.partitions, assigned
        return assigned != had

    def _request(self, epoch: int, owned: frozenset[TopicPartition] | None) -> ConsumerGroupHeartbeatResponse:
        joins = epoch == _JOINS
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=self._rebalance_timeout_ms if joins else -1,
            subscribed_topic_names=self._topics if joins else None,
            topic_partitions=() if joins else None if owned is None else self._by_topic_id(owned),
        )
        response = self._client.run(
            request_coordinator(
                self._client.core,
                CoordinatorKind.GROUP,
                self._group_id,
                request,
                ConsumerGroupHeartbeatResponse,
                resend=True,
            )
        )
        if response.error_code != ErrorCode.NONE:
            code = ErrorCode(response.error_code)
            raise Refused(code, response.error_message or f"group {self._group_id}: {code.name}")
        return response

    def _by_topic_id(self, partitions: frozenset[TopicPartition]) -> tuple[RequestTopicPartitions, ...]:
        by_topic: dict[str, list[int]] = defaultdict(list)
        for topic, partition in sorted(partitions):
            by_topic[topic].append(partition)
        return tuple(
            RequestTopicPartitions(topic_id=self._client.topic_id_of(topic), partitions=tuple(each))
            for topic, each in by_topic.items()
        )
