"""When the next records of groups were written, according to the brokers' indexes. Only Kaspar brokers support this."""

from collections.abc import Collection
from typing import Final

from kaspar.base.clock import Clock
from kaspar.base.errors import Refused
from kaspar.client.admin.session import Admin
from kaspar.client.admin.timestamps import RecordAt, list_timestamps
from kaspar.client.core import UnsupportedByPeer
from kaspar.monitor.lag.evaluation import UNKNOWN_TIMES, RecordTimes
from kaspar.protocol.messages.list_timestamps import NO_RECORD

_FIRST_PAUSE_S: Final = 60.0
_LONGEST_PAUSE_S: Final = 3_600.0


class IndexTimes:
    """A broker that does not know the request closes the connection, as does one that is stopping. So the request is
    retried after a minute, then after two, and so on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pause_s = _FIRST_PAUSE_S
        self._ask_from = 0.0

    def read(self, admin: Admin, positions: Collection[RecordAt]) -> RecordTimes:
        if not positions or self._clock.monotonic() < self._ask_from:
            return UNKNOWN_TIMES
        try:
            found = list_timestamps(admin, positions)
        except UnsupportedByPeer:
            self._ask_from = self._clock.monotonic() + self._pause_s
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
            return UNKNOWN_TIMES
        except (Refused, OSError):  # a leader has moved or is unavailable: the next round retries
            return UNKNOWN_TIMES
        self._pause_s = _FIRST_PAUSE_S
        return RecordTimes(
            {position: timestamp for position, timestamp in found.items() if timestamp >= 0},
            frozenset(position for position, timestamp in found.items() if timestamp == NO_RECORD),
        )
