"""One ZooKeeper server: a Java process from PySpark's jars."""

import ctypes
import importlib.util
import re
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Final

from kaspar.base.errors import InvalidSetting, KasparError
from kaspar.security.tls import client_context
from kaspar.spark.running.java import Java, find_java
from kaspar.zookeeper.claims import claimed, refuse_used_port
from kaspar.zookeeper.config import ServerConfig

MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
DEFAULT_HEAP: Final = "1g"
"""The maximum heap size. ZooKeeper keeps its last 500 transactions in memory, and those of brokers may be 512 KiB each,
for example when thousands of ACLs are created."""
START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 20.0
_JARS: Final = (
    "zookeeper-",
    "slf4j-api-",
    "log4j-api-",
    "log4j-core-",
    "log4j-slf4j2-impl-",
    "metrics-core-",
    "snappy-java-",
    "netty-",
)
# Defaults, which the server's own file overrides. Without the first the server has no TLS, without the second no SASL.
_FOR_TLS: Final = ("-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",)
_FOR_SASL: Final = ("-Dzookeeper.authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",)
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_PAUSE_S: Final = 0.05
_ASK_TIMEOUT_S: Final = 2.0
_PR_SET_PDEATHSIG: Final = 1


class State(Enum):
    """The state that a server reports."""

    DOWN = "down"
    """It does not respond."""
    NOT_SERVING = "not serving"
    """It runs, but the ensemble has no majority or no leader yet."""
    SERVING = "serving"


def state_of(host: str, port: int, tls: ssl.SSLContext | None = None) -> State:
    """Query the state with the four-letter word `srvr`, which every server allows by default."""
    try:
        with socket.create_connection((host, port), timeout=_ASK_TIMEOUT_S) as plain:
            response = _ask(plain if tls is None else tls.wrap_socket(plain))
    except ssl.SSLEOFError:
        return State.DOWN
    except ssl.SSLError:
        return State.SERVING  # it rejects this client, but may accept others
    except OSError:
        return State.DOWN
    return State.SERVING if b"\nMode: " in response else State.NOT_SERVING


def _ask(connection: socket.socket) -> bytes:
    with connection:
        connection.sendall(b"srvr")
        response = b""
        while chunk := connection.recv(4096):
            response += chunk
        return response


def _own_client(config: ServerConfig) -> ssl.SSLContext | None:
    """The TLS context to query the state of a server that only accepts TLS, with the server's own certificate. The
    server's identity is not verified, because nothing secret is sent to it. None if the key is invalid: ZooKeeper then
    reports the error."""
    try:
        context = client_context({**config.stores, "ssl.endpoint.identification.algorithm": ""})
    except InvalidSetting:
        return None
    context.verify_mode = ssl.CERT_NONE
    return context


def command(
    java: Java,
    config: ServerConfig,
    heap: str = DEFAULT_HEAP,
    jvm_flags: Sequence[str] = (),
    jaas_file: Path | None = None,
) -> list[str]:
    """The command line of a server. `jaas_file` lists in its section Server who may log in by SASL."""
    if re.fullmatch(r"[1-9]\d*[kmg]", heap, re.IGNORECASE) is None:
        raise KasparError(f"a heap must be a size such as 256m or 1g, not '{heap}'")
    return [
        str(java.home / "bin" / "java"),
        f"-Xmx{heap}",
        "-XX:+ExitOnOutOfMemoryError",
        *jvm_flags,
        f"-Dlog4j2.configurationFile={_LOGGING}",
        f"-Dkaspar.zookeeper.log={config.log_file}",
        "-Dzookeeper.admin.enableServer=false",
        *(_FOR_TLS if config.secure_client_port is not None else ()),
        *(() if jaas_file is None else (f"-Djava.security.auth.login.config={jaas_file}", *_FOR_SASL)),
        "-cp",
        class_path(),
        MAIN_CLASS,
        str(config.file),
    ]


def class_path() -> str:
    """ZooKeeper and its dependencies, among PySpark's jars."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise KasparError("PySpark, which brings ZooKeeper, is not installed: pip install 'kaspar[spark]'")
    folder = Path(found.origin).parent / "jars"
    jars = [jar for jar in sorted(folder.glob("*.jar")) if jar.name.startswith(_JARS)]
    if not any(jar.name.startswith("zookeeper-") for jar in jars):
        raise KasparError(f"there is no ZooKeeper among PySpark's jars in {folder}: pip install 'kaspar[spark]'")
    return ":".join(map(str, jars))


class ZooKeeperServer:
    """A server's process: start, readiness, stop, kill, restart on the same data."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        heap: str = DEFAULT_HEAP,
        jvm_flags: Sequence[str] = (),
        jaas_file: Path | None = None,
    ) -> None:
        self.config = config
        self._jaas_file = jaas_file
        self.tls = _own_client(config) if config.client_port is None and config.stores else None
        """For the query of its state, if the server only accepts TLS."""
        self._heap = heap
        self._jvm_flags = jvm_flags
        self._process: subprocess.Popen[bytes] | None = None
        self._logged_before = 0

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def state(self) -> State:
        """The server's state. SERVING also if the process runs and its port is unknown."""
        if not self.is_running:
            return State.DOWN
        config = self.config
        if config.client_port is not None:
            return state_of(config.client_host, config.client_port)
        if config.secure_client_port is not None and self.tls is not None:
            return state_of(config.client_host, config.secure_client_port, self.tls)
        return State.SERVING

    def start(self, *, ends_with_caller: bool = False) -> None:
        """Start the process without waiting until it serves. `ends_with_caller`: the kernel terminates it when the
        calling thread ends for any reason.
        """
        if self.is_running:
            raise KasparError(f"ZooKeeper is already running on {self.config.file}")
        line = command(find_java(for_program="ZooKeeper"), self.config, self._heap, self._jvm_flags, self._jaas_file)
        try:
            self.config.data_dir.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise KasparError(f"{self.config.data_dir} cannot be used: {problem.strerror}") from None
        with claimed(self.config.data_dir) as lock:
            refuse_used_port(self.config)
            log = self.config.log_file
            self._logged_before = log.stat().st_size if log.exists() else 0
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                preexec_fn=_end_with_parent if ends_with_caller else None,
                pass_fds=(lock.fileno(),),
            )

    def wait_serving(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until clients can use the server. An ensemble serves when a majority of its members run."""
        until = time.monotonic() + timeout_s
        while self.state is not State.SERVING:
            if not self.is_running:
                raise self.failure()
            if time.monotonic() > until:
                raise KasparError(f"ZooKeeper does not serve after {timeout_s:.0f} s: see {self.config.log_file}")
            time.sleep(_PAUSE_S)

    def failure(self) -> KasparError:
        """The reason why the process exited by itself."""
        code = "unknown" if self._process is None else self._process.poll()
        return KasparError(f"ZooKeeper exited with code {code}: {self._last_problem()} (see {self.config.log_file})")

    def terminate(self) -> None:
        """Send SIGTERM, without waiting for the exit."""
        if self._process is not None and self.is_running:
            self._process.terminate()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until the process has exited. Returns its exit code."""
        return None if self._process is None else self._process.wait(timeout_s)

    def stop(self) -> None:
        """SIGTERM, then SIGKILL if that does not end it. Safe to call twice."""
        self.terminate()
        try:
            self.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _last_problem(self) -> str:
        """The last exception or error in the log of this run."""
        log = self.config.log_file
        if not log.exists():
            return "it has logged nothing"
        written = log.read_bytes()
        lines = written[self._logged_before if self._logged_before <= len(written) else 0 :].decode(errors="replace")
        told = [line.strip() for line in lines.splitlines() if line.strip() and not line.startswith("\t")]
        problems = [line for line in told if "Exception" in line or " ERROR " in line]
        causes = [line for line in problems if not line.startswith("[")]  # an exception's own line has no timestamp
        return (causes or problems or told or ["it has logged nothing"])[-1]


def _end_with_parent() -> None:
    """Runs in the new process, before Java."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
