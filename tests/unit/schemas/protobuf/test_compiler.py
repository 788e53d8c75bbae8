"""The process that runs protoc: started once, replaced when it is gone, and never the end of this one."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from kaspar.schemas import InvalidSchema
from kaspar.schemas.protobuf import compiler_process
from kaspar.schemas.protobuf.compiler import Compiler

MESSAGE = {"default": 'syntax = "proto3"; message M {}'}


@pytest.fixture
def compiler() -> Iterator[Compiler]:
    compiler = Compiler()
    yield compiler
    compiler.close()


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "the condition never came true"
        time.sleep(0.01)


def test_nothing_runs_before_the_first_schema(compiler: Compiler) -> None:
    assert compiler.process_id is None


def test_one_process_compiles_all_schemas(compiler: Compiler) -> None:
    compiler.compile("default", MESSAGE, b"")
    first = compiler.process_id
    with pytest.raises(InvalidSchema):
        compiler.compile("default", {"default": "no schema"}, b"")
    compiler.compile("default", MESSAGE, b"")
    assert compiler.process_id == first is not None


def test_threads_take_turns(compiler: Compiler) -> None:
    def compiled(name: str) -> str:
        files = FileDescriptorSet.FromString(compiler.compile("default", {"default": f"message {name} {{}}"}, b""))
        return str(files.file[0].message_type[0].name)

    names = [f"M{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(compiled, names)) == names


def test_killed_process_is_replaced(compiler: Compiler) -> None:
    compiler.compile("default", MESSAGE, b"")
    killed = compiler.process_id
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    assert compiler.compile("default", MESSAGE, b"")
    assert compiler.process_id not in (None, killed)


def test_idle_process_ends_by_itself_and_is_replaced() -> None:
    compiler = Compiler(idle_s=0.01)
    try:
        compiler.compile("default", MESSAGE, b"")
        wait_until(lambda: compiler.process_id is None)
        assert compiler.compile("default", MESSAGE, b"")
    finally:
        compiler.close()


def test_process_that_does_not_respond_is_given_up_at_the_deadline() -> None:
    compiler = Compiler(deadline_s=0.2)
    try:
        wait_until(lambda: _compiles(compiler))
        stopped = compiler.process_id
        assert stopped is not None
        os.kill(stopped, signal.SIGSTOP)
        with pytest.raises(InvalidSchema, match="took too long"):
            compiler.compile("default", MESSAGE, b"")
        assert not _runs(stopped)
        wait_until(lambda: _compiles(compiler))
    finally:
        compiler.close()


def _compiles(compiler: Compiler) -> bool:
    try:
        return bool(compiler.compile("default", MESSAGE, b""))
    except InvalidSchema:
        return False


def test_closed_compiler_leaves_neither_a_process_nor_a_folder(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compiler.compile("default", MESSAGE, b"")
    process = compiler.process_id
    assert process is not None
    assert len(list(tmp_path.iterdir())) == 1
    compiler.close()
    assert list(tmp_path.iterdir()) == []
    assert not _runs(process)


def test_forked_process_does_not_use_its_parents_pipes(compiler: Compiler) -> None:
    compiler.compile("default", MESSAGE, b"")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            parents = compiler.process_id
            compiler.compile("default", MESSAGE, b"")
            status = 0 if compiler.process_id != parents else 2
            compiler.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert compiler.compile("default", MESSAGE, b"")


PARENT = """
import sys, time
from kaspar.schemas.protobuf.compiler import Compiler
compiler = Compiler()
compiler.compile("default", {"default": "message M {}"}, b"")
print(compiler.process_id, flush=True)
time.sleep(60)
"""


def test_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        process = int(parent.stdout.readline())
        assert _runs(process)
        parent.kill()
    wait_until(lambda: not _runs(process) and not list(tmp_path.iterdir()))


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


REQUEST = b'{"main": "default", "files": {"default": ""}, "descriptors": ""}'


def run(protoc: Callable[[list[bytes]], int], folder: Path) -> tuple[bytes, bytes]:
    """One request with something else in the place of protoc."""
    return compiler_process._in_child(protoc, str(folder), [], REQUEST)


def test_protoc_that_is_killed_is_reported(tmp_path: Path) -> None:
    def die(_: list[bytes]) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert run(die, tmp_path) == (compiler_process.FAILED, b"protoc was killed by SIGKILL")


def test_protoc_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_process, "CPU_S", 1)

    def loop(_: list[bytes]) -> int:
        while True:
            pass

    status, message = run(loop, tmp_path)
    assert status == compiler_process.FAILED
    assert b"protoc took too long" in message


def test_protoc_that_takes_too_much_memory_is_refused_it(tmp_path: Path) -> None:
    status, message = run(lambda _: len(bytearray(compiler_process.MEMORY_BYTES)), tmp_path)
    assert status == compiler_process.REFUSED
    assert b"out of memory" in message


def test_protoc_that_writes_too_much_is_ended(tmp_path: Path) -> None:
    def write(arguments: list[bytes]) -> int:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        target = next(argument for argument in arguments if argument.startswith(b"--descriptor_set_out="))
        with open(target.partition(b"=")[2], "wb") as file:
            file.truncate(compiler_process.OUTPUT_BYTES + 1)
        return 0

    status, message = run(write, tmp_path)
    assert (status, message) == (compiler_process.FAILED, b"protoc was killed by SIGXFSZ")
