"""Streams programs in the session of the tests: started, fed, watched and stopped.

with running(topology, broker.bootstrap, tmp_path, "word-count") as app:
    topics.produce(lines, [b"one two"])
    app.wait_for(lambda: counts() == {"one": 1, "two": 1}, "both words are counted")
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kaspar.streams import KafkaStreams, Topology
from kaspar.streams.kafka_streams import State
from tests.spark.topics import Topics, wait_until

TIMEOUT_SECONDS = 100.0
"""The first query of a session loads much, and slowly where the machine is busy."""


class App(KafkaStreams):
    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            assert self.state is State.RUNNING, f"the program is {self.state.value}: {self.problem}"
            return condition()

        wait_until(holds, what, seconds=TIMEOUT_SECONDS)


@contextmanager
def running(topology: Topology, bootstrap: str, folder: Path, name: str, **settings: Any) -> Iterator[App]:
    """Settings have underscores for dots."""
    given = {each.replace("_", "."): value for each, value in settings.items()}
    app = App(
        topology,
        {"application.id": name, "bootstrap.servers": bootstrap, "state.dir": folder, "replication.factor": 1, **given},
    )
    app.start()
    try:
        yield app
    finally:
        assert app.close(TIMEOUT_SECONDS), "the program does not end"


def last_values(topics: Topics, topic: str) -> dict[bytes | None, bytes | None]:
    """The last value of each key."""
    return {record.key: record.value for record in topics.read(topic)}


def counts(topics: Topics, topic: str) -> dict[str, int]:
    return {
        key.decode(): int.from_bytes(value)
        for key, value in last_values(topics, topic).items()
        if key is not None and value is not None
    }
