"""The state of a coordinator for one partition of an internal topic: CoordinatorShard in Kafka."""

from collections.abc import Hashable
from typing import Protocol

from kaspar.base.ids import ProducerIdAndEpoch
from kaspar.coordination.decision import Decision, Now, StoredRecord


class Shard(Protocol):
    """Its methods for requests take the request and the time, those for requests that may wait a ticket too, and return
    a Decision. One that raises Refused has changed nothing. Shards are not reentrant.
    """

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        """The record of these bytes. None: its kind is not known, and it is to be skipped."""
        ...

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]: ...

    def replay(self, record: StoredRecord, producer: ProducerIdAndEpoch | None) -> None:
        """The record is in the log, as part of that producer's transaction if there is one. Never refuses. Runs in
        another thread while the shard is loaded, and nobody else knows the shard then.
        """
        ...

    def load(self, key: bytes, value: bytes | None, producer: ProducerIdAndEpoch | None) -> bool:
        """`decode` and `replay` in one, while the log is read at a start: there may be a shorter way for what is
        frequent. False: the record was passed over.
        """
        ...

    def replay_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """The transaction of that producer on this partition has ended so."""
        ...

    def loaded(self, now: Now) -> Decision:
        """All of the log is replayed, and from now on the shard is asked: what must happen first."""
        ...

    def timer_fired(self, key: Hashable, now: Now) -> Decision: ...
