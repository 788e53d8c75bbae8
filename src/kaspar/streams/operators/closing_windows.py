"""Emits only the final result of each window, when it closes (KIP-825, EmitStrategy.onWindowClose).

The open windows are in a separate store, in the order in which they close. When a record advances stream time, the
windows that this closes are emitted before the record is processed: it belongs to none of them, and putting it may
expire them in the window store. Kafka checks at most once per second of wall-clock time, so its results may come later.
"""

import struct
from typing import Any, Final

from kaspar.streams.operators.tables import Getter
from kaspar.streams.stores.time_ordered import TimeOrderedStore
from kaspar.streams.topology.node import Receiver
from kaspar.streams.windows import Window, Windowed

_START: Final = struct.Struct(">q")


class ClosingWindows:
    """The open windows of a step. The key of an entry in the store is the window's start followed by the record's key,
    so windows that end at the same time have the order of Kafka's default stores (TimeFirstSessionKeySchema)."""

    def __init__(self, store: TimeOrderedStore, result_of: Getter, forward: Receiver) -> None:
        self._store = store
        self._topic = store.topic
        self._result_of = result_of
        self._forward = forward

    def updated(self, windowed: Windowed[Any], change: Any, timestamp: int) -> None:
        """Receives the updates of windows, which are not emitted. A window is open as long as it has a result."""
        end, raw_key = windowed.window.end, self._raw_key(*windowed)
        if change[0] is None:
            self._store.remove(end, raw_key)
        elif self._store.get(end, raw_key) is None:
            self._store.put(end, raw_key, b"", is_new=True)

    def close(self, last_end: int) -> None:
        """Emit the results of all windows whose end is at most `last_end`."""
        store = self._store
        while (first := store.first()) is not None and first[0] <= last_end:
            end, raw_key = first
            key = store.key_serde.deserialize(self._topic, raw_key[_START.size :])
            windowed = Windowed(key, Window(_START.unpack_from(raw_key)[0], end))
            result = self._result_of(windowed)
            if result is not None:
                self._forward(windowed, (result.value, None), result.timestamp)
            store.remove(end, raw_key)

    def _raw_key(self, key: Any, window: Window) -> bytes:
        raw_key = self._store.key_serde.serialize(self._topic, key)
        assert raw_key is not None, "records without key have no windows"
        return _START.pack(window.start) + raw_key
