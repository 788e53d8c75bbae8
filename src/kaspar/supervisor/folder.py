"""The files of a cluster on one machine, all in one folder.

cluster.json       the plan, kept for later starts
supervisor.json    what runs: for `kaspar status` and `kaspar stop`; not there when nothing runs
lock               held by the supervisor while it runs
broker-1/          server.properties, broker.log, data/, logs/ (server.log, controller.log and others)
zookeeper-1/       zoo.cfg, output.log, data/ (with zookeeper.log)
services/          registry.properties and so on, services.log, console-audit.log
security/          of a secured cluster: certificates, keys and passwords
clients/           of a secured cluster: settings for clients
"""

import contextlib
import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId
from kaspar.supervisor.plan import ClusterPlan

_LOCK: Final = "lock"
_BEFORE_THE_PLAN: Final = {_LOCK, "cluster.new"}
"""Files that a first start may leave if it is killed before it has written the plan."""
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class RunningMember:
    """A member's process, or None if it has none. `was_ready`: since this process started."""

    process: ProcessId | None = None
    was_ready: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """The processes of a cluster. Brokers and ZooKeeper servers are keyed by id."""

    supervisor: ProcessId
    brokers: dict[int, RunningMember]
    zookeepers: dict[int, RunningMember]
    services: RunningMember = RunningMember()
    """All services run in one process."""

    def processes(self) -> list[ProcessId]:
        """The processes of all members, brokers first."""
        members = [*self.brokers.values(), *self.zookeepers.values(), self.services]
        return [member.process for member in members if member.process is not None]


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._plan_file = self.path / "cluster.json"
        self._running_file = self.path / "supervisor.json"

    def broker(self, broker_id: int) -> Path:
        return self.path / f"broker-{broker_id}"

    def broker_data(self, broker_id: int) -> Path:
        return self.broker(broker_id) / "data"

    def zookeeper(self, server_id: int) -> Path:
        return self.path / f"zookeeper-{server_id}"

    @property
    def services(self) -> Path:
        return self.path / "services"

    @property
    def security(self) -> Path:
        return self.path / "security"

    @property
    def clients(self) -> Path:
        return self.path / "clients"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock that allows only one supervisor. The kernel releases it even if the process is killed."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / _LOCK).open("w")
        except OSError as problem:
            raise KasparError(f"{self.path} cannot be used: {problem.strerror}") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise KasparError(
                    f"'kaspar up' is already running in {self.path}: stop it with 'kaspar stop --dir {self.path}', "
                    "or choose "
                    "another folder with --dir"
                ) from None
            yield

    def plan(self) -> ClusterPlan | None:
        """The plan of the last start, or None if there was none. Raises KasparError if the folder is used for something
        else.
        """
        plan = _read(self._plan_file, ClusterPlan)
        if (
            plan is None
            and self.path.is_dir()
            and any(entry.name not in _BEFORE_THE_PLAN for entry in self.path.iterdir())
        ):
            raise KasparError(
                f"{self.path} is not empty and was not created by 'kaspar up': choose an empty or new folder with --dir"
            )
        return plan

    def write_plan(self, plan: ClusterPlan) -> None:
        _write(self._plan_file, plan)

    def running(self) -> Running | None:
        """The state that the supervisor wrote last. The file remains if the supervisor was killed."""
        return _read(self._running_file, Running)

    def write_running(self, running: Running) -> None:
        _write(self._running_file, running)

    def remove_running(self) -> None:
        self._running_file.unlink(missing_ok=True)


def _read(file: Path, kind: type[_Read]) -> _Read | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise KasparError(f"{file.parent} is not a folder") from None
    except OSError as problem:
        raise KasparError(f"{file} cannot be read: {problem.strerror}") from None
    except msgspec.DecodeError:  # includes msgspec.ValidationError, for a value of another type
        raise KasparError(f"{file} was not written by 'kaspar up': remove it, or choose another --dir") from None


def _write(file: Path, value: object) -> None:
    new = file.with_suffix(".new")
    try:
        new.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
        new.rename(file)
    except OSError as problem:
        raise KasparError(f"{file} cannot be written: {problem.strerror}") from None
