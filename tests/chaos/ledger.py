"""What was promised, and what became of it.

A ledger collects every acknowledgement of a run. `check` compares it with what a reader finds afterwards: every
acknowledged record is at its offset, offsets leave no gap and name one record each, and what an idempotent producer
sent is there once and in its order.

Values read `producer:partition:number`, numbers counting up from 0 for each producer and partition.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kaspar.records import Record

Place = tuple[int, int]  # partition and offset


def value_of(producer: str, partition: int, number: int, *, size: int = 0) -> bytes:
    return f"{producer}:{partition}:{number}:".encode().ljust(size, b".")


def number_in(value: bytes) -> tuple[str, int, int]:
    producer, partition, number, _ = value.split(b":", 3)
    return producer.decode(), int(partition), int(number)


@dataclass
class Ledger:
    """Filled by the threads of several producers."""

    idempotent: frozenset[str] = frozenset()
    acknowledged: dict[Place, bytes] = field(default_factory=dict)
    without_offset: set[tuple[int, bytes]] = field(default_factory=set)  # partition and value
    conflicts: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledge(self, partition: int, offset: int | None, value: bytes) -> None:
        """librdkafka has no offset for a batch whose acknowledgement a later batch's one implies."""
        with self._lock:
            if offset is None:
                self.without_offset.add((partition, value))
                return
            known = self.acknowledged.setdefault((partition, offset), value)
            if known != value:
                self.conflicts.append(f"{partition}@{offset} was acknowledged for {known!r} and for {value!r}")

    @property
    def count(self) -> int:
        return len(self.acknowledged) + len(self.without_offset)

    def check(self, found: Mapping[int, Sequence[Record]]) -> None:
        assert not self.conflicts, self.conflicts
        values = {partition: _by_offset(records) for partition, records in found.items()}
        lost = [
            f"{partition}@{offset} {value!r} (there: {values.get(partition, {}).get(offset)!r})"
            for (partition, offset), value in sorted(self.acknowledged.items())
            if values.get(partition, {}).get(offset) != value
        ]
        for partition, value in sorted(self.without_offset):
            if value not in values.get(partition, {}).values():
                lost.append(f"{partition} {value!r}")
        assert not lost, f"{len(lost)} of {self.count} acknowledged records are lost or elsewhere: {lost[:5]}"
        for partition, by_offset in values.items():
            assert list(by_offset) == list(range(len(by_offset))), f"the offsets of partition {partition} have gaps"
            self._check_idempotent(partition, by_offset.values())

    def _check_idempotent(self, partition: int, values: Iterable[bytes]) -> None:
        """Numbers of an idempotent producer go up by one: nothing twice, nothing out of order, nothing left out."""
        numbers: dict[str, list[int]] = defaultdict(list)
        for value in values:
            producer, meant_for, number = number_in(value)
            assert meant_for == partition, f"{value!r} is in partition {partition}"
            numbers[producer].append(number)
        for producer in self.idempotent:
            got = numbers[producer]
            assert got == list(range(len(got))), f"{producer} in partition {partition}: {_first_break(got)}"


def _by_offset(records: Sequence[Record]) -> dict[int, bytes]:
    by_offset: dict[int, bytes] = {}
    for record in records:
        assert record.value is not None
        assert record.offset not in by_offset, f"offset {record.offset} names two records"
        by_offset[record.offset] = record.value
    return by_offset


def _first_break(numbers: Sequence[int]) -> str:
    for position, number in enumerate(numbers):
        if number != position:
            return f"number {number} came where {position} should have"
    return "in order"
