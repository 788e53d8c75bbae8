"""Opens the typed stores of a task over any kind of ByteStore."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from kaspar.streams.stores.byte_store import ByteStore
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.context import Clock, TaskSettings


class StoreContext:
    """The context in which a store is opened."""

    def __init__(self, application_id: str, clocks: dict[str, Clock]) -> None:
        self.application_id = application_id
        self._clocks = clocks

    def clock(self, name: str) -> Clock:
        return self._clocks.setdefault(name, Clock())


def open_stores(
    specs: Iterable[StoreSpec],
    settings: TaskSettings,
    clocks: dict[str, Clock],
    byte_store: Callable[[StoreSpec], ByteStore],
) -> dict[str, Any]:
    """Open the typed stores. Returns them by name."""
    context = StoreContext(settings.application_id, clocks)
    return {spec.name: resolved(spec, settings).open(byte_store(spec), context) for spec in specs}


def resolved(spec: StoreSpec, settings: TaskSettings) -> StoreSpec:
    """The spec with the program's default serdes filled in."""
    return replace(
        spec, key_serde=settings.key_serde(spec.key_serde), value_serde=settings.value_serde(spec.value_serde)
    )
