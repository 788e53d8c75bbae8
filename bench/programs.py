"""The load programs, in C, which are built on first use and cached.

librdkafka comes as source in an npm package, with a pinned version and hash. It is built only with what the load needs,
so that only a C compiler and make have to be installed. Loads with encryption also need the headers of OpenSSL.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tests.peers.downloads import StepError, ToolMissingError, cached, require_tool, run_step

_SOURCES = Path(__file__).parent / "load"
_MANIFEST = _SOURCES / "librdkafka.json"
_COMPILE = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
_NOT_NEEDED = ("gssapi", "curl", "zstd", "zlib", "lz4-ext")
_OPENSSL = ("-lssl", "-lcrypto")
_LIBRARIES = ("-lm", "-ldl", "-lpthread", "-lrt")
_PROGRAM_TIMEOUT_SECONDS = 600.0
_WIRE_PROGRAMS = ("requests", "probe")
_WIRE = (_SOURCES / "wire.c",)
_COORDINATION = (*_WIRE, _SOURCES / "loop.c", _SOURCES / "coordination.c")
_COORDINATION_PROGRAMS = ("classic_group", "consumer_group", "commits", "transactions")

# The output of a load program: numbers by name.
Measured = Mapping[str, float]


class BuildError(Exception):
    """The C compiler or make failed. The text contains the end of its output."""


class LoadError(Exception):
    """A load program ended with an error, so the measurement is invalid. The text is its output."""


@dataclass(frozen=True, slots=True)
class Programs:
    client: Path
    requests: Path
    probe: Path
    classic_group: Path
    consumer_group: Path
    commits: Path
    transactions: Path

    @classmethod
    def build(cls) -> "Programs":
        folder = cached("bench-load", _manifests(), _compile)
        return cls(*(folder / field.name for field in fields(cls)))


@dataclass(frozen=True, slots=True)
class TlsPrograms(Programs):
    """The programs with a client that encrypts, and a program that opens connections."""

    connections: Path

    @classmethod
    def build(cls) -> "TlsPrograms":
        folder = cached("bench-load-tls", _manifests(), _compile_with_tls)
        return cls(*(folder / field.name for field in fields(cls)))


def _manifests() -> list[Path]:
    return [_MANIFEST, *sorted(path for path in _SOURCES.iterdir() if path.suffix in (".c", ".h"))]


def librdkafka_version() -> str:
    manifest = json.loads(_MANIFEST.read_text())
    return f"librdkafka of {manifest['package']} {manifest['version']}"


def start(program: Path, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(program), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], *, accept: tuple[int, ...] = (0,)) -> Measured:
    """Wait for the program and return its results: the JSON object that it printed."""
    try:
        output, errors = process.communicate(timeout=_PROGRAM_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as expired:
        raise LoadError(f"{process.args!r} did not end within {_PROGRAM_TIMEOUT_SECONDS:.0f} s") from expired
    finally:
        if process.poll() is None:  # also if the benchmark itself is stopped
            process.kill()
            process.wait()
    if process.returncode not in accept:
        raise LoadError(errors.strip()[-1000:] or f"{process.args!r} ended with code {process.returncode}")
    measured: Any = json.loads(output)
    return {name: float(value) for name, value in measured.items()}


def run(program: Path, *arguments: object, accept: tuple[int, ...] = (0,)) -> Measured:
    return finish(start(program, *arguments), accept=accept)


def _compile(folder: Path, _attempt: int) -> None:
    _compile_all(folder, cached("librdkafka", [_MANIFEST], _fetch_and_build_librdkafka))


def _compile_with_tls(folder: Path, _attempt: int) -> None:
    _require_openssl(folder)
    library = cached("librdkafka-tls", [_MANIFEST], _fetch_and_build_librdkafka_with_tls)
    _compile_all(folder, library, *_OPENSSL)
    _compile_program("connections", _WIRE, folder, *_OPENSSL, "-lpthread")


def _compile_all(folder: Path, library: Path, *more_libraries: str) -> None:
    client = [library / "librdkafka.a"]
    _compile_program("client", client, folder, *more_libraries, *_LIBRARIES, headers=library)
    for name in _WIRE_PROGRAMS:
        _compile_program(name, _WIRE, folder)
    for name in _COORDINATION_PROGRAMS:
        _compile_program(name, _COORDINATION, folder)


def _compile_program(
    name: str, parts: Sequence[Path], folder: Path, *libraries: str, headers: Path | None = None
) -> None:
    include: list[str | Path] = [] if headers is None else ["-isystem", headers]
    sources = [_SOURCES / f"{name}.c", *parts]
    _build_step([require_tool("cc"), *_COMPILE, *include, *sources, *libraries, "-o", folder / name], folder)


def _require_openssl(folder: Path) -> None:
    try:
        run_step([require_tool("cc"), "-fsyntax-only", "-include", "openssl/ssl.h", "-xc", "/dev/null"], folder=folder)
    except StepError:
        raise ToolMissingError("the headers of OpenSSL are not on this machine (package libssl-dev)") from None


def _fetch_and_build_librdkafka(folder: Path, _attempt: int) -> None:
    _fetch_and_build(folder, (*_NOT_NEEDED, "ssl"))


def _fetch_and_build_librdkafka_with_tls(folder: Path, _attempt: int) -> None:
    _fetch_and_build(folder, _NOT_NEEDED)


def _fetch_and_build(folder: Path, without: Sequence[str]) -> None:
    manifest = json.loads(_MANIFEST.read_text())
    # npm is only used to fetch the archive. Nothing of the package is installed or run.
    run_step([require_tool("npm"), "pack", "--silent", f"{manifest['package']}@{manifest['version']}"], folder=folder)
    (archive,) = folder.glob("*.tgz")
    if hashlib.sha512(archive.read_bytes()).hexdigest() != manifest["sha512"]:
        raise StepError(f"{archive.name} does not have the hash that {_MANIFEST.name} names")
    run_step(["tar", "xzf", archive, "package/deps/librdkafka"], folder=folder)
    source = folder / "package" / "deps" / "librdkafka"
    _build_step(["./configure", *(f"--disable-{part}" for part in without)], source)
    _build_step([require_tool("make"), "-C", "src", f"-j{os.cpu_count() or 1}", "librdkafka.a"], source)
    (source / "src" / "librdkafka.a").rename(folder / "librdkafka.a")
    (source / "src" / "rdkafka.h").rename(folder / "rdkafka.h")
    run_step(["rm", "-rf", archive, folder / "package"], folder=folder)


def _build_step(command: list[str | Path], folder: Path) -> None:
    try:
        run_step(command, folder=folder)
    except StepError as error:
        raise BuildError(str(error)) from error
