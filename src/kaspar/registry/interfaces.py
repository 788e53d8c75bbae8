"""What the registry's service and API need from the rest of the process: the log of `_schemas`, leadership, and a
connection to the leader.

The service uses no Kafka client and no socket: it decides on the leader, appends records, and reads from the state into
which the log is replayed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from kaspar.base.errors import KasparError

LogRecord: TypeAlias = tuple[bytes, bytes | None]
"""The key and value of a record of `_schemas`; a value of None is a tombstone."""

FORWARD_HEADER: Final = "X-Forward"
"""A request with the value `false` was forwarded already and is not forwarded again (Confluent's header)."""


class NotLeader(KasparError):
    """This instance is not, or no longer, the leader; nothing was written."""


class StoreTimeout(KasparError):
    """The records were not read back in time. They may or may not have been written."""


class StoreFailed(KasparError):
    """The broker rejected the records, or the transaction was aborted; nothing was written."""


class RecordTooLarge(StoreFailed):
    """The broker rejected a record because of its size; nothing was written."""


class ForwardingFailed(KasparError):
    """The leader could not be reached, or its response was lost. The request may or may not have been carried out."""


class Replayed(Protocol):
    """The state into which the log is replayed: `kaspar.registry.state.State`."""

    def replay(self, key: bytes | None, value: bytes | None, offset: int, timestamp_ms: int) -> None:
        """Apply one record of `_schemas`, in offset order. Never raises: invalid records are logged and skipped."""


class SchemaLog(Protocol):
    """The topic `_schemas`."""

    async def append(self, records: Sequence[LogRecord]) -> None:
        """Write the records in one transaction, and return once they have been replayed into the state.

        Raises NotLeader, StoreTimeout or StoreFailed.
        """

    async def catch_up(self) -> None:
        """Return once everything that was written before this call has been replayed. Raises StoreTimeout."""


class Leadership(Protocol):
    """Which instance of the registry's group makes decisions."""

    @property
    def is_leader(self) -> bool: ...

    @property
    def leader_url(self) -> str | None:
        """The base URL of the leader, without a slash at the end; None while no leader is known."""

    async def ready(self) -> None:
        """On the leader: return once its producer has fenced its predecessor and everything that the predecessor wrote
        has been replayed. Raises NotLeader or StoreTimeout."""


@dataclass(frozen=True, slots=True)
class ForwardedRequest:
    """An HTTP request as it arrived. `target` is the path with its query, still percent-encoded."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ForwardedResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Forwarder(Protocol):
    async def forward(self, leader_url: str, request: ForwardedRequest) -> ForwardedResponse:
        """Send the request to the leader with `X-Forward: false`, and return its response whatever its status is.

        Raises ForwardingFailed."""
