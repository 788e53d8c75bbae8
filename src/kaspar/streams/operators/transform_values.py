"""KTable.transform_values: maps values with an object that may use stores (KTableTransformValues)."""

from collections.abc import Callable
from typing import Any

from kaspar.streams.operators.tables import DerivedTable, TableNode
from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Receiver


class ValueTransformer:
    """The base class of transformers. Subclasses override `transform`, and `init` to get their stores."""

    def init(self, context: "TransformerContext") -> None:
        self.context = context

    def transform(self, key: Any, value: Any) -> Any:
        raise NotImplementedError


class TransformerContext:
    """The context of a transformer: its stores, and the headers of the current record."""

    def __init__(self, context: TaskContext) -> None:
        self._context = context

    def store(self, name: str) -> Any:
        return self._context.store(name)

    @property
    def headers(self) -> Any:
        return self._context.headers or ()


class TableTransformValues(DerivedTable):
    """Transforms None too, unlike TableMapValues. The old value is computed again from the parent's old value, unless
    the result has a store."""

    global_stores = None

    def __init__(
        self, name: str, parent: TableNode, supplier: Callable[[], ValueTransformer], store: str | None
    ) -> None:
        super().__init__(name, parent, store)
        self.supplier = supplier

    def computed(self, context: TaskContext) -> Callable[[Any, Any], Any]:
        transformer = self.supplier()
        transformer.init(TransformerContext(context))
        return transformer.transform

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        transform, sends_old = self.computed(context), self.sends_old_values
        store = None if self.store is None else context.store(self.store)

        def receive(key: Any, change: Any, timestamp: int) -> None:
            value = transform(key, change[0])
            if store is None:
                forward(key, (value, transform(key, change[1]) if sends_old else None), timestamp)
                return
            found = store.get(key) if sends_old else None
            store.put(key, None if value is None else ValueAndTimestamp(value, timestamp))
            forward(key, (value, None if found is None else found[0]), timestamp)

        return receive
