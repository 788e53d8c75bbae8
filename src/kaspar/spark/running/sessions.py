"""A SparkSession for topics: settings that make small batches fast, and workers that run this Python.

Precedence: `config`, then the settings given to spark-submit, then those below. All of them are Spark's own settings: a
session created without this module also reads and writes topics, but slower. Importing this module loads no part of
PySpark.
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
UNDER_SPARK_SUBMIT: Final = "PYSPARK_GATEWAY_PORT"  # set in the environment of programs that spark-submit runs
LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")
WORKER_PYTHON: Final = Path(__file__).with_name("worker_python.sh")
REDACTION: Final = "spark.sql.redaction.options.regex"
SPARKS_REDACTION: Final = "(?i)url"
WRAPPED_PYTHON: Final = "KASPAR_SPARK_PYTHON"  # environment variable: the Python that the script above runs


def session(
    app_name: str = "kaspar", master: str | None = None, config: Mapping[str, object] | None = None
) -> "SparkSession":
    """The session of this process, created if there is none; an existing one is unchanged except for `config`.

    `master`: "local[*]" unless spark-submit sets another. `config`: Spark settings, which override ours.
    """
    submitted = UNDER_SPARK_SUBMIT in os.environ
    wanted = {name: _text(value) for name, value in (config or {}).items()}
    master = wanted.pop("spark.master", master)
    if not submitted:
        from kaspar.spark.running.java import (
            find_java,  # also run with python -m, so importing this package must not load it
        )

        os.environ["JAVA_HOME"] = str(find_java().home)
    python = wanted.pop(PYTHON_SETTING, os.environ.get("PYSPARK_PYTHON", sys.executable))
    if python == str(WORKER_PYTHON):  # set by an earlier session
        python = sys.executable

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from kaspar.spark.disconnects import silence_accumulators
    from kaspar.spark.reading.cores import CORES

    running = SparkContext._active_spark_context
    if running is not None:
        if master not in (None, running.master):
            raise KasparError(
                f"this process already has a session on {running.master}: stop() it before starting one on {master}"
            )
        made = SparkSession.builder.config(map=dict(wanted)).getOrCreate()
    else:
        given = _given_to_spark_submit() if submitted else {}
        place = master or given.get("spark.master") or "local[*]"
        cores = cores_of(place)
        is_here = LOCAL_MASTERS.fullmatch(place) is not None
        # PySpark reads the workers' Python only from the environment, when it starts.
        os.environ["PYSPARK_PYTHON"] = _worker_python(python) if not submitted and is_here else python
        # The number of cores, for the processes that plan reads.
        os.environ[CORES] = str(cores) if is_here else ""
        settings = settings_for(
            place, cores=cores, hadoop="HADOOP_CONF_DIR" in os.environ, this_python=python == sys.executable
        )
        settings |= given | wanted
        silence_accumulators()
        made = SparkSession.builder.appName(app_name).master(place).config(map=dict(settings)).getOrCreate()
        _stop_queries_first(made)
    register(made)
    return made


def _stop_queries_first(session: "SparkSession") -> None:
    """Make stop() stop queries first: a query that is running when its session stops fails with long error messages."""
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
    """Stop a session and wait until its JVM has exited, which stop() leaves running for the next session."""
    from pyspark import SparkContext

    session.stop()
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is not None and process is not None:  # under spark-submit there is none
        SparkContext._gateway = SparkContext._jvm = None
        gateway.shutdown()
        process.stdin.close()  # the JVM exits when this closes
        process.wait()


def _worker_python(python: str) -> str:
    """The script that starts workers faster, if they run this Python and the PySpark installed in it; else `python`."""
    import pyspark

    spark_home = os.environ.get("SPARK_HOME")
    if (
        python != sys.executable
        or (spark_home is not None and Path(spark_home) != Path(pyspark.__file__).parent)
        # A running JVM has the environment that it was started with.
        or (pyspark.SparkContext._gateway is not None and WRAPPED_PYTHON not in os.environ)
        or not os.access(WORKER_PYTHON, os.X_OK)
    ):
        return python
    os.environ[WRAPPED_PYTHON] = python
    return str(WORKER_PYTHON)


def register(session: "SparkSession") -> None:
    """Register the format "kaspar", and let Spark redact its secrets. Spark also finds the format without this, unless
    another pyspark_* package fails to import.
    """
    from kaspar.spark.security_options import REDACTED
    from kaspar.spark.source import KasparDataSource

    session.dataSource.register(KasparDataSource)
    if session.conf.get(REDACTION, SPARKS_REDACTION) == SPARKS_REDACTION:  # not if the program has set its own
        session.conf.set(REDACTION, REDACTED)


def _given_to_spark_submit() -> dict[str, str]:
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # the JVM that spark-submit started knows the settings
    return dict(SparkConf().getAll())


def cores_of(master: str) -> int:
    """The number of tasks that run at once. That of a cluster is not known yet: the number of this machine's cores."""
    local = LOCAL_MASTERS.fullmatch(master)
    if local is None or local[2] == "*":
        return len(os.sched_getaffinity(0))
    return int(local[2] or 1)


def settings_for(master: str, *, cores: int, hadoop: bool = False, this_python: bool = True) -> dict[str, str]:
    """The default settings of a session.

    `hadoop`: files are probably on HDFS. `this_python`: workers run the same Python as this process.
    """
    settings = {
        # Every shuffle starts this many tasks, and a stateful query opens as many state stores: 200 by default.
        "spark.sql.shuffle.partitions": str(cores),
        # Between the JVM and its Python workers: faster than TCP, and closed to other users of the machine.
        "spark.python.unix.domain.socket.enabled": "true",
        # Rows per Arrow batch to and from Python; with Spark's 10,000 the transfer costs more than the rows.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        # The bytes of such a batch: per byte, Spark builds one of a few megabytes three times as fast as one of 100.
        "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
        # State on disk, not in the heap; a micro-batch writes its changes, and snapshots follow in the background.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # One line per error. A default option, so that it adds to spark.driver.extraJavaOptions.
        # Large stacks: Spark matches the exception of a stopped query with a regular expression, which overflows
        # smaller ones if the exception of a foreachBatch is long.
        "spark.driver.defaultJavaOptions": f'-Xss16m "-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"',
        # The web UI costs memory and start-up time, and would listen on every address.
        "spark.ui.enabled": "false",
        # A progress bar on the terminal for every stage of every micro-batch.
        "spark.ui.showConsoleProgress": "false",
    }
    if LOCAL_MASTERS.fullmatch(master) and this_python:
        # Local workers are sure to have this package. Its daemon prints no tracebacks when a query stops.
        settings["spark.python.daemon.module"] = "kaspar.spark.running.worker_daemon"
    if LOCAL_MASTERS.fullmatch(master) or LOOPBACK_MASTERS.fullmatch(master):
        # No other machine needs to connect to the driver.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if not hadoop:
            # Spark's default starts processes (chmod, readlink) for every checkpoint file on a local disk.
            # Not on HDFS, where this one cannot replace a file, as a repeated batch may have to.
            settings["spark.sql.streaming.checkpointFileManagerClass"] = (
                "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
            )
    return settings


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
