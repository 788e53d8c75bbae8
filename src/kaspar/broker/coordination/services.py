"""The services and parts of the broker that coordinators use."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from kaspar.base.clock import Clock
from kaspar.base.ids import TopicPartition
from kaspar.broker.metrics.topics import BrokerTopicMetrics
from kaspar.broker.partitions import Partitions
from kaspar.broker.produce.appender import Appender
from kaspar.broker.services import CurrentSettings, Failures, Tasks, Threads
from kaspar.broker.timers import Timers
from kaspar.controller.events import CreatedTopic, CreateTopics
from kaspar.coordination import Now
from kaspar.metadata.images import ImageSource


class TopicCreator(Protocol):
    """The part of the controller that coordinators need, to create their internal topics."""

    async def submit(self, event: CreateTopics) -> tuple[CreatedTopic, ...]:
        """Raises Refused if the controller cannot be reached."""
        ...


@dataclass(frozen=True, slots=True)
class CoordinatorServices:
    images: ImageSource
    partitions: Partitions
    settings: CurrentSettings
    controller: TopicCreator
    threads: Threads
    tasks: Tasks
    failures: Failures
    timers: Timers
    appender: Appender
    metrics: BrokerTopicMetrics
    clock: Clock
    now: Callable[[], Now]
    in_touch: Callable[[], bool]
    """Whether this broker's image is recent enough to rely on. If not, other brokers may coordinate partitions that
    this one believes it coordinates.
    """
    is_deleted: Callable[[TopicPartition], Awaitable[bool]]
    """Whether the cluster is known not to have the partition, whatever the image says."""
    is_clustered: bool
    """Whether other brokers may join. If not, this is always the only broker."""
