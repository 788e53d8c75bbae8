"""A program that takes one JSON command per line on its standard input and writes one response line for each.

    {"call": "produce", "topic": ..., ...}    ->    {"result": ...}    or    {"error": "INVALID_CONFIG", "message": ...}

It is how clients of other languages are reached, and any client that a scenario kills. The end of its input ends it.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

from tests.compat.drivers.api import CALL_TIMEOUT_SECONDS, ClientError

_SLACK_SECONDS = 10.0  # beyond what a call may take, before the process itself is held to be stuck


class LinesProcess:
    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # so that what the program starts is killed with it
        )
        self._lock = threading.Lock()  # one command at a time
        self._responses: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name=f"{name}-responses", daemon=True)
        self._reader.start()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def call(self, call: str, **arguments: Any) -> Any:
        command = {"call": call, "timeout_ms": int(CALL_TIMEOUT_SECONDS * 1000), **arguments}
        with self._lock:
            response = self._ask(json.dumps(command) + "\n", call)
        if not response:
            raise ClientError("DRIVER_ENDED", f"{self.name} ended at {call}: {self._printed()}")
        if "error" in response:
            raise ClientError(response["error"], response.get("message", ""))
        return response["result"]

    def _ask(self, line: str, call: str) -> dict[str, Any]:
        """The response; empty if the process has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            return dict(json.loads(self._responses.get(timeout=CALL_TIMEOUT_SECONDS + _SLACK_SECONDS) or "{}"))
        except BrokenPipeError:
            return {}
        except queue.Empty:
            self.kill()
            raise ClientError("DRIVER_STUCK", f"{self.name} did not respond to {call}: {self._printed()}") from None

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it was killed
            self._process.stdin.close()
        try:
            self._process.wait(CALL_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join()
        self._errors.close()

    def kill(self) -> None:
        """SIGKILL: the client closes nothing itself. Safe to call twice."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._responses.put(line)
        self._responses.put("")

    def _printed(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-3000:]
