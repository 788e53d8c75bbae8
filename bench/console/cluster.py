"""`kaspar up` with a large cluster: the processes whose CPU is measured, and the addresses."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.command import TMPFS
from bench.console.contents import Contents, fill
from bench.programs import LoadError
from bench.up.case import ANY_PORTS
from bench.up.process import UpProcess
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.plan import HOST
from kaspar.supervisor.ports import consecutive_free_ports
from kaspar.supervisor.status import ClusterStatus, ServiceStatus, status_of


@dataclass(frozen=True, slots=True)
class LargeCluster:
    contents: Contents
    console_url: str
    broker_pid: int
    services_pid: int


@contextmanager
def large_cluster(contents: Contents) -> Iterator[LargeCluster]:
    """A cluster that is started in a new folder and filled."""
    folder = Path(tempfile.mkdtemp(prefix="kaspar-bench-console-", dir=TMPFS))
    try:
        process = UpProcess(folder, ["--port", str(consecutive_free_ports(1)[0]), *ANY_PORTS])
        try:
            process.seconds_until_ready()
            status = _status(folder / "cluster")
            fill(contents, f"{HOST}:{status.brokers[0].port}", _service(status, "registry").url)
            yield running_cluster(contents, folder / "cluster")
        finally:
            process.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def running_cluster(contents: Contents, folder: Path) -> LargeCluster:
    """A cluster that `kaspar up` runs in this folder, and that was filled before. Raises LoadError."""
    status = _status(folder)
    console, broker = _service(status, "console"), status.brokers[0]
    if broker.pid is None or console.pid is None:
        raise LoadError(f"The cluster in {folder} does not run.")
    return LargeCluster(contents, console.url, broker.pid, console.pid)


def _status(folder: Path) -> ClusterStatus:
    cluster = Folder(folder)
    plan = cluster.plan()
    if plan is None:
        raise LoadError(f"There is no cluster in {folder}.")
    return status_of(cluster, plan)


def _service(status: ClusterStatus, name: str) -> ServiceStatus:
    return next(each for each in status.services if each.name == name)
