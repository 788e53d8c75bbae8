"""The services that every Fetch request needs, passed as one object."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kaspar.broker.fetch.sessions import FetchedPartition
from kaspar.broker.partitions import Partitions, partition_of
from kaspar.broker.replication.throttles import ReplicationThrottles
from kaspar.broker.services import CurrentSettings, Failures, Tasks
from kaspar.metadata.images import ImageSource
from kaspar.network.exchange import Exchange
from kaspar.network.gates import Principal
from kaspar.network.large_requests import LargeRequests, RunBlocking
from kaspar.protocol.shapes import Topic
from kaspar.replication.partition import Partition


class WaitingFetch(Protocol):
    """A request that waits at its partitions."""

    @property
    def registered_count(self) -> int:
        """The number of partitions."""
        ...

    def release(self) -> None:
        """Respond with what there is."""
        ...


class FetchAccess(Protocol):
    def denied(self, exchange: Exchange, topics: Iterable[Topic]) -> Collection[Topic]:
        """The topics that a consumer may not read. Unknown ids are not among them."""
        ...

    def may_follow(self, exchange: Exchange) -> bool:
        """Whether the client may fetch as a follower does, from every topic."""
        ...


class FetchQuota(Protocol):
    """The quota for fetches of consumers."""

    def max_fetch_bytes(self, principal: Principal, client_id: str | None) -> int:
        """The limit for one response."""
        ...

    def fetched(self, principal: Principal, client_id: str | None, size: int) -> int:
        """Count bytes of records that are about to be sent. If the result is above 0, they must not be sent, and the
        client is throttled for that time.
        """
        ...


@dataclass(frozen=True, slots=True)
class FetchServices:
    partitions: Partitions
    images: ImageSource
    settings: CurrentSettings
    failures: Failures
    tasks: Tasks
    run_blocking: RunBlocking
    large_requests: LargeRequests
    throttles: ReplicationThrottles
    access: "FetchAccess | None"
    """None without an authorizer."""
    quota: FetchQuota
    waiting: set[WaitingFetch] = field(default_factory=set)

    def find(self, wanted: FetchedPartition) -> Partition:
        return partition_of(self.partitions.find(wanted.topic), wanted.topic, wanted.partition)
