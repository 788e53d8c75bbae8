"""`Cluster`: a context manager that runs several brokers, each in its own process, and the ZooKeeper they need.

    with Cluster(brokers=3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(cluster.controller_id())

Unlike `kaspar up` it does not restart anything by itself. An exception that leaves the `with` block gets the last lines
of every log as a note. A broker that has ended by itself fails the test.
"""

import contextlib
import shutil
import signal
import tempfile
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kaspar.base.errors import KasparError
from kaspar.supervisor.folder import Folder
from kaspar.supervisor.members import Member, Members, ServerOptions, check_java, make_members
from kaspar.supervisor.plan import plan_of, size_of
from kaspar.supervisor.ports import consecutive_free_ports, free_ports, refuse_used_ports
from kaspar.supervisor.probes import wait_ready
from kaspar.supervisor.readiness import first_view, view_of
from kaspar.supervisor.security import CLIENT, client_access, create_users
from kaspar.supervisor.stopping import stop_members
from kaspar.testing.services import Services

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0
_PAUSE_S: Final = 0.02
_NOTED_LINES: Final = 40

_SMALL_SERVERS: Final = ServerOptions(
    heap="64m",
    more={
        # The tick is the resolution of session timeouts: a short tick allows short session timeouts.
        "tickTime": "500",
        "maxSessionTimeout": "60000",
        "forceSync": "no",  # the page cache survives when a process is killed
    },
)


class Cluster:
    """A running cluster; `bootstrap_servers` is what clients connect to. Brokers have the ids 1 to N.

    `data_dir` keeps the data; by default a temporary directory is used and removed. `overrides` are settings of every
    broker, with Kafka's names. With one broker there is no ZooKeeper.
    """

    def __init__(
        self,
        *,
        brokers: int = 3,
        zookeepers: int | None = None,
        data_dir: Path | str | None = None,
        port: int | None = None,
        overrides: Mapping[str, str] | None = None,
        metrics: bool = False,
        secure: bool = False,
        registry: bool = False,
        rest: bool = False,
        monitor: bool = False,
        console: bool = False,
    ) -> None:
        """`port`: the port of broker 1. `metrics`: each broker has the pages for Prometheus (`metrics_address`).
        `secure`: like `kaspar up --secure`; `client_settings()` returns the settings for librdkafka. The schema
        registry (`registry_url`), the REST proxy (`rest_url`), the monitor (`monitor_url`) and the console
        (`console_url`) run beside the brokers if requested, but not with `secure`."""
        self._services = Services(registry=registry, rest=rest, monitor=monitor, console=console)
        if secure and self._services.names:
            raise KasparError("the services of a Cluster reach brokers that are not secured only")
        self._removes_data = data_dir is None
        self.data_dir = Path(data_dir) if data_dir is not None else Path(tempfile.mkdtemp(prefix="kaspar-"))
        self._folder = Folder(self.data_dir)
        self._overrides = dict(overrides or {})
        self._wanted = (brokers, zookeepers, port)
        self._metrics = metrics or self._services.read_metrics
        self._secure = secure
        self._members: Members | None = None
        self._locked = contextlib.ExitStack()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException as problem:
            self._note_logs(problem)
            self._end_at_once()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        self._note_logs(error)
        with contextlib.suppress(KasparError):  # the test has failed for another reason
            self.close()

    # -- the whole cluster ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start, and return when all brokers serve requests and each sees all others. Safe to call twice."""
        if self._members is not None:
            return
        self._locked.enter_context(self._folder.locked())
        self._members = members = self._prepare()
        for member in members.all:
            member.child.start()
        wait_ready(members.all, START_TIMEOUT_S)
        self.wait_complete()
        if members.plan.is_secured:
            create_users(self._folder, members.contacts)
        pages = {each.id: each.metrics_address for each in members.plan.brokers} if self._metrics else {}
        self._services.start(self.bootstrap_servers, pages)

    def _prepare(self) -> Members:
        brokers, zookeepers, port = self._wanted
        earlier = self._folder.plan()
        if port is None and earlier is None:
            port = consecutive_free_ports(brokers)[0]
        size = size_of(
            self._folder.path, earlier, brokers=brokers, port=port, zookeepers=zookeepers, secure=self._secure
        )
        if size.zookeepers:
            check_java()
        refuse_used_ports(size.broker_ports)
        plan = plan_of(size, earlier, partial(free_ports, reserved=size.broker_ports))
        return make_members(self._folder, plan, self._overrides, options=_SMALL_SERVERS, with_metrics=self._metrics)

    def wait_complete(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until every broker sees all brokers, with the controller among them."""
        until = time.monotonic() + timeout_s
        for broker in self._started.plan.brokers:
            contact = self._started.contacts[broker.id]
            while (view := view_of(contact)) is None or not view.is_complete(self._started.plan):
                if time.monotonic() > until:
                    raise KasparError(f"broker {broker.id} did not see all brokers within {timeout_s:.0f} s: {view}")
                time.sleep(_PAUSE_S)

    def stop(self) -> None:
        """Stop all processes cleanly and keep the data. Raises KasparError if a broker has failed."""
        self._services.stop()
        members, self._members = self._members, None
        if members is None:
            return
        for member in members.all:
            member.child.send(signal.SIGCONT)
        stop_members(members, _wait_a_little, timeout_s=STOP_TIMEOUT_S)
        self._locked.close()
        for broker in members.brokers:
            _check_end(broker)

    def close(self) -> None:
        try:
            self.stop()
        finally:
            self._end_at_once()

    def _end_at_once(self) -> None:
        members, self._members = self._members, None
        for member in members.all if members is not None else ():
            member.child.kill()
        self._locked.close()
        if self._removes_data:
            shutil.rmtree(self.data_dir, ignore_errors=True)

    @property
    def _started(self) -> Members:
        if self._members is None:
            raise KasparError("the cluster is not started")
        return self._members

    # -- what clients and tests ask ------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, including those that are down."""
        return self._started.plan.bootstrap_servers

    def client_settings(self, user: str = CLIENT) -> dict[str, str]:
        """Settings for librdkafka: bootstrap servers and, in a secured cluster, the login of `admin` or `client`."""
        plan = self._started.plan
        if not plan.is_secured:
            return {"bootstrap.servers": plan.bootstrap_servers}
        (access,) = [each for each in client_access(self._folder, plan) if each.user == user]
        return access.librdkafka

    @property
    def registry_url(self) -> str:
        """The URL of the schema registry, with `registry=True`."""
        return self._services.url("registry")

    @property
    def rest_url(self) -> str:
        """The URL of the REST proxy, with `rest=True`."""
        return self._services.url("rest")

    @property
    def monitor_url(self) -> str:
        """The URL of the monitor, with `monitor=True`."""
        return self._services.url("monitor")

    @property
    def console_url(self) -> str:
        """The URL of the console, with `console=True`."""
        return self._services.url("console")

    @property
    def zookeeper_connect(self) -> str:
        return self._started.plan.zookeeper_connect

    @property
    def broker_ids(self) -> list[int]:
        return [broker.id for broker in self._started.plan.brokers]

    def port(self, broker_id: int) -> int:
        return next(broker.port for broker in self._started.plan.brokers if broker.id == broker_id)

    def metrics_address(self, broker_id: int) -> str:
        return next(broker.metrics_address for broker in self._started.plan.brokers if broker.id == broker_id)

    def broker_data(self, broker_id: int) -> Path:
        """The broker's data directory."""
        return self._folder.broker_data(broker_id)

    def pid(self, broker_id: int) -> int:
        return _pid(self._broker(broker_id))

    def zookeeper_pid(self, server_id: int = 1) -> int:
        return _pid(self._zookeeper(server_id))

    def is_running(self, broker_id: int) -> bool:
        return self._broker(broker_id).child.is_running

    def log_file(self, broker_id: int) -> Path:
        return self._broker(broker_id).child.log_file

    def controller_id(self, timeout_s: float = START_TIMEOUT_S) -> int:
        """The controller, according to the brokers' metadata. Waits while a controller is being elected."""
        until = time.monotonic() + timeout_s
        while True:
            running = [each for each in self._started.plan.brokers if self._broker(each.id).child.is_running]
            view = first_view([self._started.contacts[broker.id] for broker in running])
            if view is not None and view.controller_id in {broker.id for broker in running}:
                assert view.controller_id is not None  # for mypy: None is not in the set
                return view.controller_id
            if time.monotonic() > until:
                raise KasparError(f"no broker has named a controller for {timeout_s:.0f} s: {view}")
            time.sleep(_PAUSE_S)

    # -- what tests do to brokers --------------------------------------------------------------------------------------

    def kill(self, broker_id: int) -> None:
        """Kill the broker with SIGKILL."""
        self._broker(broker_id).child.kill()

    def pause(self, broker_id: int) -> None:
        """Stop the broker with SIGSTOP: the process still exists, but does nothing."""
        self._broker(broker_id).child.pause()

    def resume(self, broker_id: int) -> None:
        self._broker(broker_id).child.send(signal.SIGCONT)

    def stop_broker(self, broker_id: int) -> None:
        """Stop the broker cleanly: it hands over its leaderships first."""
        broker = self._broker(broker_id)
        broker.child.send(signal.SIGCONT)
        broker.child.send(signal.SIGTERM)
        if not broker.child.wait(STOP_TIMEOUT_S):
            raise KasparError(f"{broker.name} did not stop within {STOP_TIMEOUT_S:.0f} s")
        _check_end(broker)

    def start_broker(self, broker_id: int, *, wait: bool = True) -> None:
        """Start a broker that was stopped or killed. With `wait`, return when it serves clients again."""
        broker = self._broker(broker_id)
        if broker.child.is_running:
            raise KasparError(f"{broker.name} is already running")
        broker.child.start()
        if wait:
            wait_ready([broker], START_TIMEOUT_S)

    def restart(self, broker_id: int) -> None:
        """Stop the broker cleanly if it runs, and start it. Returns when it serves clients again."""
        if self.is_running(broker_id):
            self.stop_broker(broker_id)
        self.start_broker(broker_id)

    def _broker(self, broker_id: int) -> Member:
        return self._started.broker(broker_id)

    # -- what tests do to ZooKeeper ------------------------------------------------------------------------------------

    def kill_zookeeper(self, server_id: int = 1) -> None:
        self._zookeeper(server_id).child.kill()

    def pause_zookeeper(self, server_id: int = 1) -> None:
        self._zookeeper(server_id).child.pause()

    def resume_zookeeper(self, server_id: int = 1) -> None:
        self._zookeeper(server_id).child.send(signal.SIGCONT)

    def start_zookeeper(self, server_id: int = 1) -> None:
        """Start a server that was killed. Returns when it serves requests, which in an ensemble needs a majority."""
        server = self._zookeeper(server_id)
        server.child.start()
        wait_ready([server], START_TIMEOUT_S)

    def _zookeeper(self, server_id: int) -> Member:
        servers = self._started.zookeepers
        if not 1 <= server_id <= len(servers):
            raise KasparError(f"there is no ZooKeeper server {server_id}: there are {len(servers)}")
        return servers[server_id - 1]

    # -- logs ----------------------------------------------------------------------------------------------------------

    def _note_logs(self, error: BaseException) -> None:
        for member in self._members.all if self._members is not None else ():
            last = "".join(f"\n  {line}" for line in _last_lines(member.child.log_file))
            error.add_note(f"-- {member.name} ({member.child.how_it_ended()}), {member.child.log_file}:{last}")


def _wait_a_little(timeout_s: float) -> bool:
    time.sleep(min(timeout_s, _PAUSE_S))
    return True


def _pid(member: Member) -> int:
    if member.child.id is None:
        raise KasparError(f"{member.name} was not started")
    return member.child.id.pid


def _check_end(broker: Member) -> None:
    """Raise KasparError if the broker ended by itself with an error. A broker that a test has killed has not failed."""
    if broker.child.exit_code not in (0, -signal.SIGKILL):
        raise KasparError(
            f"{broker.name} {broker.child.how_it_ended()}: {broker.child.last_problem()} "
            f"(the end of its log: {' | '.join(_last_lines(broker.child.log_file, 10))})"
        )


def _last_lines(file: Path, count: int = _NOTED_LINES) -> Iterable[str]:
    return file.read_text(errors="replace").splitlines()[-count:] if file.exists() else []
