"""Downloads that the tests need: made once, kept, and named when they fail.

A download lives in a folder of the cache (`$XDG_CACHE_HOME/kaspar`, by default `~/.cache/kaspar`) whose name holds a
hash of its manifest, so a changed version is another download. It is built in a temporary folder and renamed, so a
half-made one is never seen. A lock file makes several test processes build it once. Each download is tried twice.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ATTEMPTS = 2
STEP_TIMEOUT_SECONDS = 600

# Fills an empty folder; the argument is the number of the attempt, counted from 1.
Build = Callable[[Path, int], None]


class DownloadError(Exception):
    """A download failed, twice: the network or the registry is at fault, not the product."""


class ToolMissingError(Exception):
    """A program that a test needs is not on this machine."""


class StepError(Exception):
    """One program of a download ended with an error; the download may be tried again."""


class BuildError(Exception):
    """What was downloaded could not be built: a fault of our own, which another try would not mend."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kaspar"


def require_tool(program: str) -> str:
    """The path of a program, or ToolMissingError."""
    path = shutil.which(program)
    if path is None:
        raise ToolMissingError(f"'{program}' is not on this machine")
    return path


def run_step(
    command: Sequence[str | Path],
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    failure: type[StepError] | type[BuildError] = StepError,
) -> None:
    """Run one program of a download or build; the error carries the end of what it printed."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=STEP_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        raise failure(f"'{command[0]}' did not end within {STEP_TIMEOUT_SECONDS} s") from expired
    if done.returncode != 0:
        raise failure(f"'{command[0]}' ended with code {done.returncode}:\n{done.stdout[-3000:]}")


def cached(name: str, manifests: Sequence[Path], build: Build) -> Path:
    """The folder that `build` filled for these manifests, built now if it is not there."""
    target = cache_folder() / f"{name}-{_digest(manifests)}"
    if target.is_dir():
        return target
    with locked(target.with_name(f"{target.name}.lock")):
        if not target.is_dir():  # another process may have built it while this one waited
            _build_atomically(name, target, build)
    return target


def _digest(manifests: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for manifest in manifests:
        content = manifest.read_bytes()
        digest.update(f"{manifest.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_atomically(name: str, target: Path, build: Build) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        folder = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        try:
            build(folder, attempt)
        except StepError as error:
            if attempt == ATTEMPTS:
                raise DownloadError(f"DOWNLOAD FAILED: {name}, tried {ATTEMPTS} times; at last {error}") from error
        else:
            folder.rename(target)
            return
        finally:
            shutil.rmtree(folder, ignore_errors=True)
