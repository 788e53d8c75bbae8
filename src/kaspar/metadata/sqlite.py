"""The embedded store: nodes in a SQLite file, for a broker that needs no ZooKeeper.

All SQLite calls run in one dedicated thread; the event loop only waits for it. A commit is durable when it returns (WAL
with synchronous=FULL). The file belongs to one process; a second one is refused. Ephemeral nodes of earlier processes
are removed when the file is opened, because their sessions are over. Watches are kept in memory, in the same thread, so
that a read and its watch are atomic.

If records have filled the disk, topics have to be deleted, and each deletion is written here. So both of SQLite's files
hold space in reserve: free pages in the database, and a log (WAL) long enough for a transaction, which is reused from
its beginning when it cannot grow.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from kaspar.base.errors import KasparError
from kaspar.metadata.moved_mark import MovedMark, StoreMoved, format_version, read_mark, remove_mark, write_mark
from kaspar.metadata.store import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Node,
    Operation,
    Put,
    SessionLost,
    StoreFull,
    UnknownOutcome,
    VersionConflict,
    Watcher,
    check_size,
    parent_of,
)

T = TypeVar("T")

FILE_NAME = "metadata.db"
FORMAT_VERSION = 4
"""Since version 2 a partition's row may have the log directories of its replicas, which a release of version 1 cannot
read. Since version 3 a broker's last incarnation is stored beside its epoch. Since version 4 there are ACLs: a release
that does not know them would grant access to everyone.
"""
_APPLICATION_ID = 0x4B535052  # "KSPR": distinguishes our file from other SQLite files
_SCHEMA = f"""
    BEGIN IMMEDIATE;
    CREATE TABLE node (
        path TEXT PRIMARY KEY, parent TEXT NOT NULL, value BLOB NOT NULL,
        version INTEGER NOT NULL, created INTEGER NOT NULL, session INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX node_by_parent ON node (parent);
    CREATE INDEX node_by_session ON node (session) WHERE session != 0;
    CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counter VALUES ('transaction', 0);
    INSERT INTO node VALUES ('/', '', x'', 0, 0, 0);
    PRAGMA application_id = {_APPLICATION_ID};
    PRAGMA user_version = {FORMAT_VERSION};
    COMMIT;
"""
_NO_SESSION = 0
RESPOND_WITHIN_S = 10.0
_RESERVE_BYTES = 256 * 1024  # many times the size of one change to a topic


class SqliteMetadata:
    """An open metadata file. Sessions (`connect`) belong to the event loop that opened it."""

    def __init__(self, path: Path, connection: sqlite3.Connection, executor: ThreadPoolExecutor) -> None:
        self.path = path
        self._connection = connection
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._last_session = _NO_SESSION
        self._sessions: dict[int, SqliteStore] = {}
        # Watchers by path. Used by the executor's thread only.
        self._node_watches: dict[str, list[tuple[int, Watcher]]] = {}
        self._children_watches: dict[str, list[tuple[int, Watcher]]] = {}

    @classmethod
    async def open(cls, folder: Path, *, even_if_moved: bool = False, file_name: str = FILE_NAME) -> "SqliteMetadata":
        """Open or create the metadata file in `folder`. Raises KasparError with a message for users. `even_if_moved`:
        open it even if its contents were moved to ZooKeeper, to read it or to undo the move. `file_name`: the name of a
        file that no broker uses yet.
        """
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata-store")
        path = folder / file_name
        try:
            connection = await asyncio.get_running_loop().run_in_executor(executor, _open_file, path, even_if_moved)
        except BaseException:
            executor.shutdown(wait=False)
            raise
        return cls(path, connection, executor)

    def connect(self) -> "SqliteStore":
        """A new session."""
        self._last_session += 1
        session = SqliteStore(self, self._last_session)
        self._sessions[self._last_session] = session
        return session

    async def close(self) -> None:
        """End every session and close the file. Safe to call twice."""
        for session in list(self._sessions.values()):
            # Ephemeral nodes that cannot be removed on a full disk are removed when the file is opened again.
            with contextlib.suppress(sqlite3.Error):
                await session.close()
        if not self._closed:
            self._closed = True
            with contextlib.suppress(sqlite3.Error):  # a failing disk must not keep the broker from stopping
                await self.run(self._connection.close)
            self._executor.shutdown(wait=False)

    async def moved_mark(self) -> MovedMark | None:
        return await self.run(lambda: read_mark(self._connection))

    async def mark_moved(self, mark: MovedMark) -> None:
        """Mark the file as moved: from now on no broker opens it."""
        await self._change(lambda: write_mark(self._connection, mark))

    async def unmark_moved(self) -> None:
        await self._change(lambda: remove_mark(self._connection))

    async def _change(self, work: Callable[[], None]) -> None:
        try:
            await self.run(work)
        except sqlite3.Error as problem:
            raise KasparError(f"{self.path} cannot be written: {problem}") from None

    async def run(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._executor, work)

    async def end_session(self, session: int) -> None:
        self._sessions.pop(session, None)
        await self.run(lambda: self._remove_session(session))

    # The following methods run in the executor's thread.

    def read_node(self, path: str, session: int, watcher: Watcher | None) -> Node | None:
        self._roll_back()
        node = self._find(path, session)
        if watcher is not None:
            _add_watch(self._node_watches, path, session, watcher)
        return node

    def read_children(self, path: str, session: int, watcher: Watcher | None) -> list[str]:
        self._roll_back()
        rows = self._connection.execute("SELECT path FROM node WHERE parent = ? ORDER BY path", (path,))
        names = [child.rpartition("/")[2] for (child,) in rows]
        if watcher is not None:
            _add_watch(self._children_watches, path, session, watcher)
        return names

    def apply(self, operations: Sequence[Operation], session: int) -> None:
        try:
            self._commit(operations, session)
        except sqlite3.OperationalError as problem:
            if not _is_full(problem):
                raise
            with contextlib.suppress(sqlite3.OperationalError):  # the database may have no space either
                self._connection.execute("PRAGMA wal_checkpoint(RESTART)")
            self._commit(operations, session)
        self._fire(operations)

    def _commit(self, operations: Sequence[Operation], session: int) -> None:
        connection = self._connection
        self._roll_back()
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute("UPDATE counter SET value = value + 1 WHERE name = 'transaction'")
            (number,) = connection.execute("SELECT value FROM counter WHERE name = 'transaction'").fetchone()
            for operation in operations:
                self._apply_one(operation, number, session)
            connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        """Roll back an open transaction. This also runs before every other operation: on a failing disk even the
        rollback may fail, and a later read must not return what was never committed.
        """
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _apply_one(self, operation: Operation, number: int, session: int) -> None:
        path = operation.path
        node = self._find(path, session)
        if isinstance(operation, Create):
            if node is not None:
                raise VersionConflict(path, "is already there")
            self._check_parent(path)
            row = (path, parent_of(path), operation.value, 0, number, session if operation.ephemeral else _NO_SESSION)
            self._connection.execute("INSERT INTO node VALUES (?, ?, ?, ?, ?, ?)", row)
            return
        if node is None:
            raise VersionConflict(path, "is not there")
        if operation.version not in (ANY_VERSION, node.version):
            raise VersionConflict(path, f"is of version {node.version}, not {operation.version}")
        match operation:
            case Put(value=value):
                self._connection.execute(
                    "UPDATE node SET value = ?, version = version + 1 WHERE path = ?", (value, path)
                )
            case Delete():
                if self._connection.execute("SELECT 1 FROM node WHERE parent = ? LIMIT 1", (path,)).fetchone():
                    raise VersionConflict(path, "has children")
                self._connection.execute("DELETE FROM node WHERE path = ?", (path,))
            case Check():
                pass

    def _check_parent(self, path: str) -> None:
        parent = parent_of(path)
        row = self._connection.execute("SELECT session FROM node WHERE path = ?", (parent,)).fetchone()
        if row is None:
            raise VersionConflict(parent, "is not there, so it can have no children")
        if row[0] != _NO_SESSION:
            raise VersionConflict(parent, "is ephemeral, so it can have no children")

    def _find(self, path: str, session: int) -> Node | None:
        query = "SELECT value, version, created, session FROM node WHERE path = ?"
        row = self._connection.execute(query, (path,)).fetchone()
        return None if row is None else Node(row[0], row[1], row[2], row[3] == session)

    def _remove_session(self, session: int) -> None:
        rows = self._connection.execute("SELECT path FROM node WHERE session = ?", (session,)).fetchall()
        for watches in (self._node_watches, self._children_watches):
            for path, watchers in list(watches.items()):
                watches[path] = [entry for entry in watchers if entry[0] != session]
        if rows:
            self.apply([Delete(path) for (path,) in rows], session)

    def _fire(self, operations: Sequence[Operation]) -> None:
        due: list[tuple[int, Watcher, str]] = []
        for operation in operations:
            path = operation.path
            if isinstance(operation, Check):
                continue
            due += [(session, watcher, path) for session, watcher in self._node_watches.pop(path, ())]
            if isinstance(operation, Create | Delete):
                parent = parent_of(path)
                due += [(session, watcher, parent) for session, watcher in self._children_watches.pop(parent, ())]
        if due:
            self._loop.call_soon_threadsafe(self._call_watchers, due)

    def _call_watchers(self, due: list[tuple[int, Watcher, str]]) -> None:
        for session, watcher, path in due:
            if session in self._sessions:
                watcher(path)


class SqliteStore:
    """One session with the embedded store."""

    def __init__(self, metadata: SqliteMetadata, session: int) -> None:
        self._metadata = metadata
        self._session = session
        self._lost = False

    @property
    def is_lost(self) -> bool:
        return self._lost

    async def get(self, path: str, watcher: Watcher | None = None) -> Node | None:
        return await self._run(lambda: self._metadata.read_node(path, self._session, watcher))

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return await self._run(lambda: [self._metadata.read_node(path, self._session, None) for path in paths])

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        return await self._run(lambda: self._metadata.read_children(path, self._session, watcher))

    async def transact(self, operations: Sequence[Operation]) -> None:
        check_size(operations)
        await self._run(lambda: self._metadata.apply(operations, self._session))

    async def close(self) -> None:
        if not self._lost:
            self._lost = True
            await self._metadata.end_session(self._session)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._lost:
            raise SessionLost("the session with the metadata store is over")
        try:
            return await _in_time(self._metadata.run(work))
        except sqlite3.OperationalError as problem:
            if _is_full(problem):
                raise StoreFull(_no_space(self._metadata.path)) from problem
            raise UnknownOutcome(f"the metadata store failed: {problem}") from problem
        except sqlite3.Error as problem:
            raise UnknownOutcome(f"the metadata store failed: {problem}") from problem


async def _in_time(work: Coroutine[Any, Any, T]) -> T:
    """Wait a limited time, because a disk that hangs blocks the store's thread. After a timeout the call still runs,
    before any later one.
    """
    doing = asyncio.ensure_future(work)
    doing.add_done_callback(lambda done: done.cancelled() or done.exception())  # its caller may have given up
    try:
        async with asyncio.timeout(RESPOND_WITHIN_S):
            return await asyncio.shield(doing)
    except TimeoutError:
        raise UnknownOutcome(f"the metadata store has not responded for {RESPOND_WITHIN_S:.0f} s") from None


def _add_watch(watches: dict[str, list[tuple[int, Watcher]]], path: str, session: int, watcher: Watcher) -> None:
    """Add a watcher. The same watcher is called once, however often it was added."""
    entries = watches.setdefault(path, [])
    if (session, watcher) not in entries:
        entries.append((session, watcher))


def _open_file(path: Path, even_if_moved: bool) -> sqlite3.Connection:
    try:
        if not path.exists():  # the file contains credentials; SQLite gives its other files the same mode
            path.touch(mode=0o600)
        connection = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
        try:
            _prepare(connection, path, even_if_moved)
        except BaseException:
            connection.close()
            raise
        return connection
    except sqlite3.OperationalError as problem:
        if problem.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise KasparError(f"{path} is in use by a running broker: stop it first") from None
        if _is_full(problem):
            raise StoreFull(_no_space(path)) from None
        raise KasparError(f"{path} cannot be opened: {problem}") from None
    except sqlite3.DatabaseError as problem:
        raise KasparError(f"{path} is not a metadata file, or it is damaged: {problem}") from None
    except OSError as problem:
        raise KasparError(f"{path} cannot be created: {problem.strerror}") from None


def _prepare(connection: sqlite3.Connection, path: Path, even_if_moved: bool) -> None:
    # The exclusive mode has to come before WAL. Then no shared-memory file is needed, and no other process can open it.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables == 0:
        connection.executescript(_SCHEMA)
    elif application != _APPLICATION_ID:
        raise KasparError(f"{path} is a SQLite file, but not a metadata file")
    elif (mark := read_mark(connection)) is not None and not even_if_moved:
        raise StoreMoved(path, mark)
    elif (version := format_version(connection)) > FORMAT_VERSION:
        raise KasparError(
            f"{path} has format version {version}, but this release supports versions up to {FORMAT_VERSION}: use "
            "the newer release that wrote it"
        )
    _keep_reserve(connection)
    if read_mark(connection) is None and format_version(connection) < FORMAT_VERSION:
        _raise_version(connection)
    connection.execute("DELETE FROM node WHERE session != 0")


def _raise_version(connection: sqlite3.Connection) -> None:
    """Set the current format version, so that older releases refuse the file. On a full disk the next start does it."""
    try:
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    except sqlite3.OperationalError as problem:
        if not _is_full(problem):
            raise


def _keep_reserve(connection: sqlite3.Connection) -> None:
    """Allocate the reserve before records take the space. If the disk is already full, the store works without it."""
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    (free_pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    missing = _RESERVE_BYTES - free_pages * page_bytes
    try:
        if missing > page_bytes:
            connection.executescript(
                f"BEGIN IMMEDIATE; CREATE TABLE reserve (space BLOB); INSERT INTO reserve VALUES (zeroblob({missing}));"
                "DROP TABLE reserve; COMMIT; PRAGMA wal_checkpoint(RESTART);"
            )
    except sqlite3.OperationalError as problem:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if not _is_full(problem):
            raise


def _is_full(problem: sqlite3.OperationalError) -> bool:
    return problem.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL


def _no_space(path: Path) -> str:
    return f"the metadata store, {path}, has no space left: free some on its volume"
