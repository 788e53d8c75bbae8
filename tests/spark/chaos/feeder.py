"""A steady stream of numbered records into a topic, over whatever happens to the broker."""

import itertools
import threading
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from tests.chaos.actors.launch import IMPATIENT

_AT_ONCE = 10
_PAUSE_SECONDS = 0.1
_FLUSH_SECONDS = 60.0


class Feeder:
    """A thread; the block's end waits until all that it made is acknowledged."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **IMPATIENT})
        self._stop = threading.Event()
        self.count = 0
        """How many records it has made."""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        for number in itertools.count():
            if number % _AT_ONCE == 0 and self._stop.wait(_PAUSE_SECONDS):
                return
            key = None if number % 3 else f"key {number % 7}".encode()
            self._producer.produce(self._topic, f"{number}".encode(), key, partition=number % self._partitions)
            self.count += 1
            self._producer.poll(0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        else:
            self._end()

    def finish(self) -> None:
        """May be called again."""
        self._end()
        left = self._producer.flush(_FLUSH_SECONDS)
        assert left == 0, f"{left} records of the feeder were not acknowledged"

    def _end(self) -> None:
        self._stop.set()
        self._thread.join()
