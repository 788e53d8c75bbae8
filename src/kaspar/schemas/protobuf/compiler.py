"""Runs protoc in a process of its own (`compiler_process`), which is started on first use and ends when idle.

In this process protoc would permanently cost 10 MB, and a schema that crashes protoc or keeps it busy would do the same
to the registry. A process for every schema would cost 50 ms of start each; the running one compiles a small schema in 5
ms.
"""

import atexit
import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, cast

from kaspar.base.errors import KasparError
from kaspar.base.pipes import PeerEnded, Pipes
from kaspar.schemas.protobuf.compiler_process import COMPILED, REFUSED
from kaspar.schemas.protobuf.well_known import include_paths, protoc_folder
from kaspar.schemas.schema import InvalidSchema

# The child gives up after three seconds of CPU time; this is for a child that does not even get those.
DEADLINE_S: Final = 20.0
IDLE_S: Final = 30.0

_NO_ERROR: Final = re.compile(r": warning: |^WARNING: All log messages|^[IWEF]\d{4} ")


class CompilerFailed(KasparError):
    """protoc cannot be run here. It is not the schema's fault."""


class Compiler:
    """Has at most one running process. Requests of several threads take turns."""

    def __init__(self, *, deadline_s: float = DEADLINE_S, idle_s: float = IDLE_S) -> None:
        self._deadline_s = deadline_s
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = ""
        self._owner = 0

    def compile(self, main: str, files: Mapping[str, str], descriptors: bytes) -> bytes:
        """The serialized FileDescriptorSet of a file and all its imports, `main` last. Blocks; raises InvalidSchema
        with protoc's message."""
        given = base64.b64encode(descriptors).decode()
        body = json.dumps({"main": main, "files": dict(files), "descriptors": given}).encode()
        with self._lock:
            status, response = self._ask(len(body).to_bytes(4) + body)
        if status == COMPILED:
            return response
        message = _errors(response.decode(errors="replace")) or "protoc refused the schema without a message"
        if status == REFUSED:
            raise InvalidSchema(message)
        raise InvalidSchema(f"The schema could not be compiled: {message}")

    def close(self) -> None:
        """End the process, if one is running. The next request starts another."""
        with self._lock:
            self._end()

    @property
    def process_id(self) -> int | None:
        """The id of the running process, if there is one."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def _ask(self, request: bytes) -> tuple[bytes, bytes]:
        for _ in range(2):
            process = self._running()
            try:
                return self._exchange(process, request)
            except PeerEnded:  # e.g. its idle time ended just when the request was sent
                self._end()
        raise CompilerFailed("the process that runs protoc ends without a response")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():
            # A process forked from this one must not use its parent's pipes.
            self._process = None
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._folder = tempfile.mkdtemp(prefix="kaspar-protoc-")
            self._process = _start(self._folder, self._idle_s)
            self._owner = os.getpid()
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes) -> tuple[bytes, bytes]:
        until = time.monotonic() + self._deadline_s
        pipes = Pipes(cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout))
        try:
            pipes.send(request, until)
            head = pipes.receive(5, until)
            return head[:1], pipes.receive(int.from_bytes(head[1:]), until)
        except TimeoutError:
            self._end()
            raise InvalidSchema("The schema could not be compiled: protoc took too long") from None

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                cast(IO[bytes], pipe).close()
        if process.poll() is None:
            # It is a process group of its own, so that a stuck protoc ends as well.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _start(folder: str, idle_s: float) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("compiler_process.py")
    try:
        arguments = [str(protoc_folder().parent), folder, str(idle_s), *include_paths()]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ModuleNotFoundError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise CompilerFailed(f"protoc cannot be started: {error}") from error
    # Reaps the process when it ends by itself.
    threading.Thread(target=process.wait, name="protoc", daemon=True).start()
    return process


def _errors(output: str) -> str:
    """protoc's output without its warnings and without what its logging library writes about itself."""
    return "; ".join(line for line in output.splitlines() if line.strip() and not _NO_ERROR.search(line))


COMPILER: Final = Compiler()
atexit.register(COMPILER.close)
