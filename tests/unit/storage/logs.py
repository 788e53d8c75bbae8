"""Batches, settings and logs for the tests of the storage package."""

import os
from collections.abc import Iterable
from pathlib import Path

from kaspar.base.clock import ManualClock
from kaspar.base.ids import TopicPartition, random_uuid
from kaspar.base.patient_clock import Moment
from kaspar.config import BrokerConfig, LogConfig
from kaspar.records import Codec, ControlType, EndTransactionMarker, Record, build_batch, iter_records
from kaspar.storage import Appended, Files, Log, LogManager, Verification, prepare
from kaspar.storage.disk.file_names import LOG
from kaspar.storage.segments.segment import Segment

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("orders", 0)


def broker_config(*directories: str | Path, **settings: str) -> BrokerConfig:
    values = {name.replace("_", "."): value for name, value in settings.items()}
    return BrokerConfig.of({"node.id": "1", "log.dirs": ",".join(map(str, directories)), **values})


UNUSED = broker_config("/unused")


def log_config(**settings: str | int) -> LogConfig:
    """A topic's settings; `segment_bytes` may be as small as a test wants."""
    values = {name.replace("_", "."): str(value) for name, value in settings.items()}
    if "segment.bytes" in values:
        values["internal.segment.bytes"] = values.pop("segment.bytes")
    return LogConfig.of(UNUSED, values)


def open_manager(
    config: BrokerConfig, topic_config: LogConfig, files: Files | None = None, clock: ManualClock | None = None
) -> LogManager:
    manager = LogManager(config, clock or ManualClock(NOW_MS), files, lock_directories=files is None)
    manager.open()
    manager.load(lambda topic: topic_config)
    return manager


def make_batch(
    values: Iterable[bytes] = (b"value",),
    *,
    timestamp: int = NOW_MS,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    key: bytes | None = b"key",
) -> bytearray:
    return build_batch(
        [Record(timestamp, key, value) for value in values],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )


def append(log: Log, batch: bytearray, *, leader_epoch: int = 0, now_ms: int = NOW_MS) -> Appended:
    prepared = prepare(batch, 0, len(batch), log.config, now_ms)
    return log.append_as_leader(prepared, leader_epoch=leader_epoch, now_ms=now_ms)


def expire_producers(log: Log, idle_for_ms: int, *, believed_ms: int = NOW_MS) -> int:
    """Expire producers that were idle for a second, `idle_for_ms` after a run that has seen their last batches."""
    for _ in log.expire_producers(Moment(NOW_MS, 0, believed_ms), 1000):
        pass
    return sum(log.expire_producers(Moment(NOW_MS, idle_for_ms, believed_ms), 1000))


def verify(
    log: Log, producer_id: int, *, epoch: int = 0, base_sequence: int = 0, version_2: bool = True
) -> Verification | None:
    """What a leader does before the first batch of a transaction, whose coordinator says yes."""
    verification = log.producers.begin_verification(
        producer_id, epoch, base_sequence, transactional_id="t-id", bumps_epoch=version_2, now_ms=0
    )
    if verification is not None:
        log.producers.confirm(producer_id, verification)
    return verification


def append_transactional(
    log: Log, producer_id: int, base_sequence: int, count: int = 1, *, epoch: int = 0, value: bytes = b"in transaction"
) -> Appended:
    verify(log, producer_id, epoch=epoch, base_sequence=base_sequence, version_2=False)
    batch = make_batch(
        [value] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=base_sequence,
        transactional=True,
    )
    return append(log, batch)


def end_transaction(
    log: Log,
    producer_id: int,
    *,
    committed: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> Appended:
    """With a marker."""
    return log.append_marker(
        EndTransactionMarker(ControlType.COMMIT if committed else ControlType.ABORT, coordinator_epoch),
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_version=transaction_version,
        leader_epoch=0,
        now_ms=NOW_MS,
    )


def append_values(log: Log, *values: bytes, timestamp: int = NOW_MS) -> Appended:
    return append(log, make_batch(values, timestamp=timestamp))


def read_values(log: Log, offset: int | None = None) -> list[tuple[int, bytes | None]]:
    """Every (offset, value) from `offset` to the end of the log, by as many reads as it takes."""
    position = log.log_start_offset if offset is None else offset
    wanted = position
    found: list[tuple[int, bytes | None]] = []
    while position < log.log_end_offset:
        records = list(iter_records(log.read(position, 1 << 20, log.log_end_offset)))
        if not records:
            break
        found += [(record.offset, record.value) for record in records if record.offset >= wanted]
        position = records[-1].offset + 1
    return found


def damage_header(segment: Segment) -> None:
    """Of the first batch: it has a magic that there is not."""
    with open(segment.path(LOG), "r+b") as file:
        file.seek(16)
        file.write(b"\x63")


class LogFolder:
    """One log in a data folder, which can be stopped cleanly or not and opened again."""

    def __init__(self, path: Path, config: LogConfig | None = None, files: Files | None = None) -> None:
        self.path = path
        self.config = config or log_config()
        self.files = files
        self.clock = ManualClock(NOW_MS)
        self.manager = self._open()
        self.log = self.manager.create(PARTITION, random_uuid(), self.config)

    def _open(self) -> LogManager:
        return open_manager(broker_config(self.path), self.config, self.files, self.clock)

    def reopen(self, *, clean: bool) -> Log:
        if clean:
            self.manager.close()
        else:
            self.manager.checkpoint()
            self.manager.abandon()
        return self.open_again()

    def open_again(self) -> Log:
        """Start on what is there, after the last manager was closed or abandoned."""
        self.manager = self._open()
        log = self.manager.get(PARTITION)
        assert log is not None
        self.log = log
        return log

    def names(self, *suffixes: str) -> list[str]:
        """The names of the files in the log's folder, of the given kinds."""
        return sorted(name for name in os.listdir(self.log.folder) if not suffixes or name.endswith(suffixes))
