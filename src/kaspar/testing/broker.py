"""`Broker`: a context manager that runs a broker in this process (a thread with its own event loop) or in another.

It sets no signal handlers, several can run at once, and `close()` may be called twice. If an in-process broker has
failed because of a broken invariant, `close()` raises that error, which fails the test; the process never exits.
"""

import asyncio
import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvloop

from kaspar.base.errors import KasparError
from kaspar.config import BrokerSettings
from kaspar.supervisor.ports import free_ports
from kaspar.testing.services import Services

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


class Broker:
    """A running broker; `bootstrap_servers` is what clients connect to.

    `data_dir` keeps the data; by default a temporary directory is used and removed. `process=True` runs the broker in a
    separate process, which can be killed. `overrides` are settings with Kafka's names.
    """

    def __init__(
        self,
        *,
        data_dir: Path | str | None = None,
        port: int = 0,
        process: bool = False,
        overrides: Mapping[str, str] | None = None,
        registry: bool = False,
        rest: bool = False,
        monitor: bool = False,
        console: bool = False,
    ) -> None:
        """Services that run beside the broker if requested: the schema registry (`registry_url`), the REST proxy
        (`rest_url`), the monitor (`monitor_url`) and the console (`console_url`)."""
        self.process = process
        self._services = Services(registry=registry, rest=rest, monitor=monitor, console=console)
        self._metrics_address = f"127.0.0.1:{next(free_ports())}" if self._services.read_metrics else ""
        self._removes_data = data_dir is None
        self.data_dir = Path(data_dir) if data_dir is not None else Path(tempfile.mkdtemp(prefix="kaspar-"))
        self._port = port
        self._overrides = dict(overrides or {})
        self._running: _InThread | _InProcess | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start, and return when clients can connect. After `stop()` it starts again with the same data and port."""
        if self._running is not None:
            return
        values = {
            "node.id": "1",
            "log.dirs": str(self.data_dir),
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "kaspar.metrics.listener": self._metrics_address,
            **self._services.broker_settings,
            **self._overrides,
        }
        running = _InProcess(values) if self.process else _InThread(values)
        self._port = running.port
        self._running = running
        self._services.start(self.bootstrap_servers, {1: self._metrics_address} if self._metrics_address else {})

    @property
    def port(self) -> int:
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

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
    def pid(self) -> int:
        return self._running.pid if isinstance(self._running, _InProcess) else os.getpid()

    def stop(self) -> None:
        """Stop cleanly and keep the data."""
        try:
            self._services.stop()
        finally:
            self._stop_broker()

    def _stop_broker(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def kill(self) -> None:
        """Kill the broker's process with SIGKILL (only with `process=True`). Its services keep running."""
        if not isinstance(self._running, _InProcess):
            raise KasparError("only a broker with process=True can be killed")
        running, self._running = self._running, None
        running.kill()

    def close(self) -> None:
        try:
            self.stop()
        finally:
            if self._removes_data:
                shutil.rmtree(self.data_dir, ignore_errors=True)


class _InThread:
    def __init__(self, values: Mapping[str, str]) -> None:
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested: asyncio.Event | None = None
        self.port = 0
        self._thread = threading.Thread(
            target=self._run, args=(BrokerSettings.of(values),), name="kaspar-broker", daemon=True
        )
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            self._request_stop()
            raise KasparError(f"the broker did not start within {START_TIMEOUT_S:.0f} s")
        self._raise_problem()

    def _raise_problem(self) -> None:
        if self._problem is not None:
            self._thread.join()
            raise self._problem

    def _run(self, settings: BrokerSettings) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve(settings))
        except BaseException as problem:
            self._problem = problem
        finally:
            self._started.set()

    async def _serve(self, settings: BrokerSettings) -> None:
        from kaspar.broker.server import Broker as Server

        self._loop = asyncio.get_running_loop()
        self._stop_requested = asyncio.Event()
        server = Server(settings)
        try:
            await server.start()
            self.port = server.port
            self._started.set()
            stop_requested = self._loop.create_task(self._stop_requested.wait())
            await asyncio.wait((stop_requested, server.failure), return_when=asyncio.FIRST_COMPLETED)
            stop_requested.cancel()
            if server.failure.done():
                problem = server.failure.result()
                raise AssertionError(f"the broker failed: {problem}") from problem
        finally:
            await server.stop()

    def _request_stop(self) -> None:
        if self._loop is not None and self._stop_requested is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop is closed: the broker has already ended
                self._loop.call_soon_threadsafe(self._stop_requested.set)

    def stop(self) -> None:
        self._request_stop()
        self._thread.join(STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise KasparError(f"the broker did not stop within {STOP_TIMEOUT_S:.0f} s")
        self._raise_problem()


class _InProcess:
    def __init__(self, values: Mapping[str, str]) -> None:
        read_end, write_end = os.pipe()
        command = [sys.executable, "-m", "kaspar.testing.process", str(write_end)]
        command += [f"{name}={value}" for name, value in values.items()]
        self._process: subprocess.Popen[Any] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=(write_end,), start_new_session=True
        )
        os.close(write_end)
        try:
            self.port = self._wait_until_ready(read_end)
        except BaseException:
            self.kill()
            raise

    def _wait_until_ready(self, read_end: int) -> int:
        with os.fdopen(read_end, "rb") as ready:
            if not select.select((ready,), (), (), START_TIMEOUT_S)[0]:
                raise KasparError(f"the broker did not start within {START_TIMEOUT_S:.0f} s")
            port = ready.read()  # returns when the broker has written its port, or has ended
        if not port:
            code = self._process.wait(STOP_TIMEOUT_S)
            raise KasparError(f"the broker exited with code {code} before it was ready")
        return int(port)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise KasparError(f"the broker did not stop within {STOP_TIMEOUT_S:.0f} s") from None
        if code != 0:
            raise KasparError(f"the broker exited with code {code}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(STOP_TIMEOUT_S)
