"""A standalone cluster of Spark on this machine, from the pip package: a master and workers, started and stopped.

`cluster.json` in the cluster's folder has the id and start time of each process, because the id alone may have been
reused by another process. Logs and the executors' folders are beside it.

Rules: everything listens on one address, by default loopback: the master, the workers, and their web UIs. The master's
REST port stays closed, since anybody who can connect to it may run programs. A failed start stops what it has started.
"""

import contextlib
import fcntl
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId, end_all, session_of
from kaspar.spark.running.java import find_java

START_TIMEOUT_S: Final = 120.0
MASTER_CLASS: Final = "org.apache.spark.deploy.master.Master"
WORKER_CLASS: Final = "org.apache.spark.deploy.worker.Worker"
_STATE_FILE: Final = "cluster.json"
_PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """What to start. `cores` and `memory` are per worker."""

    folder: Path
    workers: int = 2
    cores: int | None = None
    memory: str = "2g"
    host: str = "127.0.0.1"
    port: int = 7077

    @property
    def cores_of_each(self) -> int:
        return self.cores or max(1, len(os.sched_getaffinity(0)) // self.workers)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A started cluster."""

    master: str
    page: str
    workers: int
    processes: tuple[ProcessId, ...]

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> "Cluster":
        processes = tuple(ProcessId(**each) for each in written["processes"])
        return cls(written["master"], written["page"], written["workers"], processes)

    def running(self) -> list[ProcessId]:
        return [process for process in self.processes if process.is_running()]


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a cluster as its master reports it."""

    workers: int
    cores: int
    cores_used: int
    memory_mb: int
    applications: tuple[str, ...]


def default_folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state", "kaspar", "spark")


def start(plan: ClusterPlan) -> Cluster:
    """Start a master and its workers. Returns when programs can run."""
    _check(plan)
    java = find_java()
    with _locked(plan.folder):
        earlier = _read(plan.folder)
        if earlier is not None and earlier.running():
            raise KasparError(
                f"a cluster is already running in {plan.folder}, on {earlier.master}: stop it with 'kaspar spark "
                "stop', or choose another folder with --dir"
            )
        _refuse_used_port(plan.host, plan.port)
        return _start(plan, _environment(plan.host, str(java.home)))


def _start(plan: ClusterPlan, environment: Mapping[str, str]) -> Cluster:
    page_port = _free_port(plan.host)
    master, page = f"spark://{plan.host}:{plan.port}", f"http://{plan.host}:{page_port}"
    started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def begin(name: str, arguments: Sequence[str]) -> Cluster:
        """Start a process and record it at once, so that `stop` finds it even if this command is killed."""
        started.append((name, _spawn(plan.folder, name, arguments, environment)))
        processes = tuple(ProcessId.of(process.pid) for _, process in started)
        cluster = Cluster(master, page, plan.workers, processes)
        _write(plan.folder, cluster)
        return cluster

    try:
        address = ["--host", plan.host, "--port", str(plan.port), "--webui-port", str(page_port)]
        cluster = begin("master", [MASTER_CLASS, *address])
        _wait(lambda: status_of(page) is not None, started, plan.folder)
        size = ["--cores", str(plan.cores_of_each), "--memory", plan.memory, "--host", plan.host]
        places = ["--webui-port", "0", "--work-dir", str(plan.folder / "work")]
        for number in range(1, plan.workers + 1):
            cluster = begin(f"worker-{number}", [WORKER_CLASS, *size, *places, master])
        _wait(lambda: _alive_workers(page) == plan.workers, started, plan.folder)
    except BaseException:
        _end([ProcessId.of(process.pid) for _, process in started if process.poll() is None])
        (plan.folder / _STATE_FILE).unlink(missing_ok=True)
        raise
    return cluster


def running_cluster(folder: Path) -> Cluster:
    """The cluster of a folder."""
    cluster = _read(folder)
    if cluster is None:
        raise KasparError(f"no cluster is running in {folder}: start one with 'kaspar spark start'")
    if not cluster.running():
        raise KasparError(
            f"the cluster in {folder} was not stopped, but none of its processes is running: its logs are in "
            f"{folder / 'logs'}, and 'kaspar spark start' starts a new one"
        )
    return cluster


def status_of(page: str) -> Status | None:
    """The status on the master's page; None if it does not respond."""
    try:
        # No proxy: the page is on this machine, or on one that the user named.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{page}/json/", timeout=5) as response:
            reported = json.load(response)
    except (OSError, ValueError):
        return None
    return Status(
        workers=reported["aliveworkers"],
        cores=reported["cores"],
        cores_used=reported["coresused"],
        memory_mb=reported["memory"],
        applications=tuple(f"{each['name']} ({each['id']}, {each['cores']} cores)" for each in reported["activeapps"]),
    )


def stop(folder: Path) -> int:
    """Stop what `start` has started, and its executors. Returns the number of processes stopped."""
    with _locked(folder):
        cluster = _read(folder)
        if cluster is None:
            raise KasparError(f"no cluster is running in {folder}")
        ended = _end(cluster.running())
        (folder / _STATE_FILE).unlink()
    return ended


def _end(processes: Sequence[ProcessId]) -> int:
    """End these processes, workers first: they stop their executors, and would otherwise try to reconnect to the
    master. This is done twice, because a script that has just started may start a child meanwhile."""
    return sum(end_all([each for leader in reversed(processes) for each in session_of(leader)]) for _ in range(2))


def _check(plan: ClusterPlan) -> None:
    if plan.workers < 1:
        raise KasparError(f"a cluster needs at least one worker, not {plan.workers}")
    if plan.cores is not None and plan.cores < 1:
        raise KasparError(f"a worker needs at least one core, not {plan.cores}")
    if re.fullmatch(r"[1-9]\d*[mgt]b?", plan.memory, re.IGNORECASE) is None:
        raise KasparError(f"a worker's memory must be a size such as 512m or 2g, not '{plan.memory}'")
    if plan.host in ("", "0.0.0.0", "::"):
        raise KasparError("others connect to the master's host: use one of this machine's addresses")
    if not 1 <= plan.port <= 65_535:
        raise KasparError(f"the master's port must be between 1 and 65535, not {plan.port}")


def _alive_workers(page: str) -> int:
    status = status_of(page)
    return status.workers if status is not None else 0


def _environment(host: str, java_home: str) -> dict[str, str]:
    import pyspark

    return {
        **os.environ,
        "JAVA_HOME": java_home,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": host,  # otherwise the web UIs listen on every address
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "SPARK_DAEMON_MEMORY": "512m",
        "PYSPARK_PYTHON": sys.executable,
    }


def _spawn(
    folder: Path, name: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    (folder / "logs").mkdir(exist_ok=True)
    with (folder / "logs" / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [f"{environment['SPARK_HOME']}/bin/spark-class", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # it outlives this command and its Ctrl-C
        )


def _wait(is_ready: Callable[[], bool], started: "list[tuple[str, subprocess.Popen[bytes]]]", folder: Path) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    while not is_ready():
        for name, process in started:
            if process.poll() is not None:
                log = folder / "logs" / f"{name}.log"
                raise KasparError(f"the {name} exited while starting: {_reason_in(log)} (see {log})")
        if time.monotonic() > until:
            raise KasparError(f"the cluster was not ready within {START_TIMEOUT_S:.0f} s: see {folder / 'logs'}")
        time.sleep(_PAUSE_S)


def _reason_in(log: Path) -> str:
    """The most informative line of a log: the last one with an exception or error, or else the last."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if "Exception" in line or "ERROR" in line]
    return (telling or lines or ["no output"])[-1]


def _refuse_used_port(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as problem:
            raise KasparError(
                f"the master cannot listen on {host}:{port} ({problem.strerror}): "
                "choose another --port, or another --host"
            ) from None


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, so that only one command at a time changes it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as problem:
        raise KasparError(f"the folder {folder} cannot be used: {problem.strerror}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(folder: Path) -> Cluster | None:
    file = folder / _STATE_FILE
    try:
        return Cluster.of(json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise KasparError(f"{file} was not written by 'kaspar spark start': remove it") from None


def _write(folder: Path, cluster: Cluster) -> None:
    new = folder / f"{_STATE_FILE}.new"
    new.write_text(json.dumps(asdict(cluster), indent=1))
    new.rename(folder / _STATE_FILE)
