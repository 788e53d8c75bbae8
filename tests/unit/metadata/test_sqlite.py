"""The embedded store's own guarantees: its file, its format, its lock."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from kaspar.base.errors import KasparError
from kaspar.metadata.sqlite import FILE_NAME, FORMAT_VERSION, SqliteMetadata
from kaspar.metadata.store import Create, StoreFull, UnknownOutcome


def test_what_was_written_is_there_after_a_reopen_and_ephemeral_nodes_are_not(tmp_path: Path) -> None:
    async def main() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        store = metadata.connect()
        await store.transact([Create("/a", b"1"), Create("/mine", ephemeral=True)])
        first = await store.get("/a")
        # A crash: the file is let go without ending the session.
        metadata._connection.close()
        metadata._executor.shutdown()

        metadata = await SqliteMetadata.open(tmp_path)
        store = metadata.connect()
        assert await store.get("/a") == first
        assert await store.get("/mine") is None
        await store.transact([Create("/b")])
        node = await store.get("/b")
        assert node is not None
        assert first is not None
        assert node.created > first.created
        await metadata.close()
        await metadata.close()

    asyncio.run(main())


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    def modes() -> set[int]:
        return {file.stat().st_mode & 0o777 for file in tmp_path.glob(f"{FILE_NAME}*")}

    async def main() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        await metadata.connect().transact([Create("/a", b"1")])
        assert modes() == {0o600}
        await metadata.close()

    asyncio.run(main())


def test_a_second_opening_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        with pytest.raises(KasparError, match="is in use by a running broker"):
            await SqliteMetadata.open(tmp_path)
        await metadata.close()
        await (await SqliteMetadata.open(tmp_path)).close()

    asyncio.run(main())


def test_a_newer_format_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async def main() -> None:
        await (await SqliteMetadata.open(tmp_path)).close()
        file = sqlite3.connect(tmp_path / FILE_NAME)
        file.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
        file.close()
        with pytest.raises(KasparError, match="use the newer release that wrote it"):
            await SqliteMetadata.open(tmp_path)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: path.write_bytes(b"this is no database, and long enough to tell" * 20), "is not a metadata file"),
        (lambda path: sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close(), "not a metadata file"),
        (lambda path: path.mkdir(), "cannot be opened"),
    ],
    ids=["garbage", "another database", "a folder"],
)
def test_what_is_no_metadata_file_is_refused(tmp_path: Path, make: object, sentence: str) -> None:
    assert callable(make)
    make(tmp_path / FILE_NAME)

    async def main() -> None:
        with pytest.raises(KasparError, match=sentence):
            await SqliteMetadata.open(tmp_path)

    asyncio.run(main())


def test_no_space_left_changes_nothing_and_passes(tmp_path: Path) -> None:
    async def main() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        store = metadata.connect()
        await store.transact([Create("/a")])
        (pages,) = metadata._connection.execute("PRAGMA page_count").fetchone()
        await metadata.run(lambda: metadata._connection.execute(f"PRAGMA max_page_count = {pages}"))
        with pytest.raises(StoreFull, match=f"the metadata store, {metadata.path}, has no space left"):
            await store.transact([Create("/b"), Create("/c", bytes(400_000))])
        assert await store.children("/") == ["a"]
        await metadata.run(lambda: metadata._connection.execute("PRAGMA max_page_count = 100000"))
        await store.transact([Create("/b"), Create("/c", bytes(400_000))])
        assert await store.children("/") == ["a", "b", "c"]
        await metadata.close()

    asyncio.run(main())


def test_a_failing_file_is_an_unknown_outcome(tmp_path: Path) -> None:
    async def main() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        store = metadata.connect()
        await metadata.run(lambda: metadata._connection.execute("DROP TABLE counter"))
        with pytest.raises(UnknownOutcome):
            await store.transact([Create("/a")])
        assert await store.get("/a") is None
        await metadata.close()

    asyncio.run(main())


def test_an_older_format_is_taken_over_so_that_older_releases_refuse_it(tmp_path: Path) -> None:
    async def main() -> None:
        await (await SqliteMetadata.open(tmp_path)).close()
        file = sqlite3.connect(tmp_path / FILE_NAME)
        file.execute("PRAGMA user_version = 1")
        file.close()
        await (await SqliteMetadata.open(tmp_path)).close()
        file = sqlite3.connect(tmp_path / FILE_NAME)
        assert file.execute("PRAGMA user_version").fetchone() == (FORMAT_VERSION,)
        file.close()

    asyncio.run(main())


class _FailingConnection:
    """A connection whose disk fails: neither a commit nor a rollback comes through."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.fails = False

    @property
    def in_transaction(self) -> bool:
        return self.connection.in_transaction

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        if self.fails and statement in ("COMMIT", "ROLLBACK"):
            problem = sqlite3.OperationalError("disk I/O error")
            problem.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise problem
        return self.connection.execute(statement, *arguments)

    def close(self) -> None:
        self.connection.close()


def test_nobody_reads_what_was_never_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the outcome of a change is unknown, reading the store reveals it."""

    async def main() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        failing = _FailingConnection(metadata._connection)
        monkeypatch.setattr(metadata, "_connection", failing)
        store = metadata.connect()
        failing.fails = True
        with pytest.raises(UnknownOutcome):
            await store.transact([Create("/a", b"1")])
        with pytest.raises(UnknownOutcome):
            await store.get("/a")
        failing.fails = False
        assert await store.get("/a") is None
        assert await store.children("/") == []
        await metadata.close()

    asyncio.run(main())
