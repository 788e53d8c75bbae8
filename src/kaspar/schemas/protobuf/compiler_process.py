"""The process that runs protoc. `compiler` starts this file as a script, isolated from its folder.

It keeps protoc loaded and forks a child for every request, so that no effect of protoc outlives the request: it may
crash, loop or take memory, within the limits of the child. The process ends when its standard input does, or when it
has been idle for a while. Only the standard library and protoc are loaded: a request then costs a fork.

A request is its length in four bytes and JSON: `files` has texts of .proto files by name, `descriptors` the base64 of a
FileDescriptorSet for files that have no text, `main` the name of the file to compile. A response is a status byte, a
length in four bytes, and a FileDescriptorSet or an error message.
"""

import base64
import contextlib
import json
import os
import resource
import select
import shutil
import signal
import sys
from collections.abc import Callable
from typing import Final, TypeAlias

_Protoc: TypeAlias = Callable[[list[bytes]], int]

COMPILED: Final = b"C"
REFUSED: Final = b"R"
FAILED: Final = b"F"

CPU_S: Final = 3
MEMORY_BYTES: Final = 1 << 30
OUTPUT_BYTES: Final = 64 << 20
ERROR_BYTES: Final = 4096


def serve(folder: str, idle_s: float, include_paths: list[str]) -> None:
    """Serve requests, using an empty folder that is removed at the end."""
    from grpc_tools import _protoc_compiler  # type: ignore[import-untyped]

    try:
        while select.select([0], [], [], idle_s)[0]:
            request = _receive()
            if request is None:
                break
            _send(*_in_child(_protoc_compiler.run_main, folder, include_paths, request))
            _empty(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _receive() -> bytes | None:
    length = _read(4)
    return _read(int.from_bytes(length)) if length else None


def _read(size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        chunk = os.read(0, min(size - len(data), 1 << 20))
        if not chunk:
            return None
        data += chunk
    return bytes(data)


def _send(status: bytes, body: bytes) -> None:
    data = memoryview(status + len(body).to_bytes(4) + body)
    while data:
        data = data[os.write(1, data) :]


def _in_child(run_protoc: _Protoc, folder: str, include_paths: list[str], request: bytes) -> tuple[bytes, bytes]:
    """Run protoc in a child that may not survive it. Its exit status is protoc's."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _limit()
            status = _compile(run_protoc, folder, include_paths, request)
        except OSError as error:
            os.write(2, f"The schema could not be compiled: {error.strerror}".encode())
        except MemoryError:
            os.write(2, b"The schema could not be compiled: protoc ran out of memory")
        finally:
            os._exit(status)
    _, wait_status = os.waitpid(child, 0)
    if os.WIFSIGNALED(wait_status):
        number = os.WTERMSIG(wait_status)
        reason = "took too long" if number == signal.SIGXCPU else f"was killed by {signal.Signals(number).name}"
        return FAILED, f"protoc {reason}".encode()
    if os.WEXITSTATUS(wait_status) == 0:
        return COMPILED, _content(os.path.join(folder, "out", "set"), OUTPUT_BYTES)
    errors = _content(os.path.join(folder, "out", "errors"), ERROR_BYTES)
    return REFUSED, errors.replace(os.path.join(folder, "source", "").encode(), b"")


def _limit() -> None:
    limits = (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, OUTPUT_BYTES),
        (resource.RLIMIT_CORE, 0),
    )
    # Beyond the hard limit of CPU time the signal would be SIGKILL, which does not say why.
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
    for kind, limit in limits:
        # The hard limit may be lower already, and macOS does not allow limiting the address space.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))


def _compile(run_protoc: _Protoc, folder: str, include_paths: list[str], request: bytes) -> int:
    fields = json.loads(request)
    source, out = os.path.join(folder, "source"), os.path.join(folder, "out")
    os.mkdir(source)
    os.mkdir(out)
    errors = os.open(os.path.join(out, "errors"), os.O_WRONLY | os.O_CREAT)
    os.dup2(errors, 2)
    for name, text in fields["files"].items():
        path = os.path.join(source, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    arguments = ["protoc", f"--proto_path={source}", *(f"--proto_path={path}" for path in include_paths)]
    if fields["descriptors"]:
        with open(os.path.join(out, "given"), "wb") as file:
            file.write(base64.b64decode(fields["descriptors"]))
        arguments.append(f"--descriptor_set_in={os.path.join(out, 'given')}")
    arguments += ["--include_imports", f"--descriptor_set_out={os.path.join(out, 'set')}", fields["main"]]
    return run_protoc([argument.encode() for argument in arguments])


def _content(path: str, limit: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except OSError:
        return b""


def _empty(folder: str) -> None:
    for entry in os.scandir(folder):
        shutil.rmtree(entry.path, ignore_errors=True)


if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    serve(sys.argv[2], float(sys.argv[3]), sys.argv[4:])
