"""The reports of tasks to the driver at the end of a batch."""

import msgspec


class PartitionReport(msgspec.Struct, frozen=True, array_like=True):
    """The report about one partition of a sub-topology."""

    ends: dict[str, int]
    """The offset after the last changelog record of each store that the batch changed."""
    meta: dict[str, int]
    """Stream times and other numbers that only increase."""
    state_bytes: int = 0


class TaskReport(msgspec.Struct, frozen=True, array_like=True):
    partitions: dict[int, PartitionReport] = {}
    records: int = 0
    """The number of records processed."""
    written: int = 0
    dropped: dict[str, int] = {}
    """The number of records not processed, by reason."""

    def encode(self) -> bytes:
        return _encode(self)

    @staticmethod
    def decode(data: bytes) -> "TaskReport":
        return _decode(data)


_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(TaskReport).decode
