"""kcat from Debian's package, installed now where that is possible."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.peers.downloads import DownloadError, StepError, ToolMissingError, cache_folder, locked, run_step

_QUIET = {"DEBIAN_FRONTEND": "noninteractive"}


def kcat_path() -> str:
    """The path of kcat; installs it when it is missing, apt-get is there and this is root."""
    found = shutil.which("kcat")
    if found is not None:
        return found
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise ToolMissingError("'kcat' is not on this machine (Debian's package kcat brings it)")
    with locked(cache_folder() / "kcat.lock"):
        if shutil.which("kcat") is None:
            _install()
    found = shutil.which("kcat")
    if found is None:
        raise DownloadError("DOWNLOAD FAILED: the package kcat brought no program of that name")
    return found


def _install() -> None:
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "kcat"]
    try:
        if _is_known():
            try:
                run_step(install, folder=Path("/"), environment=_QUIET)
            except StepError:  # the list of packages may be older than what the mirror still has
                _update_and(install)
        else:
            _update_and(install)
    except StepError as error:
        raise DownloadError(f"DOWNLOAD FAILED: kcat; {error}") from error


def _update_and(install: list[str]) -> None:
    run_step(["apt-get", "update", "--quiet"], folder=Path("/"), environment=_QUIET)
    run_step(install, folder=Path("/"), environment=_QUIET)


def _is_known() -> bool:
    shown = subprocess.run(["apt-cache", "show", "kcat"], capture_output=True, check=False)
    return shown.returncode == 0
