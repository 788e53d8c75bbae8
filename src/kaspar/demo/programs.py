"""The demo's programs in one Spark session. They start in a thread, so that the demo can be stopped at any moment."""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import kaspar.spark
from kaspar.base.errors import KasparError
from kaspar.demo import click_enrichment, stock_statistics
from kaspar.pipelines.folder import SessionPlan
from kaspar.pipelines.sessions import new_session
from kaspar.streams import KafkaStreams, Topology
from kaspar.streams.kafka_streams import State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark.driver.memory": "512m",
    # In a run of a minute or two the JVM's optimizing compiler costs more than it saves.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
_BATCH_S: Final = 5.0
"""How long a batch may take when the demo ends: what it has not published then, nobody will miss."""
_JAVA_S: Final = 10.0
_PAUSE_S: Final = 0.05


class Programs:
    def __init__(self, bootstrap: str, state_dir: Path) -> None:
        self._bootstrap = bootstrap
        self._state_dir = state_dir
        self.stocks = self._program("stock-statistics", stock_statistics.topology())
        self.clicks = self._program("click-enrichment", click_enrichment.topology())
        self.waiting_for: str | None = "Spark to start"
        """None when both programs run."""
        self._session: SparkSession | None = None
        self._problem: BaseException | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._start, name="demo-start", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises KasparError if Spark or a program has failed for good."""
        if self._problem is not None:
            raise KasparError(f"the demo stopped: {self._problem}") from self._problem
        for program in (self.stocks, self.clicks):
            if program.state is State.ERROR:
                raise KasparError(f"{program.config.application_id} stopped: {program.problem}")

    def stop(self) -> None:
        self._stopping = True
        for program in (self.stocks, self.clicks):
            program.close(timeout_s=0)  # all are asked first, and then waited for
        self._thread.join(_BATCH_S if self._session is not None else 0)
        if self._session is None and self._thread.is_alive():
            self._end_java()
        for program in (self.stocks, self.clicks):
            program.close(_BATCH_S)
        if self._session is not None:
            kaspar.spark.end(self._session)

    def _program(self, name: str, topology: Topology) -> KafkaStreams:
        settings = {
            "application.id": name,
            "bootstrap.servers": self._bootstrap,
            "processing.guarantee": "exactly_once_v2",
            "commit.interval.ms": 500,
            "state.dir": str(self._state_dir),
        }
        return KafkaStreams(topology, settings)

    def _start(self) -> None:
        try:
            self._session = new_session("kaspar demo", SessionPlan("local[2]", SETTINGS))
            for program in (self.stocks, self.clicks):
                self.waiting_for = f"{program.config.application_id} to start"
                program.start()
            self.waiting_for = None
        except Exception as problem:  # the edge of the thread
            if not self._stopping:
                self._problem = problem

    def _end_java(self) -> None:
        """While the session is being created: whoever waits for it gets an error."""
        from pyspark import SparkContext

        until = time.monotonic() + _JAVA_S
        while self._thread.is_alive() and time.monotonic() < until:
            process = getattr(SparkContext._gateway, "proc", None)
            if process is not None:
                process.stdin.close()  # Java exits with it, and removes its files
                process.wait(_JAVA_S)
                self._thread.join(_JAVA_S)
                return
            time.sleep(_PAUSE_S)
