"""KafkaStreams: runs a topology.

    KafkaStreams(builder.build(), {"application.id": "word-count", "bootstrap.servers": "localhost:9092"}).run()

Importing this module does not load Spark.
"""

import enum
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kaspar.streams.errors import StreamsError
from kaspar.streams.topology.topology import Topology

if TYPE_CHECKING:
    from kaspar.pipelines.pipeline import PipelineProgress
    from kaspar.pipelines.runner import Change
    from kaspar.pipelines.standalone import Figures
    from kaspar.streams.running.local_stores import LocalStore

_MASTER: Final = "local[*,4]"
"""All cores of this machine. As on a cluster, a task may fail three times before its batch fails."""
_CLOSE_TIMEOUT_S: Final = 60.0


class State(enum.Enum):
    """The states of Kafka's KafkaStreams.State that apply here."""

    CREATED = "created"
    RUNNING = "running"
    RESTARTING = "restarting"
    NOT_RUNNING = "not running"
    ERROR = "error"


class KafkaStreams:
    """A program: a topology with its settings, which have Kafka's names (see kaspar.streams.running.config)."""

    def __init__(self, topology: Topology, config: Mapping[str, Any]) -> None:
        """Raises InvalidSetting."""
        from kaspar.streams.running.config import StreamsConfig
        from kaspar.streams.running.pipeline import StreamsPipeline

        self.topology = topology
        self.config = StreamsConfig.of(config)
        self.pipeline = StreamsPipeline(topology, self.config)
        self.problem: str | None = None
        """Why the program was restarted or has ended."""
        self.state_port: int | None = None
        """The port at which the contents of the stores are served while the program is running."""
        self.metrics_port: int | None = None
        """The port at which the metrics are served, if start() was used, while the program is running."""
        self._state = State.CREATED
        self._stop = threading.Event()
        self._started = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def state(self) -> State:
        return self._state

    def run(self) -> None:
        """Run until SIGINT or SIGTERM, or until the supervisor stops the program (kaspar pipeline). A running batch is
        finished. Queries that fail after the start are restarted."""
        from kaspar.pipelines import run

        try:
            self.pipeline.check()
        except KeyboardInterrupt:  # Ctrl-C while it waits for a broker ends it too
            return
        with self._page():
            run(
                self.pipeline,
                master=self._master(),
                config=self.config.spark,
                metrics=self.config.metrics_listener,
            )

    def start(self) -> None:
        """Run in the background, until close(). Returns when the queries have started; raises if they do not."""
        if self._thread is not None:
            raise StreamsError("The program was already started: create another KafkaStreams to run it again.")
        self._thread = threading.Thread(target=self._run, name=f"kaspar-streams-{self.config.application_id}")
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def close(self, timeout_s: float = _CLOSE_TIMEOUT_S) -> bool:
        """Stop a program that start() has started, after its current batch. Returns whether it ended in time."""
        self._stop.set()
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def metrics(self) -> "PipelineProgress":
        """Rates, lag, the size of the state and the stream time after the last batches."""
        return self.pipeline.progress()

    def store(self, name: str) -> "LocalStore":
        """A store of the running program, for reading: its contents after the last published batch."""
        stores = self.pipeline.stores()
        if name not in stores:
            known = ", ".join(sorted(stores)) or "none, because the program has not been started"
            raise StreamsError(f"The program has no store {name}. Its stores are: {known}.")
        return stores[name]

    def __enter__(self) -> "KafkaStreams":
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _master(self) -> str | None:
        from kaspar.pipelines.sessions import MASTER_VARIABLE
        from kaspar.spark.running.sessions import UNDER_SPARK_SUBMIT

        if "spark.master" in self.config.spark:
            return self.config.spark["spark.master"]
        return None if UNDER_SPARK_SUBMIT in os.environ or os.environ.get(MASTER_VARIABLE) else _MASTER

    @contextmanager
    def _page(self) -> Iterator[None]:
        """Serve the contents of the stores, if the settings contain an address."""
        if self.config.listener is None:
            yield
            return
        from kaspar.streams.running.queryable import make_app
        from kaspar.web.pages import PageServer

        host, port = self.config.listener
        page = PageServer(lambda: make_app(self.pipeline.stores), host=host, port=port)
        page.start()
        self.state_port = page.port
        try:
            yield
        finally:
            page.stop()

    @contextmanager
    def _metrics(self, figures: "Figures") -> Iterator[None]:
        """Serve the metrics, if the settings contain an address. For run(), kaspar.pipelines does that."""
        if self.config.metrics_listener is None:
            yield
            return
        from kaspar.pipelines.metrics import metrics_page

        page = metrics_page(self.config.metrics_listener, lambda: [figures.status()])
        page.start()
        self.metrics_port = page.port
        try:
            yield
        finally:
            page.stop()

    def _run(self) -> None:
        from pyspark import SparkContext

        from kaspar.pipelines.folder import SessionPlan
        from kaspar.pipelines.runner import PipelineRunner
        from kaspar.pipelines.sessions import new_session
        from kaspar.pipelines.standalone import Figures

        try:
            self.pipeline.check()
            running = SparkContext._active_spark_context
            session = new_session(
                self.config.application_id, SessionPlan(None if running else self._master(), self.config.spark)
            )
            figures = Figures(self.pipeline)

            def report(change: "Change") -> None:
                figures.change(change)
                self._changed(change)

            with self._page(), self._metrics(figures):
                PipelineRunner(self.pipeline, stop=self._stop, report=report).run(session)
            self._state = State.NOT_RUNNING
        except BaseException as problem:
            self._state, self._failure, self.problem = State.ERROR, problem, str(problem)
        finally:
            self._started.set()

    def _changed(self, change: "Change") -> None:
        if change.reason is None:
            self._state = State.RUNNING
        else:
            self._state, self.problem = State.RESTARTING, change.reason
        self._started.set()
