"""Global tables: topics of which every task has a complete copy.

Each machine keeps a copy of every partition of such a topic, up to end offsets that the driver fixes for a batch before
it runs. These are stored beside the checkpoint, so that a repeated batch sees the same tables.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaspar.base.ids import TopicPartition
from kaspar.client.cluster import LATEST_TIMESTAMP, Client
from kaspar.client.offsets import list_offsets
from kaspar.protocol.isolation_level import READ_COMMITTED
from kaspar.spark.kafka_settings import ConnectionSettings
from kaspar.streams.errors import NEVER_SKIPPED, ProcessingError
from kaspar.streams.running.changelog_clients import LazyReader
from kaspar.streams.stores.byte_store import OverlayStore, Row, Snapshot
from kaspar.streams.stores.disk.ensure import ensure
from kaspar.streams.topology.context import OnError, TaskSettings
from kaspar.streams.topology.graph import GlobalTable
from kaspar.streams.topology.open_stores import open_stores, resolved

if TYPE_CHECKING:
    from kaspar.records import Record

Ends = Mapping[str, Sequence[int]]
"""The end offsets of each topic's partitions, by topic."""


def fixed_ends(client: Client, tables: Sequence[GlobalTable], counts: Mapping[str, int]) -> dict[str, list[int]]:
    """The current end offsets of the tables' topics."""
    topics = [topic for table in tables for topic in table.source.topics]
    where = {TopicPartition(topic, each): LATEST_TIMESTAMP for topic in topics for each in range(counts[topic])}
    found = list_offsets(client, where, isolation_level=READ_COMMITTED) if where else {}
    return {topic: [found[TopicPartition(topic, each)].offset for each in range(counts[topic])] for topic in topics}


class GlobalStores:
    """The stores of all global tables in a task, open until it ends."""

    def __init__(
        self,
        tables: Sequence[GlobalTable],
        settings: TaskSettings,
        folder: Path,
        ends: Ends,
        connection: ConnectionSettings,
    ) -> None:
        self._tables = tables
        self._settings = settings
        self._folder = folder
        self._ends = ends
        self._connection = connection
        self._open = ExitStack()

    def __enter__(self) -> dict[str, Any]:
        """The stores by name."""
        with ExitStack() as opened:
            snapshots = {table.store.name: self._snapshot(table, opened) for table in self._tables}
            self._open = opened.pop_all()
        specs = [table.store for table in self._tables]
        return open_stores(specs, self._settings, {}, lambda spec: OverlayStore(snapshots[spec.name]))

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def _snapshot(self, table: GlobalTable, opened: ExitStack) -> Snapshot:
        (topic,) = table.source.topics
        spec = resolved(table.store, self._settings)
        reader = opened.enter_context(LazyReader({spec.name: topic}, self._connection))
        checked = CheckedReader(reader, table, self._settings, topic)
        states = [
            opened.enter_context(
                ensure(self._folder / spec.name / str(partition), partition, [spec], {spec.name: end}, checked)
            )
            for partition, end in enumerate(self._ends[topic])
        ]
        snapshots = [state.snapshot(spec.name) for state in states]
        return snapshots[0] if len(snapshots) == 1 else _Union(snapshots)


class CheckedReader:
    """Reads the topic of a table like a changelog. Skips or rejects records that cannot be deserialized."""

    def __init__(self, reader: LazyReader, table: GlobalTable, settings: TaskSettings, topic: str) -> None:
        source = table.source
        self._reader = reader
        self._topic = topic
        self._may_skip = settings.on_deserialization_error is OnError.CONTINUE
        self._read_key = settings.key_serde(source.key_serde).deserialize
        self._read_value = settings.value_serde(source.value_serde).deserialize
        self._extract = source.timestamp_extractor

    def read(self, store: str, partition: int, from_offset: int, to_offset: int) -> "Iterator[Sequence[Record]]":
        for records in self._reader.read(store, partition, from_offset, to_offset):
            yield [checked for record in records if (checked := self._checked(record, partition)) is not None]

    def _checked(self, record: "Record", partition: int) -> "Record | None":
        try:
            key, value = self._read_key(self._topic, record.key), self._read_value(self._topic, record.value)
            time = record.timestamp if self._extract is None else self._extract(key, value, record.timestamp)
        except NEVER_SKIPPED:
            raise
        except Exception as problem:
            if self._may_skip:
                return None
            raise ProcessingError(
                f"A record of a global table cannot be read (topic {self._topic}, partition {partition}, offset "
                f"{record.offset}): {problem}"
            ) from problem
        return None if key is None else record._replace(timestamp=time, headers=())


class _Union:
    """The union of several snapshots. A key is in only one of them, unless its topic is not partitioned by key."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._snapshots = snapshots

    def get(self, key: bytes) -> bytes | None:
        for snapshot in self._snapshots:
            if (value := snapshot.get(key)) is not None:
                return value
        return None

    def range(self, first: bytes | None, last: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        return heapq.merge(*(each.range(first, last, reverse=reverse) for each in self._snapshots), reverse=reverse)

    def approximate_num_entries(self) -> int:
        return sum(each.approximate_num_entries() for each in self._snapshots)
