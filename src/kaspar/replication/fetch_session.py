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


class SessionRequest(NamedTuple):
    session_id: int
    epoch: int
    named: Mapping[PartitionKey, Position]
    forgotten: tuple[PartitionKey, ...]


class FollowerFetchSession:
    __slots__ = ("_epoch", "_known", "_session_id")

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._known: dict[PartitionKey, Position] = {}

    def request(self, wanted: Mapping[PartitionKey, Position]) -> SessionRequest:
        """What the next request says, so that it fetches what is `wanted`."""
        if self._epoch == INITIAL_EPOCH:
            self._known = dict(wanted)
            return SessionRequest(self._session_id, INITIAL_EPOCH, self._known, ())
        known = self._known
        named = {key: position for key, position in wanted.items() if known.get(key) != position}
        forgotten = tuple(key for key in known if key not in wanted)
        for key in forgotten:
            del known[key]
        known.update(named)
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
