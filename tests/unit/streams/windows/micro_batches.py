"""Runs a topology of one sub-topology as micro-batches: every batch has a new task, with stores over a snapshot of what
the batches before it have left, and with their clocks. That is how Spark runs it, so nothing may be kept in a task."""

from collections.abc import Callable, Sequence
from typing import Any

from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.context import Clock, Output, TaskSettings
from kaspar.streams.topology.open_stores import open_stores, resolved
from kaspar.streams.topology.task import MapSide, Row, ShuffledOutput, Task
from kaspar.streams.topology.topology import Topology

_CONFIG = {"application.id": "test", "bootstrap.servers": "test:0"}


class MicroBatches:
    def __init__(self, topology: Topology) -> None:
        (self._plan,) = topology.sub_topologies
        self._settings: TaskSettings = StreamsConfig.of(_CONFIG).task_settings
        self._state = {spec.name: OverlayStore(None) for spec in self._plan.stores}
        self._clocks: dict[str, int] = {}
        self._offset = 0
        self.written: list[tuple[str, Output]] = []

    def run(self, records: Sequence[tuple[str | None, str | None, int]]) -> None:
        """One micro-batch of records of the topic `in`."""
        clocks = {name: Clock(now) for name, now in self._clocks.items()}
        overlays = {name: OverlayStore(state) for name, state in self._state.items()}
        stores = open_stores(self._plan.stores, self._settings, clocks, lambda spec: overlays[spec.name])
        shuffled: list[ShuffledOutput] = []
        map_side = MapSide(self._plan, self._settings, self, shuffled.append)
        for number, (key, value, timestamp) in enumerate(records, self._offset):
            map_side.receive("in", 0, number, _bytes(key), _bytes(value), timestamp, None)
        task = Task(self._plan, self._settings, 0, stores, self, clocks)
        task.process(
            Row(port, key, value, time, "in", 0, number, headers)
            for number, (port, key, value, time, headers, _) in enumerate(shuffled, self._offset)
        )
        task.close()
        self._offset += len(records)
        self._clocks = {name: clock.now for name, clock in clocks.items()}
        for spec in self._plan.stores:
            self._apply(spec, overlays[spec.name])

    def _apply(self, spec: StoreSpec, overlay: OverlayStore) -> None:
        """As it is read from the changelog."""
        state, spec = self._state[spec.name], resolved(spec, self._settings)
        for first, last in overlay.deleted_ranges:
            state.delete_range(first, last)
        for key, value in overlay.changes.items():
            record = spec.to_changelog(key, value)
            state.put(*spec.from_changelog(record.key, record.value, record.timestamp or 0))

    def to(self, topic: str) -> Callable[[Output], object]:
        return lambda output: self.written.append((topic, output))

    def partition_count(self, topic: str) -> int:
        return 1


def _bytes(text: str | None) -> Any:
    return None if text is None else text.encode()
