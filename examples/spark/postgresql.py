"""A temporary PostgreSQL server: in a temporary folder, on a free port of this machine, removed afterwards.

It requires Debian's package `postgresql` or another that has `initdb` and `postgres`. PostgreSQL refuses to run as
root: root starts it as the user `postgres`, which the package creates, or else as `nobody`.
"""

import contextlib
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INSTALLED_AT = Path("/usr/lib/postgresql")  # Debian keeps its programs there, by version, and off the path
DRIVER = "org.postgresql:postgresql:42.7.8"
USER = "shop"
_START_SECONDS = 60
_LOOK_SECONDS = 0.05


class PostgresqlMissing(Exception):
    """Its programs are not on this machine."""


@dataclass(frozen=True)
class Database:
    url: str
    user: str
    password: str

    @property
    def options(self) -> dict[str, str]:
        """For format("jdbc")."""
        return {"url": self.url, "user": self.user, "password": self.password, "driver": "org.postgresql.Driver"}


def programs() -> Path:
    """The folder of PostgreSQL's programs, the newest there is. PostgresqlMissing with what to do."""
    versions = sorted(
        INSTALLED_AT.glob("*/bin"), key=lambda path: [int(part) for part in re.findall(r"\d+", str(path))]
    )
    found = shutil.which("initdb")
    if found is not None:
        versions.append(Path(found).resolve().parent)
    for folder in reversed(versions):
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise PostgresqlMissing(
        "PostgreSQL is not on this machine: install it, on Debian with `apt-get install postgresql`"
    )


@contextlib.contextmanager
def postgresql() -> Iterator[Database]:
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    try:
        with _Server(programs(), folder) as database:
            yield database
    finally:
        shutil.rmtree(folder)


class _Server:
    def __init__(self, bin_folder: Path, folder: Path) -> None:
        self._bin = bin_folder
        self._folder = folder
        self._data = folder / "data"
        self._log = folder / "log"
        self._account = _account()

    def __enter__(self) -> Database:
        password, port = secrets.token_hex(16), _free_port()
        password_file = self._folder / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(password)
        if self._account is not None:
            for path in (self._folder, password_file):
                os.chown(path, self._account.pw_uid, self._account.pw_gid)
        words = ("--username", USER, "--auth", "scram-sha-256", "--pwfile", password_file)
        if self._start("initdb", "--no-sync", "--encoding", "UTF8", "--no-locale", *words).wait(_START_SECONDS) != 0:
            raise self._failed("initdb")
        settings = ("listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories=", "fsync=off")
        self._process = self._start("postgres", *(word for setting in settings for word in ("-c", setting)))
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return Database(f"jdbc:postgresql://127.0.0.1:{port}/postgres", USER, password)

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGQUIT)  # its immediate shutdown: nothing of it is kept
        self._process.wait()

    def _start(self, program: str, *words: str | Path) -> subprocess.Popen[bytes]:
        account = self._account
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [self._bin / program, "-D", self._data, *words],
                cwd=self._folder,
                user=account and account.pw_uid,
                group=account and account.pw_gid,
                extra_groups=[] if account else None,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _wait_until_ready(self) -> None:
        """The server says so in the last line of its pid file."""
        state = self._data / "postmaster.pid"
        deadline = time.monotonic() + _START_SECONDS
        while not (state.exists() and state.read_text().rstrip().endswith("ready")):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise self._failed("postgres")
            time.sleep(_LOOK_SECONDS)

    def _failed(self, program: str) -> RuntimeError:
        return RuntimeError(f"PostgreSQL did not start: {program} says\n{self._log.read_text()[-3000:]}")


def _account() -> pwd.struct_passwd | None:
    """The user that the server runs as, if not the current one."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise PostgresqlMissing("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
