"""The LMDB environment of one partition: its files, its metadata rows, and its transactions.

It is written without sync (boot_mark.py). Errors of LMDB are converted to StreamsErrors, whose text says what to do.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import lmdb
import msgspec

from kaspar.streams.errors import StreamsError
from kaspar.streams.stores.disk.boot_mark import BootMark
from kaspar.streams.stores.disk.rows import store_prefix

if TYPE_CHECKING:
    Transaction = lmdb.Transaction[bytes]

FORMAT: Final = 1
MAP_SIZE: Final = 256 * 1024**3
"""The size of the address space, which uses neither memory nor disk."""

DAMAGE: Final = (
    lmdb.CorruptedError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
    lmdb.VersionMismatchError,
)
"""LMDB's errors for damaged files."""

_MAX_READERS = 1024
_OWN_ROWS: Final = store_prefix(0)
_FORMAT_KEY: Final = _OWN_ROWS + b"format"
_STATE_KEY: Final = _OWN_ROWS + b"state"


class StateDamaged(StreamsError):
    """The files of a partition are damaged. They are discarded when the partition is opened again."""


class StoredState(msgspec.Struct, frozen=True):
    """The metadata of a partition in LMDB."""

    ends: dict[str, int] = {}
    """The offset after the last applied changelog record, by store."""
    meta: dict[str, int] = {}
    """Stream times and other numbers that only increase."""
    numbers: dict[str, int] = {}
    """The number of each store that has rows, which prefixes its keys."""
    layouts: dict[str, str] = {}


_encode = msgspec.msgpack.encode
_decode_state = msgspec.msgpack.Decoder(StoredState).decode


class Environment:
    """The LMDB environment of one partition."""

    def __init__(self, directory: Path) -> None:
        """Raises one of DAMAGE if the files are damaged, and StreamsError if they cannot be opened otherwise."""
        self.directory = directory
        self.users = 0
        """The number of open read transactions."""
        self._users_lock = threading.Lock()
        self._folder = folder(directory)
        self._mark = boot_mark(directory)
        if not self.data_file.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._mark.before_write()
        try:
            self.lmdb = lmdb.open(
                str(self._folder),
                map_size=MAP_SIZE,
                sync=False,
                metasync=False,
                meminit=False,
                readahead=False,
                max_readers=_MAX_READERS,
            )
        except DAMAGE:
            raise
        except lmdb.Error as error:
            raise StreamsError(f"the state in {directory} cannot be opened: {error}") from error
        try:
            self.lmdb.reader_check()
            self._check_size()
            self._check_format()
        except BaseException:
            self.lmdb.close()
            raise
        self.identity = identity(self.data_file)

    @property
    def data_file(self) -> Path:
        return self._folder / "data.mdb"

    def is_current(self) -> bool:
        """False if the open files were discarded, or must be."""
        return self.identity == identity(self.data_file) and self._mark.is_trusted()

    def seconds_since_write(self) -> float:
        return time.time() - self.data_file.stat().st_mtime

    def begin_reading(self) -> "Transaction":
        with self._users_lock:
            try:
                transaction = self.lmdb.begin()
            except lmdb.ReadersFullError:
                self.lmdb.reader_check()  # frees the reader slots of killed processes
                transaction = self.lmdb.begin()
            self.users += 1
            return transaction

    def end_reading(self, transaction: "Transaction") -> None:
        """End a transaction of begin_reading(). Called once for each."""
        with self._users_lock:
            transaction.abort()
            self.users -= 1

    def state(self, transaction: "Transaction") -> StoredState:
        data = transaction.get(_STATE_KEY)
        try:
            return StoredState() if data is None else _decode_state(data)
        except msgspec.DecodeError as error:
            raise self.on_damage(lmdb.CorruptedError(str(error))) from error

    def save_state(self, transaction: "Transaction", state: StoredState) -> None:
        transaction.put(_STATE_KEY, _encode(state))

    @contextmanager
    def writing(self) -> "Iterator[Transaction]":
        """A write transaction. It is committed unless the block raises."""
        try:
            self.lmdb.reader_check()  # frees pages that only killed processes were reading
            with self.lmdb.begin(write=True) as transaction:
                self._mark.before_write()
                if transaction.get(_FORMAT_KEY) is None:
                    transaction.put(_FORMAT_KEY, _encode(FORMAT))
                yield transaction
        except lmdb.MapFullError as error:
            raise StreamsError(
                f"the state in {self.directory} has reached its limit of {MAP_SIZE // 1024**3} GiB: use more partitions"
            ) from error
        except DAMAGE as error:
            raise self.on_damage(error) from error
        except lmdb.Error as error:
            raise StreamsError(f"the state in {self.directory} cannot be written: {error}") from error

    def clear(self, transaction: "Transaction") -> None:
        """Remove all rows, including those of unknown stores."""
        transaction.drop(self.lmdb.open_db(txn=transaction), delete=False)
        transaction.put(_FORMAT_KEY, _encode(FORMAT))

    def on_damage(self, error: lmdb.Error) -> Exception:
        self._mark.remove()
        return StateDamaged(f"the state in {self.directory} is damaged and will be rebuilt: {error}")

    def sync(self) -> None:
        """Sync everything to disk, so that it survives a crash of the machine."""
        while True:
            last_transaction = self.lmdb.info()["last_txnid"]
            self.lmdb.sync(True)
            with self.lmdb.begin(write=True) as transaction:
                if transaction.id() == last_transaction + 1:
                    self._mark.after_sync()
                    return

    def _check_size(self) -> None:
        """Raise CorruptedError if the file was truncated: reading a missing page would end the process with SIGBUS."""
        needed = (self.lmdb.info()["last_pgno"] + 1) * self.lmdb.stat()["psize"]
        if self.lmdb.info()["last_txnid"] and self.data_file.stat().st_size < needed:
            raise lmdb.CorruptedError("the data file was truncated")

    def _check_format(self) -> None:
        with self.lmdb.begin() as transaction:
            data = transaction.get(_FORMAT_KEY)
        if data is not None and (found := msgspec.msgpack.decode(data, type=int)) > FORMAT:
            raise StreamsError(
                f"the state in {self.directory} has format {found}, but this version of Kaspar supports formats up "
                f"to {FORMAT}: use the newer version, or remove the directory to rebuild the state from the changelogs"
            )


def folder(directory: Path) -> Path:
    """The folder of a partition's LMDB files."""
    return directory / "lmdb"


def boot_mark(directory: Path) -> BootMark:
    return BootMark(directory / "boot")


def identity(file: Path) -> tuple[int, int] | None:
    """The identity of a file, independent of its path; None if there is no file."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
