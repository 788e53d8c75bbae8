"""The process of a host: runs every pipeline of a folder in one Spark session, each program in a thread.

The supervisor starts it as `python -m kaspar.pipelines.host_process FOLDER`, and it ends with the supervisor. It also
ends when its session is lost; the supervisor then starts another.
"""

import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.base import log as base_log
from kaspar.base.errors import KasparError
from kaspar.base.log import get_log
from kaspar.base.processes import ProcessId
from kaspar.pipelines.ambient import begin_hosting
from kaspar.pipelines.control import ControlServer
from kaspar.pipelines.exit_codes import RENEWED, SESSION_LOST
from kaspar.pipelines.folder import Folder, RunningHost, SessionPlan
from kaspar.pipelines.host import Host
from kaspar.pipelines.hosted import HostContext
from kaspar.pipelines.modules import ModulesBeside
from kaspar.pipelines.output import route_output
from kaspar.pipelines.pipeline import STOP_TIMEOUT_S
from kaspar.pipelines.programs import Loader
from kaspar.pipelines.sessions import MASTER_VARIABLE, let_workers_import_from, new_session
from kaspar.supervisor.signals import Signals

if TYPE_CHECKING:
    from kaspar.pipelines.jvm import Jvm

log = get_log(__name__)

_MASTER: Final = "local[*,4]"
"""All cores of this machine. As on a cluster, a task may fail three times before its batch fails."""
_SHARED_SESSION: Final = {
    # A small micro-batch of one pipeline does not wait for all tasks of another's.
    "spark.scheduler.mode": "FAIR",
}
_LOOK_EVERY_S: Final = 0.1
_LOOK_AT_SESSION_EVERY_S: Final = 1.0
_SAMPLE_EVERY_S: Final = 1.0
_AFTER_STOP_TIMEOUT_S: Final = 5.0


def run_host(folder: Folder) -> int:
    """Run until a signal, or until changed modules need another process. Returns the exit code. If the session is lost,
    the process exits at once."""
    host = Host(folder)
    # Before the session starts and before the definitions are read again: a command that finds no socket does not
    # notify the host, and its change is seen when they are read.
    server = ControlServer(folder.socket, host.respond)
    try:
        folder.write_host(RunningHost(ProcessId.of(os.getpid())))
        jvm = _start_session(folder, host)
        threading.Thread(target=_sample, args=(host,), name="kaspar-progress", daemon=True).start()
        with Signals() as signals:
            _follow(host, jvm, signals)
            _stop_all(host, jvm)
        _end_session(jvm)
        return 0 if host.renewal is None else RENEWED
    finally:
        server.close()


def _start_session(folder: Folder, host: Host) -> "Jvm":
    from kaspar.pipelines.jvm import Jvm

    modules = ModulesBeside(folder.modules)
    let_workers_import_from(folder.modules)
    plan = folder.session()
    master = plan.master or os.environ.get(MASTER_VARIABLE) or _MASTER
    session = new_session("kaspar pipelines", SessionPlan(master, {**_SHARED_SESSION, **plan.config}))
    jvm = Jvm(session)
    folder.write_host(RunningHost(ProcessId.of(os.getpid()), jvm.id))
    host.begin(HostContext(folder, session, Loader(modules), jvm.problem, host.notify, host.renew))
    return jvm


def _follow(host: Host, jvm: "Jvm", signals: Signals) -> None:
    look_at = 0.0
    while not signals.stop_requested and host.renewal is None:
        host.reconcile()
        now = time.monotonic()
        if now >= look_at:
            look_at = now + _LOOK_AT_SESSION_EVERY_S
            _exit_if_lost(jvm)
        host.wait(_LOOK_EVERY_S)
    if host.renewal is not None:
        log.info("restarting the host to import changed modules", reason=host.renewal)


def _sample(host: Host) -> None:
    while True:
        host.sample()
        time.sleep(_SAMPLE_EVERY_S)


def _stop_all(host: Host, jvm: "Jvm") -> None:
    host.interrupt()
    until = time.monotonic() + STOP_TIMEOUT_S + _AFTER_STOP_TIMEOUT_S
    while alive := host.alive():
        _exit_if_lost(jvm)
        if time.monotonic() > until:
            log.warning("pipelines did not stop in time and were interrupted", pipelines=", ".join(alive))
            return
        host.wait(_LOOK_EVERY_S)


def _exit_if_lost(jvm: "Jvm") -> None:
    """Exit at once if the session is lost. An exception would not end the process, because the threads of the programs
    wait for a JVM that does not respond any more."""
    problem = jvm.problem()
    if problem is not None:
        base_log.flush()
        print(f"kaspar: {problem}", file=sys.stderr, flush=True)
        os._exit(SESSION_LOST)


def _end_session(jvm: "Jvm") -> None:
    from kaspar.spark.running.sessions import end

    try:
        end(jvm.session)
    except Exception:  # the JVM ends with this process in any case
        log.exception("the session did not stop cleanly")


def main(argv: Sequence[str] | None = None) -> int:
    (path,) = sys.argv[1:] if argv is None else argv
    base_log.configure()
    folder = Folder(Path(path))
    begin_hosting()
    os.chdir(folder.work)
    route_output()
    try:
        return run_host(folder)
    except KasparError as problem:
        print(f"kaspar: {problem}", file=sys.stderr)
        return 1
    finally:
        base_log.flush()


if __name__ == "__main__":
    sys.exit(main())
