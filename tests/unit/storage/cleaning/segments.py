"""Logs with old segments to be cleaned, for the tests of mapping and rewriting."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from kaspar.base.clock import ManualClock
from kaspar.records import Codec, Record, build_batch, iter_records
from kaspar.records.compaction import KeyMap
from kaspar.storage import Files, Log
from kaspar.storage.cleaning.key_scan import fill
from kaspar.storage.cleaning.rewriting import Rewritten, rewrite
from kaspar.storage.cleaning.throttle import UNLIMITED, Pace, Throttle
from kaspar.storage.cleaning.transactions import CleanedTransactions
from kaspar.storage.disk.file_names import CLEANED, LOG
from kaspar.storage.segments.segment import Segment
from tests.unit.storage.logs import NOW_MS, LogFolder, append, log_config, verify


def compacted_folder(path: Path, files: Files | None = None, **settings: str | int) -> LogFolder:
    return LogFolder(path, log_config(cleanup_policy="compact", **settings), files)


def put(
    log: Log,
    keys: Iterable[bytes],
    *,
    value: bytes | None = b"value",
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    base_sequence: int = 0,
    transactional: bool = False,
    timestamp: int = NOW_MS,
) -> int:
    """One batch; its first offset."""
    if transactional:
        verify(log, producer_id, base_sequence=base_sequence, version_2=False)
    has_producer = producer_id >= 0
    batch = build_batch(
        [Record(timestamp, key, value) for key in keys],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0 if has_producer else -1,
        base_sequence=base_sequence if has_producer else -1,
        transactional=transactional,
    )
    return append(log, batch).base_offset


def pace(chunk_bytes: int = 1 << 16) -> Pace:
    return Pace(chunk_bytes, Throttle(UNLIMITED, ManualClock()))


def old_segments(log: Log) -> Sequence[Segment]:
    return log.segments.all[:-1]


def filled(log: Log, begin: int = 0, end: int | None = None, *, most_keys: int = 10_000) -> KeyMap:
    keys = KeyMap(24 * most_keys, 1.0)
    fill(keys, log, begin, log.segments.all[-1].base_offset if end is None else end, pace())
    return keys


def rewritten(
    log: Log,
    keys: KeyMap | None = None,
    *,
    now_ms: int = NOW_MS,
    wall_ms: int | None = None,
    chunk_bytes: int = 1 << 16,
    transactions: CleanedTransactions | None = None,
) -> Rewritten:
    """All old segments as one."""
    return rewrite(
        log,
        old_segments(log),
        keys or filled(log),
        transactions or CleanedTransactions(),
        pace(chunk_bytes),
        now_ms=now_ms,
        wall_ms=wall_ms,
    )


def content(segment: Segment, suffix: str = LOG) -> bytes:
    return Path(segment.path(suffix) + CLEANED).read_bytes()


def offsets(segment: Segment) -> list[int]:
    return [record.offset for record in iter_records(content(segment))]
