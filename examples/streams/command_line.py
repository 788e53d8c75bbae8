"""What the programs share: their arguments, and events that are produced while they run."""

import argparse
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from examples.streams.generators import Event, Generator

PARTITIONS = 4
_QUIET = {"log_level": 2}  # errors are raised, and need not be printed, too


def parse_arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--bootstrap-server", metavar="HOST:PORT", default="localhost:9092",
        help="a broker, Kaspar or Apache Kafka (default: localhost:9092)",
    )  # fmt: skip
    parser.add_argument("--generate", action="store_true", help="create the input topics, and produce events to them")
    parser.add_argument("--rate", type=float, default=50.0, help="generated events per second (default: 50)")
    parser.add_argument("--seed", type=int, default=1, help="the random seed of the events (default: 1)")
    return parser.parse_args()


@contextlib.contextmanager
def generating(arguments: argparse.Namespace, generator: Generator, topics: Sequence[str]) -> Iterator[None]:
    """With --generate, events flow into the topics, as they would arrive, until the block ends."""
    if not arguments.generate:
        yield
        return
    create_topics(arguments.bootstrap_server, topics)
    stop = threading.Event()
    events = generator(arguments.seed, int(time.time() * 1000), arguments.rate)
    producing = Producing(arguments.bootstrap_server)
    thread = threading.Thread(target=producing.run, args=(events, stop), name="generator", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        producing.flush()


def create_topics(bootstrap: str, topics: Sequence[str]) -> None:
    """Those that do not exist yet."""
    admin = AdminClient({**_QUIET, "bootstrap.servers": bootstrap})
    for topic, created in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics]).items():
        try:
            created.result(30)
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise KafkaException(f"{topic} cannot be created: {problem}") from problem


class Producing:
    """Writes events to their topics, and remembers the first that was not stored."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        # Java's way to choose a partition by the key: topics that are joined must agree on it.
        self._producer = Producer({**_QUIET, **settings, "partitioner": "murmur2_random"})
        self._problem: KafkaError | None = None

    def run(self, events: Iterator[Event], stop: threading.Event) -> None:
        for topic, key, value, timestamp_ms in events:
            ahead = timestamp_ms / 1000 - time.time()
            if ahead > 0 and stop.wait(ahead):
                return
            self._producer.produce(topic, value, key, timestamp=timestamp_ms, on_delivery=self._delivered)
            self._producer.poll(0)
            if stop.is_set():
                return

    def flush(self) -> None:
        if self._producer.flush(30):
            raise TimeoutError("the broker has not stored all events within 30 s")
        if self._problem is not None:
            raise KafkaException(self._problem)

    def _delivered(self, problem: KafkaError | None, message: Message) -> None:
        self._problem = self._problem or problem
