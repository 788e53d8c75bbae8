"""The mark on an embedded store whose contents were moved to ZooKeeper: from then on no broker may use the file.

The mark is a table and a special format version. A release that knows the mark reports where the metadata is. An older
release refuses the file because of the version, so it cannot use the file by mistake either. Table and version are
written, and removed, in one transaction.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kaspar.base.errors import KasparError

MOVED_VERSION: Final = 1_000
"""Higher than any real format version. The format version of the nodes is kept in the mark."""


@dataclass(frozen=True, slots=True)
class MovedMark:
    """`connect`: where the metadata is, as in zookeeper.connect. `fence_version`: the version of the fence there after
    the move. Every controller writes the fence, so another version means that there were changes.
    """

    connect: str
    fence_version: int


class StoreMoved(KasparError):
    def __init__(self, path: Path, mark: MovedMark) -> None:
        super().__init__(
            f"the metadata in {path} was moved to ZooKeeper: set zookeeper.connect={mark.connect} in the broker's "
            "properties file. Until a broker is started there, 'kaspar metadata move FILE --undo' reverts the move"
        )


def read_mark(connection: sqlite3.Connection) -> MovedMark | None:
    if not _is_marked(connection):
        return None
    return MovedMark(*connection.execute("SELECT connect, fence_version FROM moved").fetchone())


def format_version(connection: sqlite3.Connection) -> int:
    """The format version of the nodes, whether or not they were moved."""
    query = "SELECT format_version FROM moved" if _is_marked(connection) else "PRAGMA user_version"
    (version,) = connection.execute(query).fetchone()
    return int(version)


def write_mark(connection: sqlite3.Connection, mark: MovedMark) -> None:
    """Write the mark, replacing an earlier one."""
    version = format_version(connection)
    with _transaction(connection):
        connection.execute("DROP TABLE IF EXISTS moved")
        connection.execute("CREATE TABLE moved (connect TEXT, fence_version INTEGER, format_version INTEGER)")
        connection.execute("INSERT INTO moved VALUES (?, ?, ?)", (mark.connect, mark.fence_version, version))
        connection.execute(f"PRAGMA user_version = {MOVED_VERSION}")


def remove_mark(connection: sqlite3.Connection) -> None:
    version = format_version(connection)
    with _transaction(connection):
        connection.execute("DROP TABLE IF EXISTS moved")
        connection.execute(f"PRAGMA user_version = {version}")


def _is_marked(connection: sqlite3.Connection) -> bool:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version == MOVED_VERSION)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
