"""Deletes processed records from a sub-topology's repartition topics, which have no retention (as Kafka Streams does
every repartition.purge.interval.ms).

Only records before the group's committed offsets are deleted. Offsets are committed when their records are processed
and Spark has recorded it, so a repeated batch does not need records before them.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from kaspar.base.errors import KasparError, Refused
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log

log = get_log(__name__)

INTERVAL_S: Final = 30.0

Committed = Callable[[], Mapping[TopicPartition, int]]
Delete = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | Refused]]


class RepartitionPurge:
    def __init__(
        self,
        topics: Collection[str],
        committed: Committed,
        delete: Delete,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topics = frozenset(topics)
        self._committed = committed
        self._delete = delete
        self._clock = clock
        self._next = clock() + INTERVAL_S
        self._purged: dict[TopicPartition, int] = {}

    def after_batch(self) -> None:
        """Called after each batch. A failure is only logged: the next purge deletes these records too."""
        if not self._topics or self._clock() < self._next:
            return
        self._next = self._clock() + INTERVAL_S
        try:
            wanted = {
                where: offset
                for where, offset in self._committed().items()
                if where.topic in self._topics and offset > self._purged.get(where, 0)
            }
            results = self._delete(wanted) if wanted else {}
        except (OSError, KasparError) as problem:
            log.warning(f"Processed records of re-partition topics could not be deleted: {problem}.")
            return
        for where, result in results.items():
            if isinstance(result, Refused):
                log.warning(f"Processed records of {where} could not be deleted: {result.code.name}.")
            else:
                self._purged[where] = wanted[where]
