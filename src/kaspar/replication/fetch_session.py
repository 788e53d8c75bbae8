"""A follower's side of an incremental fetch session (KIP-227), like Kafka's FetchSessionHandler: the leader remembers
which partitions are fetched, so that a request contains only the changes.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kaspar.base.errors import ErrorCode
from kaspar.replication.fetches import PartitionKey, Position

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
_LAST_EPOCH: Final = 0x7FFF_FFFF

ENDED_SESSION: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors of a session that a new session does not have: the next request can be sent at once."""


class SessionRequest(NamedTuple):
    session_id: int
    epoch: int
    named: Mapping[PartitionKey, Position]
    forgotten: tuple[PartitionKey, ...]


class FollowerFetchSession:
    __slots__ = ("_asked", "_epoch", "_session_id")

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._asked: dict[PartitionKey, Position] = {}

    @property
    def asked(self) -> Mapping[PartitionKey, Position]:
        """All partitions that the last request fetches, whether it named them or not."""
        return self._asked

    def request(self, changes: Mapping[PartitionKey, Position | None]) -> SessionRequest:
        """Build the next request, which fetches the same partitions as the last one, with these changes. None as a
        position means that the partition is not fetched now.
        """
        asked = self._asked
        named = {key: at for key, at in changes.items() if at is not None and asked.get(key) != at}
        forgotten = tuple(key for key, at in changes.items() if at is None and key in asked)
        for key in forgotten:
            del asked[key]
        asked.update(named)
        if self._epoch == INITIAL_EPOCH:
            return SessionRequest(self._session_id, INITIAL_EPOCH, dict(asked), ())
        return SessionRequest(self._session_id, self._epoch, named, forgotten)

    def responded(self, error_code: int, session_id: int) -> None:
        """Update the session from a response."""
        if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.reset()
        elif error_code != ErrorCode.NONE:
            self._epoch = INITIAL_EPOCH  # the next request also closes the session, if there is one
        elif session_id == NO_SESSION:
            self.reset()
        else:
            self._session_id = session_id
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1

    def reset(self) -> None:
        """Start over without a session: its connection is lost, or the leader has closed it."""
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
