"""What every example needs: arguments, a broker, a session, folders, and progress lines."""

import argparse
import contextlib
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WARM_UP_SECONDS = 120.0
_LOOK_SECONDS = 0.2
_SHORTEST_WAIT_SECONDS = 0.001


@dataclass(frozen=True)
class Stage:
    spark: "SparkSession"
    bootstrap: str
    folder: Path
    seconds: float = 20.0
    rate: int = 300
    seed: int = 1
    suffix: str = ""

    def topic(self, name: str) -> str:
        """A topic name for this run only, so that records of an earlier run are not counted."""
        return name + self.suffix

    def reader(self, topic: str, schema: str, *, streaming: bool = False) -> "DataFrame":
        """The records of a topic from its beginning, with values decoded from JSON."""
        source = self.spark.readStream if streaming else self.spark.read
        return (
            source.format("kaspar")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("kafka.isolation.level", "read_committed")
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("columns", "value")
            .option("value.format", "json")
            .option("value.schema", schema)
            .load()
        )

    def warm_up(self, query: "StreamingQuery") -> None:
        """Wait for the query's first batch, which takes longest: Spark starts its workers for it."""
        began = time.monotonic()
        while query.lastProgress is None:
            wait_for_end(query, _LOOK_SECONDS)
            if time.monotonic() - began > WARM_UP_SECONDS:
                raise TimeoutError(f"the query has not completed a batch in {WARM_UP_SECONDS:.0f} s")
        say(f"         the first batch took {time.monotonic() - began:.0f} s")

    def watch(self, query: "StreamingQuery", line: "Callable[[StreamingQuery], str]", seconds: float) -> None:
        """Print a line per second for that time. Raises the exception of a failed query."""
        began = time.monotonic()
        while (left := seconds - (time.monotonic() - began)) > 0:
            wait_for_end(query, min(1.0, left))
            say(f"{time.monotonic() - began:5.0f} s  {line(query)}")


def wait_for_end(query: "StreamingQuery", seconds: float) -> None:
    """Wait for the query to end, at least a millisecond. Raises the exception of a failed query."""
    query.awaitTermination(max(seconds, _SHORTEST_WAIT_SECONDS))  # type: ignore[arg-type]  # fractions are fine


def say(line: str) -> None:
    print(line)
    sys.stdout.flush()


def parser(description: str | None) -> argparse.ArgumentParser:
    """With the arguments of every example."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="a running broker, Kaspar or Apache Kafka (default: starts one)"
    )
    made.add_argument("--seconds", type=float, default=20.0, help="how long to produce events (default: 20)")
    made.add_argument("--rate", type=int, default=300, help="events per second at the busiest time (default: 300)")
    made.add_argument("--seed", type=int, default=1, help="the random seed of the events (default: 1)")
    made.add_argument("--master", default="local[2]", help="where Spark runs (default: local[2], in this process)")
    return made


@contextlib.contextmanager
def stage(name: str, arguments: argparse.Namespace) -> Iterator[Stage]:
    """A session, the named broker or a new one, and a folder that is removed at the end."""
    import kaspar.spark
    from kaspar.testing import Broker

    with contextlib.ExitStack() as open_here:
        bootstrap = arguments.bootstrap
        suffix = "" if bootstrap is None else f"-{secrets.token_hex(3)}"
        if bootstrap is None:
            broker = open_here.enter_context(Broker(process=True))
            bootstrap = broker.bootstrap_servers
            say(f"started a broker at {bootstrap}")
        folder = Path(open_here.enter_context(tempfile.TemporaryDirectory(prefix=f"{name}-")))
        session = kaspar.spark.session(name, arguments.master)
        open_here.callback(session.stop)
        say("Spark is ready")
        yield Stage(session, bootstrap, folder, arguments.seconds, arguments.rate, arguments.seed, suffix)
