"""A SparkSession made for topics: settings that make small batches fast, and workers that run this Python.

Rules: whatever `config` says wins, then what spark-submit was given, then the settings below. Every one of them is a
setting of Spark's own; a session made without this module reads and writes topics too, only slower. Importing this
module loads nothing of PySpark.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHON_SETTING: Final = "spark.pyspark.python"
LOCAL_MASTERS: Final = re.compile(r"local(\[(\*|\d+)(, *\d+)?\])?")
LOOPBACK_MASTERS: Final = re.compile(r"spark://(localhost|127\.[\d.]+)(:\d+)?")
UNDER_SPARK_SUBMIT: Final = "PYSPARK_GATEWAY_PORT"  # in the environment of a program that spark-submit runs
LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
WORKER_PYTHON: Final = Path(__file__).with_name("worker_python.sh")
WRAPPED_PYTHON: Final = "KASPAR_SPARK_PYTHON"  # in the environment: the Python that the script above runs


def session(
    app_name: str = "kaspar", master: str | None = None, config: Mapping[str, object] | None = None
) -> "SparkSession":
    """The session of this process, made if there is none yet; one that is there stays as it is, but for `config`.

    `master`: "local[*]" unless spark-submit says otherwise. `config`: settings of Spark, which win over ours.
    """
    submitted = UNDER_SPARK_SUBMIT in os.environ
    wanted = {name: _text(value) for name, value in (config or {}).items()}
    master = wanted.pop("spark.master", master)
    if not submitted:
        from kaspar.spark.java import find_java  # a program of its own too, which this package must not load before it

        os.environ["JAVA_HOME"] = str(find_java().home)
    python = wanted.pop(PYTHON_SETTING, os.environ.get("PYSPARK_PYTHON", sys.executable))
    if python == str(WORKER_PYTHON):  # of an earlier session
        python = sys.executable

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from kaspar.spark.cores import CORES
    from kaspar.spark.hang_ups import keep_accumulators_quiet

    running = SparkContext._active_spark_context
    if running is not None:
        if master not in (None, running.master):
            raise KasparError(
                f"a session on {running.master} runs in this process already: "
                f"stop() it before one on {master} can start"
            )
        made = SparkSession.builder.config(map=dict(wanted)).getOrCreate()
    else:
        given = _given_to_spark_submit() if submitted else {}
        place = master or given.get("spark.master") or "local[*]"
        cores = cores_of(place)
        is_here = LOCAL_MASTERS.fullmatch(place) is not None
        # PySpark reads the workers' Python from the environment alone, when it starts.
        os.environ["PYSPARK_PYTHON"] = _script_or(python) if not submitted and is_here else python
        # For those who plan reads, in processes of their own.
        os.environ[CORES] = str(cores) if is_here else ""
        settings = settings_for(
            place, cores=cores, hadoop="HADOOP_CONF_DIR" in os.environ, this_python=python == sys.executable
        )
        settings |= given | wanted
        keep_accumulators_quiet()
        made = SparkSession.builder.appName(app_name).master(place).config(map=dict(settings)).getOrCreate()
        _stop_queries_first(made)
    register(made)
    return made


def _stop_queries_first(session: "SparkSession") -> None:
    """A query that runs when its session stops fails, and Spark says so at length. So stop() ends queries first."""
    plain_stop = session.stop

    def stop() -> None:
        try:
            if session.sparkContext._jsc is not None:  # it has not been stopped before
                for query in session.streams.active:
                    query.stop()
        finally:
            plain_stop()

    vars(session)["stop"] = stop


def end(session: "SparkSession") -> None:
    """Stop a session, and wait until its JVM has ended, which stop() leaves running for the next one."""
    from pyspark import SparkContext

    session.stop()
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is not None and process is not None:  # there is none under spark-submit
        SparkContext._gateway = SparkContext._jvm = None
        gateway.shutdown()
        process.stdin.close()  # it ends with it
        process.wait()


def _script_or(python: str) -> str:
    """What makes workers start sooner, if they run this Python and the PySpark that is installed in it."""
    import pyspark

    spark_home = os.environ.get("SPARK_HOME")
    if (
        python != sys.executable
        or (spark_home is not None and Path(spark_home) != Path(pyspark.__file__).parent)
        # A JVM that is there has the environment that it was started with.
        or (pyspark.SparkContext._gateway is not None and WRAPPED_PYTHON not in os.environ)
        or not os.access(WORKER_PYTHON, os.X_OK)
    ):
        return python
    os.environ[WRAPPED_PYTHON] = python
    return str(WORKER_PYTHON)


def register(session: "SparkSession") -> None:
    """Name the format "kaspar" to a session. Spark finds it by itself, unless some other package of that kind fails."""
    from kaspar.spark.source import KasparDataSource

    session.dataSource.register(KasparDataSource)


def _given_to_spark_submit() -> dict[str, str]:
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # the JVM that spark-submit started knows them
    return dict(SparkConf().getAll())


def cores_of(master: str) -> int:
    """How many tasks run at once. A cluster does not say before it has started: this machine's cores stand for it."""
    local = LOCAL_MASTERS.fullmatch(master)
    if local is None or local[2] == "*":
        return len(os.sched_getaffinity(0))
    return int(local[2] or 1)


def settings_for(master: str, *, cores: int, hadoop: bool = False, this_python: bool = True) -> dict[str, str]:
    """What a session gets unless it is told otherwise.

    `hadoop`: files are probably on HDFS. `this_python`: workers run the Python that this process does.
    """
    settings = {
        # Every shuffle starts this many tasks, and a stateful query opens as many state stores: 200 by default.
        "spark.sql.shuffle.partitions": str(cores),
        # Between the JVM and its Python workers: a shorter way than TCP, and closed to other users of the machine.
        "spark.python.unix.domain.socket.enabled": "true",
        # Rows of one Arrow batch to and from Python; with Spark's 10,000 the hand-over costs more than the rows.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        # And their bytes: Spark makes a batch of a few megabytes three times as fast, by the byte, as one of 100.
        "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
        # State on disk, not in the heap; a micro-batch writes what it changed, and snapshots follow by and by.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Errors in a line each. A default, so that it adds to spark.driver.extraJavaOptions instead of replacing it.
        # Stacks of 4 MiB: Spark looks for a stopped query's reason with a regular expression, which overflows smaller
        # ones when the exception of a foreachBatch is long.
        "spark.driver.defaultJavaOptions": f'-Xss16m "-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"',
        # The page of a session costs memory and time at the start, and would listen on every address.
        "spark.ui.enabled": "false",
        # A bar over the last line of the terminal, for every stage of every micro-batch.
        "spark.ui.showConsoleProgress": "false",
    }
    if LOCAL_MASTERS.fullmatch(master) and this_python:
        # Where workers are sure to have this package: a query that is stopped makes them print no tracebacks.
        settings["spark.python.daemon.module"] = "kaspar.spark.worker_daemon"
    if LOCAL_MASTERS.fullmatch(master) or LOOPBACK_MASTERS.fullmatch(master):
        # Nobody beyond this machine needs to reach the driver.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if not hadoop:
            # To write a file of a checkpoint to a local disk, Spark's usual way starts processes (chmod, readlink).
            # Only there: on HDFS this one does not replace a file, which a repeated batch may have to.
            settings["spark.sql.streaming.checkpointFileManagerClass"] = (
                "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
            )
    return settings


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
