"""The `SchemaLog` of the service, bound to one state: decisions on a state whose log was replaced are not written to
the new log.
"""

import asyncio
from collections.abc import Callable, Sequence

from kaspar.base.errors import Refused
from kaspar.registry.interfaces import LogRecord, StoreFailed, StoreTimeout
from kaspar.registry.log.follower import LogFollower
from kaspar.registry.log.position import LogReplaced
from kaspar.registry.log.writer import LogWriter


class KafkaSchemaLog:
    def __init__(
        self, follower: LogFollower, writer: LogWriter, is_current: Callable[[], bool], *, timeout_s: float
    ) -> None:
        """`is_current` returns whether this log's state is still the one that is replayed into."""
        self._follower = follower
        self._writer = writer
        self._is_current = is_current
        self._timeout_s = timeout_s

    async def append(self, records: Sequence[LogRecord]) -> None:
        self._check_current()
        await self._writer.append(records)
        self._check_current()

    async def catch_up(self) -> None:
        self._check_current()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._follower.reached(await self._follower.committed_end())
        except (OSError, Refused) as problem:  # includes TimeoutError
            why = self._follower.problem or str(problem) or "the broker is slow"
            raise StoreTimeout(f"the log was not read up to its end: {why}") from problem
        except LogReplaced as replaced:
            raise StoreFailed(f"the log was replaced: {replaced}") from replaced

    def _check_current(self) -> None:
        if not self._is_current():
            raise StoreFailed("the log was replaced; the schemas are being read again")
