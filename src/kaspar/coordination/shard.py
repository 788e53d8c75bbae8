"""The state of a coordinator for one partition of an internal topic: CoordinatorShard in Kafka."""

from collections.abc import Hashable
from typing import Protocol

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.coordination.decision import Decision, Now, StoredRecord


class Shard(Protocol):
    """Methods for requests take the request and the time, those for requests that may wait also a ticket, and return a
    Decision. A method that raises Refused has changed nothing. Shards are not reentrant.
    """

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        """Decode a record. None if its kind is unknown, so that it is skipped."""
        ...

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]: ...

    def replay(self, record: StoredRecord, producer: ProducerIdAndEpoch | None) -> None:
        """Apply a record that is in the log, as part of `producer`'s transaction if there is one. Never refuses. While
        the shard is loaded this runs in another thread, and nothing else uses the shard.
        """
        ...

    def load(self, key: bytes, value: bytes | None, producer: ProducerIdAndEpoch | None) -> bool:
        """Decode and replay a record while the log is read at startup; may have a fast path for frequent records.
        Returns False if the record was skipped.
        """
        ...

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """Apply the end of that producer's transaction on this partition."""
        ...

    def loaded(self, now: Now) -> Decision:
        """Called after all of the log is replayed, before the first request. Returns what has to be done first."""
        ...

    def timer_fired(self, key: Hashable, now: Now) -> Decision: ...
