"""Incremental fetch sessions (KIP-227) as a pure core: the broker remembers what a client fetches, so that requests
only name changes.

A session belongs to any client that knows its id. Each request must have the epoch after that of the previous one;
otherwise it is refused, and the client starts over with a full fetch. When there is no room for all sessions, a
follower's is kept before a consumer's, one in use before an idle one, and a large one before a small one.
"""

import random
import uuid
from collections.abc import Iterable
from typing import Final

from kaspar.base.errors import ErrorCode, Refused
from kaspar.protocol.shapes import PartitionData

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
NO_SESSION: Final = 0
EVICT_AFTER_S: Final = 120.0

Key = tuple[str | uuid.UUID, int]


class FetchedPartition:
    """One partition as a client fetches it, and what the last response had for it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start_offset",
        "topic",
    )

    def __init__(
        self,
        topic: str | uuid.UUID,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        """The start of a follower's own log."""
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1

    @property
    def key(self) -> Key:
        return (self.topic, self.partition)

    def update(self, other: "FetchedPartition") -> None:
        """Apply what a new request says about this partition, such as another offset or limit."""
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.current_leader_epoch = other.current_leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch
        self.log_start_offset = other.log_start_offset
        if other.log_start_offset >= 0:
            # A follower ignores a response that made it truncate its log, or that came with another leader epoch. So it
            # is sent the high watermark again; otherwise it might not learn it until that moves.
            self.sent_high_watermark = -1

    def note_sent(self, result: PartitionData, size: int) -> bool:
        """Remember what the client will be sent. Returns whether that has changed, and must be in the response."""
        changed = (
            size > 0
            or result.error_code != 0
            or result.diverging_epoch is not None
            or result.preferred_read_replica >= 0
            or self.sent_high_watermark != result.high_watermark
            or self.sent_log_start_offset != result.log_start_offset
        )
        # After an error the next success is a change.
        self.sent_high_watermark = -1 if result.error_code else result.high_watermark
        self.sent_log_start_offset = -1 if result.error_code else result.log_start_offset
        return changed


class FetchSession:
    __slots__ = ("created", "epoch", "last_used", "partitions", "privileged", "session_id", "uses_topic_ids")

    def __init__(self, session_id: int, *, privileged: bool, uses_topic_ids: bool, now: float) -> None:
        self.session_id = session_id
        self.epoch = 1
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.created = now
        self.last_used = now
        self.partitions: dict[Key, FetchedPartition] = {}

    def update(self, fetch: Iterable[FetchedPartition], forget: Iterable[Key]) -> None:
        partitions = self.partitions
        for asked in fetch:
            known = partitions.get(asked.key)
            if known is None:
                partitions[asked.key] = asked
            else:
                known.update(asked)
        for key in forget:
            partitions.pop(key, None)

    def served(self, keys: Iterable[Key]) -> None:
        """Move the partitions that returned data to the end: next time the others come first, so that a limit on the
        response starves none of them.
        """
        partitions = self.partitions
        for key in keys:
            entry = partitions.pop(key, None)
            if entry is not None:
                partitions[key] = entry

    def next_epoch(self) -> None:
        self.epoch = 1 if self.epoch == 0x7FFFFFFF else self.epoch + 1

    def is_idle(self, now: float) -> bool:
        return now - self.last_used >= EVICT_AFTER_S

    def yields_to(self, newcomer: "FetchSession", now: float) -> bool:
        """Whether a new session may take this one's place."""
        if newcomer.privileged != self.privileged:
            return newcomer.privileged or self.is_idle(now)
        is_old = now - self.created >= EVICT_AFTER_S
        return self.is_idle(now) or (is_old and len(newcomer.partitions) > len(self.partitions))


class FetchSessions:
    def __init__(self, slots: int, *, seed: int | None = None) -> None:
        self.slots = slots
        self.evictions = 0
        self._sessions: dict[int, FetchSession] = {}
        self._random = random.Random(seed)

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in tuple(self._sessions.values()))

    def resume(self, session_id: int, epoch: int, *, uses_topic_ids: bool, now: float) -> FetchSession:
        """The session of an incremental fetch."""
        session = self._sessions.get(session_id)
        if session is None:
            raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {session_id}")
        if session.epoch != epoch:
            raise Refused(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH, f"session {session_id} is at epoch {session.epoch}, not {epoch}"
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise Refused(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "a session names topics either by id or by name throughout"
            )
        session.last_used = now
        return session

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def create(
        self, partitions: Iterable[FetchedPartition], *, privileged: bool, uses_topic_ids: bool, now: float
    ) -> FetchSession | None:
        """A new session, or None if there is no room for it; then the client sends full fetches."""
        session = FetchSession(self._free_id(), privileged=privileged, uses_topic_ids=uses_topic_ids, now=now)
        session.update(partitions, ())
        if not self._make_room(session, now):
            return None
        self._sessions[session.session_id] = session
        return session

    def _free_id(self) -> int:
        while True:
            candidate = self._random.randint(1, 0x7FFFFFFF)
            if candidate not in self._sessions:
                return candidate

    def _make_room(self, newcomer: FetchSession, now: float) -> bool:
        if len(self._sessions) < self.slots:
            return True
        replaceable = [session for session in self._sessions.values() if session.yields_to(newcomer, now)]
        if not replaceable:
            return False
        victim = min(
            replaceable,
            key=lambda session: (
                not session.is_idle(now),
                session.privileged,
                len(session.partitions),
                session.last_used,
            ),
        )
        del self._sessions[victim.session_id]
        self.evictions += 1
        return True
