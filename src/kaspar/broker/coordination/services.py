"""What coordinators share with the rest of the broker."""

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
    """The controller, as far as coordinators need it: for their internal topics."""

    async def submit(self, event: CreateTopics) -> tuple[CreatedTopic, ...]:
        """Refused where the controller cannot be asked."""
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
    """Whether this broker's image is recent enough to go by: if not, others may coordinate what it believes to."""
    is_deleted: Callable[[TopicPartition], Awaitable[bool]]
    """Whether the cluster is known to have no such partition, whatever the image says."""
    is_clustered: bool
    """Whether other brokers may join. If not, this broker is the only one for ever."""
