"""One version of a partition's state, for a task: a read transaction, which is isolated from later versions."""

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self

from kaspar.streams.stores.byte_store import Row, Snapshot
from kaspar.streams.stores.disk.environment import Environment
from kaspar.streams.stores.disk.rows import store_prefix
from kaspar.streams.stores.disk.snapshot import LmdbSnapshot
from kaspar.streams.stores.spec import StoreSpec


class PartitionState:
    """One version of the state. It is closed at the end of the task; its snapshots cannot be used after that."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._transaction = environment.begin_reading()
        self._is_open = True
        try:
            self._state = environment.state(self._transaction)
        except BaseException:
            self.close()
            raise

    @property
    def ends(self) -> Mapping[str, int]:
        """The offset after the last changelog record of each store; a store without records may be missing."""
        return self._state.ends

    @property
    def meta(self) -> Mapping[str, int]:
        """Stream times and other numbers that only increase."""
        return self._state.meta

    def snapshot(self, store: str) -> Snapshot:
        number = self._state.numbers.get(store)
        if number is None:
            return _Empty()
        return LmdbSnapshot(self._transaction, store_prefix(number), self._environment.on_damage)

    def is_at(self, wanted: Mapping[str, int], specs: Iterable[StoreSpec], *, or_later: bool = False) -> bool:
        """Whether this is the wanted version (with `or_later`, or a later one), and the stores' layouts are current."""
        layouts, ends = self._state.layouts, self.ends
        is_version = all(
            ends.get(name, 0) == end or (or_later and ends.get(name, 0) > end) for name, end in wanted.items()
        )
        return is_version and all(layouts.get(spec.name, spec.layout) == spec.layout for spec in specs)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._environment.end_reading(self._transaction)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Empty:
    """A store that has no rows yet."""

    def get(self, key: bytes) -> bytes | None:
        return None

    def range(self, first: bytes | None, last: bytes | None, *, reverse: bool = False) -> Iterator[Row]:
        return iter(())

    def approximate_num_entries(self) -> int:
        return 0
