"""PostgreSQL's programs, for the tests of JDBC: Debian's package, installed now where that is allowed."""

import os
import shutil
from pathlib import Path

from examples.spark.postgresql import PostgresqlMissing, programs
from tests.peers.downloads import ToolMissingError, cache_folder, locked, run_step

_QUIETLY = {"DEBIAN_FRONTEND": "noninteractive"}


def require_postgresql() -> Path:
    """The folder of its programs; root on Debian installs them if they are not there. ToolMissingError elsewhere."""
    try:
        return programs()
    except PostgresqlMissing as missing:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise ToolMissingError(str(missing)) from missing
    with locked(cache_folder() / "postgresql.lock"):
        install = ["apt-get", "install", "--yes", "--no-install-recommends", "postgresql"]
        run_step(["apt-get", "update"], folder=Path("/"), environment=_QUIETLY)
        run_step(install, folder=Path("/"), environment=_QUIETLY)
    return programs()
