"""The environments that this process has open, one for each partition, and the removal of bad files.

LMDB does not allow opening an environment twice in a process, or using one in a forked process. Environments are
therefore opened once and kept open, up to a number; before a fork, those that are not in use are closed. Files that are
damaged, or that did not survive a crash of the machine, are removed, with a line in the log: they are a cache.

Opening, discarding or writing the files of a partition requires its lock, which all processes share.
"""

import fcntl
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kaspar.base.log import get_log
from kaspar.streams.errors import StreamsError
from kaspar.streams.stores.disk.deltas import delta_folder
from kaspar.streams.stores.disk.environment import DAMAGE, Environment, boot_mark, folder, identity
from kaspar.streams.stores.disk.partition_state import PartitionState

MAX_OPEN = 64
"""The number of environments that are kept open while not in use. Each has two open files."""

_log = get_log(__name__)


class _Opened:
    def __init__(self) -> None:
        self.environments: dict[Path, Environment] = {}
        """Ordered by last use, the most recent one last."""
        self.lock = threading.RLock()
        self.inherited: list[Environment] = []

    def before_fork(self) -> None:
        self.lock.acquire()
        self.close_unused(0)

    def close_unused(self, kept: int) -> None:
        """Close unused environments, the least recently used first, until at most `kept` are open."""
        for directory, environment in list(self.environments.items()):
            if len(self.environments) > kept and not environment.users:
                environment.lmdb.close()
                del self.environments[directory]

    def after_fork_in_parent(self) -> None:
        self.lock.release()

    def after_fork_in_child(self) -> None:
        """Keep the inherited environments without using them: closing them would end the parent's read transactions."""
        self.lock = threading.RLock()
        self.inherited.extend(self.environments.values())
        self.environments = {}


_opened = _Opened()
os.register_at_fork(
    before=_opened.before_fork,
    after_in_parent=_opened.after_fork_in_parent,
    after_in_child=_opened.after_fork_in_child,
)


@contextmanager
def partition_lock(directory: Path) -> Iterator[None]:
    """Lock a partition for one thread of one process. The lock is not reentrant."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def opened_environment(directory: Path) -> Environment | None:
    """The environment of a partition, if this process has it open and its files can still be trusted."""
    environment = _opened.environments.get(directory)
    return environment if environment is not None and environment.is_current() else None


def read_state(directory: Path) -> PartitionState | None:
    """The current version of a partition, if this process has it open."""
    with _opened.lock:
        environment = opened_environment(directory)
        if environment is None:
            return None
        _opened.environments[directory] = _opened.environments.pop(directory)
        return PartitionState(environment)


def open_environment(directory: Path) -> Environment:
    """The environment of a partition. The caller holds the partition's lock."""
    with _opened.lock:
        environment = opened_environment(directory)
        if environment is not None:
            return environment
        _forget(directory)
        data_file = folder(directory) / "data.mdb"
        if data_file.exists() and not boot_mark(directory).is_trusted():
            discard(directory, "they were damaged, or did not survive a crash of the machine")
        found = identity(data_file)
        if found is not None and any(each.identity == found for each in _opened.inherited):
            raise StreamsError(
                f"the state in {directory} was in use when this process was forked, and cannot be opened in it"
            )
        try:
            environment = Environment(directory)
        except DAMAGE as error:
            discard(directory, str(error))
            environment = Environment(directory)
        _opened.close_unused(MAX_OPEN - 1)
        _opened.environments[directory] = environment
        return environment


def close_environment(directory: Path, *, sync: bool = True) -> None:
    """Close the environment of a partition in this process. With `sync`, its files survive a crash of the machine."""
    directory = directory.resolve()
    with partition_lock(directory), _opened.lock:
        environment = opened_environment(directory)
        if environment is not None and sync:
            environment.sync()
        _forget(directory)


def discard(directory: Path, reason: str) -> None:
    """Remove the files of a partition. Processes that have them open can still read them."""
    _log.warning(
        "discarded the files of a partition's state: it is rebuilt from the changelogs",
        directory=directory,
        reason=reason,
    )
    _forget(directory)
    shutil.rmtree(folder(directory), ignore_errors=True)
    shutil.rmtree(delta_folder(directory), ignore_errors=True)
    boot_mark(directory).remove()


def _forget(directory: Path) -> None:
    environment = _opened.environments.pop(directory, None)
    if environment is not None and not environment.users:
        environment.lmdb.close()
