"""Deletes the records of re-partition topics that are processed, as Kafka Streams does (repartition.purge.interval.ms).

Such a topic keeps everything otherwise. Offsets are those of Spark's progress: a batch is reported when it is complete,
so that nothing that may be read again is deleted.
"""

import json
import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from kaspar.base.errors import KasparError
from kaspar.base.ids import TopicPartition
from kaspar.base.log import get_log
from kaspar.spark.offsets import from_json

if TYPE_CHECKING:
    from kaspar.client import Client

log = get_log(__name__)

INTERVAL_S: Final = 30.0


class Purger:
    """For the internal topics that one query reads."""

    def __init__(
        self,
        topics: Collection[str],
        connect: "Callable[[], Client]",
        *,
        interval_s: float = INTERVAL_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topics = topics
        self._connect = connect
        self._interval_s = interval_s
        self._now = now
        self._next_s = now() + interval_s
        self._purged: dict[TopicPartition, int] = {}

    def completed(self, progress: Any) -> None:
        """`progress` is the last StreamingQueryProgress of the query, if it has one. Returns at once."""
        if not self._topics or progress is None or self._now() < self._next_s:
            return
        self._next_s = self._now() + self._interval_s
        processed = self._processed(progress)
        if processed:
            threading.Thread(target=self._purge, args=(processed,), name="kaspar-streams-purge", daemon=True).start()

    def _processed(self, progress: Any) -> dict[TopicPartition, int]:
        offsets: dict[TopicPartition, int] = {}
        for source in progress.sources:
            try:
                offsets |= from_json(json.loads(source.endOffset))
            except (ValueError, TypeError, AttributeError):
                continue  # of another source, such as the one that ticks
        return {
            where: offset
            for where, offset in offsets.items()
            if where.topic in self._topics and offset > self._purged.get(where, 0)
        }

    def _purge(self, processed: dict[TopicPartition, int]) -> None:
        from kaspar.client.admin.records import delete_records

        try:
            with self._connect() as client:
                refused = delete_records(client, processed)
        except (OSError, KasparError) as problem:
            log.warning("records of re-partition topics were not deleted", reason=str(problem))
            return
        self._purged |= {where: offset for where, offset in processed.items() if where not in refused}
        for refusal in refused.values():
            log.warning("records of a re-partition topic were not deleted", reason=str(refusal))
