"""A stream of values out of topics that runs while a test goes on, and stops with it.

with Stream(spark, broker.bootstrap, checkpoint, subscribe=orders) as stream:
    stream.wait_for([b"one", b"two"])
"""

import json
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark.topics import wait_until

TIMEOUT_SECONDS = 100.0
"""The first query of a session loads much, and slowly where the machine is busy."""


class Stream:
    """Options are those of the source, dots as double underscores. It starts at the earliest by default."""

    def __init__(
        self,
        spark: SparkSession,
        bootstrap: str,
        checkpoint: Path,
        *,
        source: str = "kaspar",
        available_now: bool = False,
        **options: object,
    ) -> None:
        given = {name.replace("__", "."): str(value) for name, value in options.items()}
        self._frame = (
            spark.readStream.format(source)
            .options(**{"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest", **given})
            .load()
        )
        self._checkpoint = checkpoint
        self._available_now = available_now
        self.batches: list[list[bytes]] = []
        """The values of every micro-batch that had some, by partition and offset."""
        self.may_go_on = threading.Event()
        """Clearing it holds the next micro-batch back: it is read, and not completed."""
        self.may_go_on.set()
        self.query: StreamingQuery

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        rows = batch.orderBy("topic", "partition", "offset").select("value").collect()
        if rows:
            self.batches.append([bytes(row.value) for row in rows])
        assert self.may_go_on.wait(TIMEOUT_SECONDS), "the test holds the batch back for good"

    @property
    def values(self) -> list[bytes]:
        return [value for batch in self.batches for value in batch]

    def wait_for(self, values: Iterable[bytes]) -> None:
        """Until these were read, in any order, and nothing else."""
        wanted = sorted(values)

        def has_them() -> bool:
            if self.query.exception() is not None:
                raise AssertionError(f"the query has ended: {self.query.exception()}")
            return len(self.values) >= len(wanted)

        wait_until(has_them, f"{len(wanted)} values are read", seconds=TIMEOUT_SECONDS)
        assert sorted(self.values) == wanted

    def failure(self) -> str:
        """The sentence with which the query ends."""
        wait_until(lambda: not self.query.isActive, "the query has ended", seconds=TIMEOUT_SECONDS)
        failure = self.query.exception()
        assert isinstance(failure, StreamingQueryException), "the query ended without a complaint"
        return str(failure)

    def end_offsets(self) -> dict[str, Any]:
        """As they stand in the checkpoint, of the last micro-batch that was begun."""
        last = max((self._checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
        offsets: dict[str, Any] = json.loads(last.read_text().splitlines()[2])
        return offsets

    def __enter__(self) -> Self:
        writer = self._frame.writeStream.option("checkpointLocation", str(self._checkpoint)).foreachBatch(self._take)
        if self._available_now:
            writer = writer.trigger(availableNow=True)
        self.query = writer.start()
        if self._available_now:
            wait_until(lambda: not self.query.isActive, "all that is there is read", seconds=TIMEOUT_SECONDS)
            if (failure := self.query.exception()) is not None:
                raise failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.may_go_on.set()
        self.query.stop()
