"""Programs from Debian's packages, installed when a test first needs them: that takes root and apt-get."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.peers.downloads import DownloadError, StepError, ToolMissingError, cache_folder, locked, run_step

_QUIETLY: Final = {"DEBIAN_FRONTEND": "noninteractive"}
_PATH: Final = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def not_found(programs: Sequence[str]) -> list[str]:
    """Those of the programs that are not on this machine."""
    return [program for program in programs if shutil.which(program, path=_PATH) is None]


def require_packages(packages: Sequence[str], missing: Callable[[], Sequence[str]]) -> None:
    """Return when nothing is `missing` any more. ToolMissingError where these packages cannot be installed."""
    if not missing():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ToolMissingError(f"'{missing()[0]}' is not on this machine (Debian's packages: {', '.join(packages)})")
    with locked(cache_folder() / "apt.lock"):  # one for all packages: apt-get refuses to run beside another
        if missing():
            _install(packages)
    if left := missing():
        raise DownloadError(f"DOWNLOAD FAILED: the packages {', '.join(packages)} brought no '{left[0]}'")


def _install(packages: Sequence[str]) -> None:
    try:
        run_step(["apt-get", "update", "--quiet"], folder=Path("/"), environment=_QUIETLY)
        install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
        run_step(install, folder=Path("/"), environment=_QUIETLY)
    except StepError as error:
        raise DownloadError(f"DOWNLOAD FAILED: {', '.join(packages)}; {error}") from error
