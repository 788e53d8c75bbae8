"""The services that every replica fetcher needs, passed as one object."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaspar.base.clock import Clock
from kaspar.base.ids import BrokerId
from kaspar.broker.replication.throttles import ReplicationThrottles
from kaspar.broker.services import CurrentSettings, Failures, Threads
from kaspar.replication.partition import Partition
from kaspar.storage import LogManager

if TYPE_CHECKING:
    from kaspar.client.asynchronous import AsyncConnection


@dataclass(frozen=True, slots=True)
class FetcherServices:
    broker_id: BrokerId
    settings: CurrentSettings
    logs: LogManager
    throttles: ReplicationThrottles
    threads: Threads
    failures: Failures
    clock: Clock
    broker_epoch: Callable[[], int]
    connect: Callable[[BrokerId, str], Awaitable["AsyncConnection"]]
    """Connects to a broker, with a client id. Raises OSError while the broker cannot be reached."""
    connection_lost: Callable[[BrokerId], None]
    """Called with a leader when the connection to it has broken."""
    ask_to_sync: Callable[[Partition], None]

    def steady_ms(self) -> int:
        return int(self.clock.monotonic() * 1000)
