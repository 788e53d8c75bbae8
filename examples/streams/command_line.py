"""What the programs share: their arguments, and events that are produced while they run."""

import argparse
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

from kaspar.demo.events import Generator
from kaspar.demo.producing import Producing, create_topics


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
