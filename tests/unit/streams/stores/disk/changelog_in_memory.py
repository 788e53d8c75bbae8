"""A changelog in memory, for tests: what a task writes, and a ChangelogReader."""

from collections.abc import Iterator, Mapping, Sequence

from kaspar.records import Record
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.changelog import ChangelogTruncated, meta_header
from kaspar.streams.stores.spec import StoreSpec


class ChangelogInMemory:
    """One partition of the changelogs of all stores. `read_from` are the offsets at which reads started."""

    def __init__(self, *, records_at_once: int = 3) -> None:
        self.records: dict[str, list[Record]] = {}
        self.first_offsets: dict[str, int] = {}
        self.read_from: list[tuple[str, int]] = []
        self._records_at_once = records_at_once

    def read(self, store: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Record]]:
        self.read_from.append((store, from_offset))
        if 0 < from_offset < self.first_offsets.get(store, 0):
            raise ChangelogTruncated(f"{store} begins at offset {self.first_offsets[store]}")
        assert to_offset <= self.end(store), "the changelog does not reach so far"
        found = [each for each in self.records[store] if from_offset <= each.offset < to_offset]
        for start in range(0, len(found), self._records_at_once):
            yield found[start : start + self._records_at_once]

    def end(self, store: str) -> int:
        records = self.records.get(store)
        return records[-1].offset + 1 if records else 0

    def ends(self, specs: Sequence[StoreSpec]) -> dict[str, int]:
        return {spec.name: self.end(spec.name) for spec in specs}

    def append(self, store: str, key: bytes, value: bytes | None, timestamp: int = 0) -> None:
        self.records.setdefault(store, []).append(Record(timestamp, key, value, (), self.end(store)))

    def compact(self, store: str) -> None:
        """Keep the last record of each key, but no tombstones."""
        records = self.records.get(store, [])
        last = {each.key: each for each in records}
        kept = [each for each in records if last[each.key] is each and each.value is not None]
        if kept and kept[-1].offset == records[-1].offset:
            self.records[store] = kept

    def write(self, specs: Sequence[StoreSpec], stores: Mapping[str, OverlayStore], meta: dict[str, int]) -> None:
        """What a task does at its end: a record for every changed key."""
        for spec in specs:
            records = [spec.to_changelog(key, value) for key, value in stores[spec.name].changes.items()]
            for number, record in enumerate(records, 1):
                headers = (meta_header(meta),) if number == len(records) else ()
                timestamp = record.timestamp if record.timestamp is not None else 0
                entry = Record(timestamp, record.key, record.value, headers, self.end(spec.name))
                self.records.setdefault(spec.name, []).append(entry)
