"""A follower's side of an incremental fetch session (KIP-227), as Kafka's FetchSessionHandler: the leader remembers
what is fetched, so that a request names only what has changed.
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
"""Errors of a session that another one has not: the next request can be sent at once."""


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
        """All that the last request fetches, named in it or not."""
        return self._asked

    def request(self, changes: Mapping[PartitionKey, Position | None]) -> SessionRequest:
        """What the next request says, so that it fetches what the last one did, with these changes. None: it is not
        fetched now.
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
        """What the response says of the session."""
        if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.reset()
        elif error_code != ErrorCode.NONE:
            self._epoch = INITIAL_EPOCH  # the next request also closes the session that there may be
        elif session_id == NO_SESSION:
            self.reset()
        else:
            self._session_id = session_id
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1

    def reset(self) -> None:
        """Start over, without a session: its connection is lost, or the leader has closed it."""
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
