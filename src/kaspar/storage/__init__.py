"""The log on disk. No asyncio here: what may block says so, and the broker calls it from a thread.

- `LogManager`: all log directories of a broker; `Log`: one partition; `prepare`: what a batch must pass before.
- `segment`, `indexes`, `log_reader`, `recovery`: how a log lies on disk, is read, and is opened after a crash.
- `producer_state`, `leader_epochs`: what a partition knows of its producers and leaders.
- `files`: the system calls underneath, which tests replace.
"""

from kaspar.storage.append import WOULD_BLOCK, Appended, PreparedBatch, UnexpectedAppendOffset, WouldBlock
from kaspar.storage.committed_reads import CommittedRead
from kaspar.storage.directory_lock import DirectoryInUse
from kaspar.storage.file_slices import FileSlice, aborted_in, try_slice
from kaspar.storage.files import Files, OsFiles
from kaspar.storage.leader_epochs import EpochEnd
from kaspar.storage.log import Log
from kaspar.storage.log_directory import LogDirectory
from kaspar.storage.log_loader import Loaded
from kaspar.storage.log_manager import LogManager
from kaspar.storage.placement import Expected
from kaspar.storage.producer_state import ProducerEntry
from kaspar.storage.time_lookup import TimestampAndOffset
from kaspar.storage.transaction_index import AbortedTransaction
from kaspar.storage.validator import (
    RecordError,
    RecordsRefused,
    WrongChecksum,
    WrongOffsetOrSequence,
    is_surely_quick,
    prepare,
    prepare_inline,
    prepare_plain,
)
from kaspar.storage.verification import Verification

__all__ = [
    "WOULD_BLOCK",
    "AbortedTransaction",
    "Appended",
    "CommittedRead",
    "DirectoryInUse",
    "EpochEnd",
    "Expected",
    "FileSlice",
    "Files",
    "Loaded",
    "Log",
    "LogDirectory",
    "LogManager",
    "OsFiles",
    "PreparedBatch",
    "ProducerEntry",
    "RecordError",
    "RecordsRefused",
    "TimestampAndOffset",
    "UnexpectedAppendOffset",
    "Verification",
    "WouldBlock",
    "WrongChecksum",
    "WrongOffsetOrSequence",
    "aborted_in",
    "is_surely_quick",
    "prepare",
    "prepare_inline",
    "prepare_plain",
    "try_slice",
]
