"""Reads the replicas of partitions from the brokers that have them, both leaders and followers.

A broker lets a debugging consumer, whose replica id is -2, read from a follower. Requests are sent to all brokers
before the first response is awaited, so a round takes as long as its slowest broker.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self
from uuid import UUID

from kaspar.base.errors import ErrorCode
from kaspar.base.ids import TopicPartition
from kaspar.client import Client, Connection
from kaspar.client.offsets import by_topic
from kaspar.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from kaspar.tools.replica_verification.comparison import Fetched

DEBUGGING_CONSUMER: Final = -2
RETRY_S: Final = 0.5


class ReplicaReader:
    def __init__(
        self,
        client: Client,
        topic_ids: Mapping[str, UUID],
        replicas: Mapping[TopicPartition, Sequence[int]],
        *,
        fetch_size: int,
        max_wait_ms: int,
    ) -> None:
        self._client = client
        self._topic_ids = topic_ids
        self._topic_names = {topic_id: name for name, topic_id in topic_ids.items()}
        self._replicas = replicas
        self._of_broker: dict[int, list[TopicPartition]] = defaultdict(list)
        for where, broker_ids in replicas.items():
            for broker_id in broker_ids:
                self._of_broker[broker_id].append(where)
        self._fetch_size = fetch_size
        self._max_wait_ms = max_wait_ms
        self._connections: dict[int, Connection] = {}

    def read(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, dict[int, Fetched]]:
        """The batches of each replica, starting at these offsets. A replica that cannot be read now has none."""
        sent = [broker_id for broker_id in self._of_broker if self._send(broker_id, offsets)]
        fetched = {where: dict.fromkeys(broker_ids, Fetched()) for where, broker_ids in self._replicas.items()}
        for broker_id in sent:
            for where, each in self._receive(broker_id).items():
                fetched[where][broker_id] = each
        if len(self._connections) < len(self._of_broker):
            time.sleep(RETRY_S)
        return fetched

    def _send(self, broker_id: int, offsets: Mapping[TopicPartition, int]) -> bool:
        try:
            if broker_id not in self._connections:
                self._connections[broker_id] = self._client.connect(broker_id)
            self._connections[broker_id].send(self._request(self._of_broker[broker_id], offsets))
        except OSError:
            self._disconnect(broker_id)
            return False
        return True

    def _request(self, partitions: Sequence[TopicPartition], offsets: Mapping[TopicPartition, int]) -> FetchRequest:
        return FetchRequest(
            replica_id=DEBUGGING_CONSUMER,
            replica_state=ReplicaState(replica_id=DEBUGGING_CONSUMER),
            max_wait_ms=self._max_wait_ms,
            min_bytes=1,
            topics=tuple(
                FetchTopic(
                    topic=topic,
                    topic_id=self._topic_ids[topic],
                    partitions=tuple(
                        FetchPartition(
                            partition=number,
                            fetch_offset=offsets[TopicPartition(topic, number)],
                            log_start_offset=0,
                            partition_max_bytes=self._fetch_size,
                        )
                        for number in numbers
                    ),
                )
                for topic, numbers in by_topic(partitions).items()
            ),
        )

    def _receive(self, broker_id: int) -> dict[TopicPartition, Fetched]:
        try:
            response = self._connections[broker_id].receive().message
        except OSError:
            self._disconnect(broker_id)
            return {}
        assert isinstance(response, FetchResponse)
        return {
            TopicPartition(topic.topic or self._topic_names[topic.topic_id], each.partition_index): Fetched(
                each.high_watermark, each.records or b""
            )
            for topic in response.responses
            for each in topic.partitions
            if each.error_code == ErrorCode.NONE
        }

    def _disconnect(self, broker_id: int) -> None:
        if broker_id in self._connections:
            self._connections.pop(broker_id).close()

    def close(self) -> None:
        for broker_id in list(self._connections):
            self._disconnect(broker_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
