"""Aggregates of streams by key, without windows (KStreamAggregate, KStreamReduce).

The result is a table. A record without a key or a value is dropped. The timestamp of an aggregate is the largest
timestamp of its records.
"""

from collections.abc import Callable
from typing import Any, Final

from kaspar.base.named_tuples import new_tuple
from kaspar.streams.operators.tables import StoreTable
from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Receiver

NULL_KEY_OR_VALUE: Final = "null-key-or-value"


class StreamAggregate(StoreTable):
    def __init__(
        self,
        name: str,
        store: str,
        initializer: Callable[[], Any],
        aggregator: Callable[[Any, Any, Any], Any],
    ) -> None:
        super().__init__(name, store)
        self.initializer = initializer
        self.aggregator = aggregator

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        store = context.store(self.store)
        get, put = store.get, store.put
        initializer, aggregator, sends_old = self.initializer, self.aggregator, self.sends_old_values

        def receive(key: Any, value: Any, timestamp: int) -> None:
            if key is None or value is None:
                context.drop(NULL_KEY_OR_VALUE)
                return
            found = get(key)
            if found is None:
                old, aggregate = None, initializer()
            else:
                old = aggregate = found[0]
                if found[1] > timestamp:
                    timestamp = found[1]
            new = aggregator(key, value, aggregate)
            put(key, None if new is None else new_tuple(ValueAndTimestamp, (new, timestamp)))
            forward(key, (new, old if sends_old else None), timestamp)

        return receive


class StreamReduce(StoreTable):
    def __init__(self, name: str, store: str, reducer: Callable[[Any, Any], Any]) -> None:
        super().__init__(name, store)
        self.reducer = reducer

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        store = context.store(self.store)
        get, put = store.get, store.put
        reducer, sends_old = self.reducer, self.sends_old_values

        def receive(key: Any, value: Any, timestamp: int) -> None:
            if key is None or value is None:
                context.drop(NULL_KEY_OR_VALUE)
                return
            found = get(key)
            if found is None:
                old, new = None, value
            else:
                old = found[0]
                new = reducer(old, value)
                if found[1] > timestamp:
                    timestamp = found[1]
            put(key, None if new is None else new_tuple(ValueAndTimestamp, (new, timestamp)))
            forward(key, (new, old if sends_old else None), timestamp)

        return receive
