"""The log on disk. There is no asyncio here: methods that may block say so, and the broker calls them from a thread.

- `LogManager`: all logs of a broker. `Log`: the log of one partition; it has a `LocalLog` for the files, and a
  `DerivedState` for the leader epochs and producers in its records.
- `validator`: the checks of a batch before it is appended.
- `disk`, `segments`, `directories`: files, the segments in them, and the log directories that contain them.
- `producers`, `reading`, `recovery`, `cleaning`: producer state, reads, startup, and compaction.

`pyproject.toml` has the order in which these may import each other.
"""

from kaspar.storage.append import WOULD_BLOCK, Appended, PreparedBatch, UnexpectedAppendOffset, WouldBlock
from kaspar.storage.directories.directory_lock import DirectoryInUse
from kaspar.storage.directories.log_directory import LogDirectory
from kaspar.storage.directories.placement import Expected
from kaspar.storage.disk.files import Files, OsFiles
from kaspar.storage.fetched_batches import FetchedBatches
from kaspar.storage.leader_epochs import EpochEnd
from kaspar.storage.log import Log
from kaspar.storage.log_manager import LogManager
from kaspar.storage.producers.entry import ProducerEntry
from kaspar.storage.producers.verification import Verification
from kaspar.storage.reading.committed_reads import CommittedRead
from kaspar.storage.reading.file_slices import FileSlice, aborted_in, try_slice
from kaspar.storage.reading.time_lookup import TimestampAndOffset
from kaspar.storage.recovery.directory_loader import Loaded
from kaspar.storage.segments.transaction_index import AbortedTransaction
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

__all__ = [
    "WOULD_BLOCK",
    "AbortedTransaction",
    "Appended",
    "CommittedRead",
    "DirectoryInUse",
    "EpochEnd",
    "Expected",
    "FetchedBatches",
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
