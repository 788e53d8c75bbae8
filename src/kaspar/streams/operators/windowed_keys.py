"""The serde and the partitioner of the keys of windowed tables.

If the serde of the inner key is unknown when the topology is built, it is the program's default.
"""

from dataclasses import dataclass
from typing import Any

from kaspar.records.column_writing import murmur2
from kaspar.streams.serdes import Serde, session_windowed, windowed


@dataclass(frozen=True, slots=True)
class WindowedKeys:
    """A placeholder for the serde of keys `Windowed(key, window)` until the program's defaults are known."""

    inner: Serde[Any] | None
    window_size_ms: int | None
    """None for sessions, whose serialized keys contain the end."""

    def with_defaults(self, key_serde: Serde[Any], value_serde: Serde[Any]) -> Serde[Any]:
        inner = key_serde if self.inner is None else _resolved(self.inner, key_serde, value_serde)
        return session_windowed(inner) if self.window_size_ms is None else windowed(inner, self.window_size_ms)

    def serialize(self, topic: str, value: Any) -> bytes | None:
        raise AssertionError("with_defaults() comes first")

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        raise AssertionError("with_defaults() comes first")


@dataclass(frozen=True, slots=True)
class WindowedKeyPartitioner:
    """Partitions by the inner key, so that all windows of a key are in one partition (WindowedStreamPartitioner)."""

    key_serde: Any

    def with_defaults(self, key_serde: Serde[Any], value_serde: Serde[Any]) -> "WindowedKeyPartitioner":
        return WindowedKeyPartitioner(_resolved(self.key_serde, key_serde, value_serde))

    def __call__(self, topic: str, key: Any, value: Any, partitions: int) -> int | None:
        if key is None:
            return None
        return murmur2(self.key_serde.serialize_base_key(topic, key)) % partitions


def partitioner_of(key_serde: Serde[Any] | None) -> WindowedKeyPartitioner | None:
    """The partitioner for a serde of windowed keys; None for other serdes."""
    if isinstance(key_serde, WindowedKeys) or hasattr(key_serde, "serialize_base_key"):
        return WindowedKeyPartitioner(key_serde)
    return None


def _resolved(given: Any, key_serde: Serde[Any], value_serde: Serde[Any]) -> Any:
    with_defaults = getattr(given, "with_defaults", None)
    return given if with_defaults is None else with_defaults(key_serde, value_serde)
