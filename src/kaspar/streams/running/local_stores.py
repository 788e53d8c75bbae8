"""The stores of a running program, for reads on the driver: their contents after the last published batch.

Each lookup opens this machine's copy of the partition and brings it up to date from delta files or the changelog. This
takes milliseconds, and does not disturb tasks.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaspar.streams.errors import StreamsError
from kaspar.streams.running.changelog_clients import LazyReader
from kaspar.streams.running.config import StreamsConfig
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.disk.ensure import ensure
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.stores.typed import SessionStore
from kaspar.streams.topology.context import Clock
from kaspar.streams.topology.endpoints import Repartition
from kaspar.streams.topology.open_stores import open_stores, resolved
from kaspar.streams.topology.plan import SubTopology
from kaspar.streams.windows import Windowed

if TYPE_CHECKING:
    from kaspar.streams.running.versions import Versions

_FOREVER = (1 << 63) - 1


class LocalStore:
    """One store with all of its partitions."""

    def __init__(
        self,
        name: str,
        plan: SubTopology,
        config: StreamsConfig,
        versions: "Versions",
        state_dir: Path,
        partitions: int,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self._has_partitioner = any(
            isinstance(node, Repartition) and node.partitioner is not None for node in plan.nodes
        )
        self._config = config
        self._versions = versions
        self._state_dir = state_dir
        self._specs = [resolved(spec, config.task_settings) for spec in plan.stores]
        self.spec: StoreSpec = next(spec for spec in self._specs if spec.name == name)
        self.key_serde: Serde[Any] = config.task_settings.key_serde(self.spec.key_serde)
        self._topics = {spec.name: spec.changelog_topic(config.application_id) for spec in plan.stores}

    @property
    def kind(self) -> str:
        return self.spec.kind.layout(self.spec).partition("/")[0]

    @property
    def has_windows(self) -> bool:
        """Whether the keys are windows or sessions."""
        return bool(self.spec.retention_ms)

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, key: Any) -> Any:
        """The value of a key, with its timestamp if the store has timestamps; None if there is none."""
        self._refuse_windows("get", "fetch")
        for partition in self._partitions_of(key):
            with self._opened(partition) as store:
                if (found := store.get(key)) is not None:
                    return found
        return None

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        """Keys and values between two keys, both inclusive, in the order of the serialized keys."""
        self._refuse_windows("range", "fetch")
        return self._all_partitions(lambda store: store.range(first, last))

    def fetch(self, key: Any, time_from: int = 0, time_to: int = _FOREVER) -> list[tuple[Windowed[Any], Any]]:
        """The windows of a key that begin in this time range, or the sessions that overlap it."""
        self._refuse_no_windows()
        found: list[tuple[Windowed[Any], Any]] = []
        for partition in self._partitions_of(key):
            with self._opened(partition) as store:
                if isinstance(store, SessionStore):
                    found += store.find_sessions(key, time_from, time_to)
                else:
                    found += store.fetch_range(key, key, time_from, time_to)
        return found

    def fetch_range(
        self, first: Any = None, last: Any = None, time_from: int = 0, time_to: int = _FOREVER
    ) -> Iterator[tuple[Windowed[Any], Any]]:
        """Like fetch(), for all keys between two keys, both inclusive, one partition after the other."""
        self._refuse_no_windows()
        for partition in range(self.partitions):
            with self._opened(partition) as store:
                if isinstance(store, SessionStore):
                    yield from store.find_sessions_range(first, last, time_from, time_to)
                else:
                    yield from store.fetch_range(first, last, time_from, time_to)

    def approximate_num_entries(self) -> int:
        count = 0
        for partition in range(self.partitions):
            with self._opened(partition) as store:
                count += store.approximate_num_entries()
        return count

    def _partitions_of(self, key: Any) -> Sequence[int]:
        """The partitions that may contain a key: all of them, if the program has a custom partitioner."""
        return range(self.partitions) if self._has_partitioner else [self.partition_of(key)]

    def partition_of(self, key: Any) -> int:
        import pyarrow as pa

        from kaspar.spark.writing.arrow_columns import key_partitions

        data = self.key_serde.serialize(self._topics[self.name], key)
        if data is None:
            raise StreamsError(f"The store {self.name} has no null keys.")
        partition: int = key_partitions(pa.array([data], pa.binary()), self.partitions)[0].as_py()
        return partition

    def _all_partitions(self, rows: Callable[[Any], Iterator[tuple[Any, Any]]]) -> Iterator[tuple[Any, Any]]:
        """The rows of all partitions, merged by key. A partition is open only while it is read."""
        write = self.key_serde.serialize
        topic = self._topics[self.name]

        def of_partition(partition: int) -> Iterator[tuple[bytes | None, tuple[Any, Any]]]:
            with self._opened(partition) as store:
                for row in rows(store):
                    yield write(topic, row[0]), row

        merged = heapq.merge(*map(of_partition, range(self.partitions)), key=lambda each: each[0] or b"")
        return (row for _, row in merged)

    @contextmanager
    def _opened(self, partition: int) -> Iterator[Any]:
        """Open the typed store over a snapshot, for reading only."""
        wanted = dict(self._versions.ends.get(partition, {}))
        reader = LazyReader(self._topics, self._config.connection)
        with (
            reader,
            ensure(self._state_dir / str(partition), partition, self._specs, wanted, reader, or_later=True) as state,
        ):
            clocks = {name: Clock(number) for name, number in state.meta.items()}
            stores = open_stores(
                [self.spec], self._config.task_settings, clocks, lambda spec: OverlayStore(state.snapshot(spec.name))
            )
            yield stores[self.name]

    def _refuse_no_windows(self) -> None:
        if not self.has_windows:
            raise StreamsError(f"The store {self.name} has no windows: use get().")

    def _refuse_windows(self, method: str, instead: str) -> None:
        if self.has_windows:
            raise StreamsError(f"The store {self.name} is windowed and has no {method}(): use {instead}().")
