"""PostgreSQL's programs, for the tests of JDBC, from Debian's package."""

from pathlib import Path

from examples.spark.postgresql import PostgresqlMissing, programs
from tests.peers.debian import require_packages


def require_postgresql() -> Path:
    """The folder of its programs."""
    require_packages(["postgresql"], _missing)
    return programs()


def _missing() -> list[str]:
    try:
        programs()
    except PostgresqlMissing:
        return ["postgres"]
    return []
