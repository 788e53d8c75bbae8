"""Table operators: sources, filters, mapped values, and groupings by another key.

A table node forwards changes: pairs of new and old value. Whether old values are sent, and which tables have a store,
follows Kafka's KTableImpl: a step that needs old values requests them from its parents (`send_old_values`), and a step
that looks up values gets a getter, which a table without a store derives from its parent's getter. A filter or a mapped
table without a store that sends no old values sends a tombstone whenever a value does not pass.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.topology.context import TaskContext
from kaspar.streams.topology.node import Node, Receiver

Getter: TypeAlias = Callable[[Any], "ValueAndTimestamp[Any] | None"]
"""Takes a key, returns its value and the value's timestamp."""


class TableNode(Node):
    """A step whose result is a table."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.sends_old_values = False

    def send_old_values(self, *, force: bool) -> bool:
        """Request old values. Without `force`, they are sent only if that needs no additional store. Returns whether
        they are sent."""
        raise NotImplementedError

    def getter(self, context: TaskContext) -> Getter:
        """A function that looks up values of the table in a task."""
        raise NotImplementedError

    def getter_stores(self) -> list[str]:
        """The stores that the getter uses. Adds a store to a source without one."""
        raise NotImplementedError


class StoreTable(TableNode):
    """A table that is kept in a store."""

    def __init__(self, name: str, store: str) -> None:
        super().__init__(name)
        self.store = store
        self.stores = [store]

    def send_old_values(self, *, force: bool) -> bool:
        self.sends_old_values = True
        return True

    def getter(self, context: TaskContext) -> Getter:
        get: Getter = context.store(self.store).get
        return get

    def getter_stores(self) -> list[str]:
        return [self.store]


class TableSource(TableNode):
    """A topic or a stream as a table (KTableSource). Its store is added when a step needs it."""

    def __init__(self, name: str, store: str, add_store: Callable[["TableSource"], object], *, stored: bool) -> None:
        super().__init__(name)
        self.store = store
        self._add_store: Callable[[TableSource], object] | None = add_store
        if stored:
            self.materialize()

    def materialize(self) -> None:
        if not self.stores and self._add_store is not None:
            self._add_store(self)
            self._add_store = None  # it refers to the builder, which is not pickled

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_add_store": None}

    def send_old_values(self, *, force: bool) -> bool:
        if not self.stores and not force:
            return False
        self.materialize()
        self.sends_old_values = True
        return True

    def getter(self, context: TaskContext) -> Getter:
        get: Getter = context.store(self.store).get
        return get

    def getter_stores(self) -> list[str]:
        self.materialize()
        return [self.store]

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        if not self.stores:

            def pass_on(key: Any, value: Any, timestamp: int) -> None:
                if key is None:
                    context.drop("null-key")
                    return
                forward(key, (value, None), timestamp)

            return pass_on
        return storing_receiver(context, self.store, forward, sends_old=self.sends_old_values)


def storing_receiver(context: TaskContext, name: str, forward: Receiver, *, sends_old: bool) -> Receiver:
    """A receiver that puts every record into a store and forwards the change."""
    store = context.store(name)
    get, put = store.get, store.put

    def receive(key: Any, value: Any, timestamp: int) -> None:
        if key is None:
            context.drop("null-key")
            return
        found = get(key) if sends_old else None
        put(key, None if value is None else ValueAndTimestamp(value, timestamp))
        forward(key, (value, None if found is None else found[0]), timestamp)

    return receive


class DerivedTable(TableNode):
    """A table computed from another one, key by key. `store` is None if it is not stored."""

    omits_unknown_keys = False
    """Whether a deletion is dropped if downstream steps are known not to have seen the key."""

    def __init__(self, name: str, parent: TableNode, store: str | None) -> None:
        super().__init__(name)
        self.parent = parent
        self.store = store
        if store is not None:
            self.stores = [store]

    def send_old_values(self, *, force: bool) -> bool:
        if self.store is not None or self.parent.send_old_values(force=force):
            self.sends_old_values = True
        return self.sends_old_values

    def computed(self, context: TaskContext) -> Callable[[Any, Any], Any]:
        """The function that computes a value from the key and the parent's value."""
        raise NotImplementedError

    def getter(self, context: TaskContext) -> Getter:
        if self.store is not None:
            get: Getter = context.store(self.store).get
            return get
        parents_value, compute = self.parent.getter(context), self.computed(context)

        def compute_value(key: Any) -> "ValueAndTimestamp[Any] | None":
            found = parents_value(key)
            if found is None:
                return None
            value = compute(key, found[0])
            return None if value is None else ValueAndTimestamp(value, found[1])

        return compute_value

    def getter_stores(self) -> list[str]:
        return [self.store] if self.store is not None else self.parent.getter_stores()

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        compute, sends_old, omits_unknown = self.computed(context), self.sends_old_values, self.omits_unknown_keys
        store = None if self.store is None else context.store(self.store)

        def receive(key: Any, change: Any, timestamp: int) -> None:
            value = compute(key, change[0])
            old = None
            if sends_old:
                if store is None:
                    old = compute(key, change[1])
                else:
                    found = store.get(key)
                    old = None if found is None else found[0]
                if value is None and old is None and omits_unknown:
                    return
            if store is not None:
                store.put(key, None if value is None else ValueAndTimestamp(value, timestamp))
            forward(key, (value, old), timestamp)

        return receive


class TableFilter(DerivedTable):
    """A filtered table (KTableFilter)."""

    omits_unknown_keys = True

    def __init__(
        self,
        name: str,
        parent: TableNode,
        predicate: Callable[[Any, Any], bool],
        store: str | None,
        *,
        negated: bool = False,
    ) -> None:
        super().__init__(name, parent, store)
        self.predicate = predicate
        self.negated = negated
        # If the parent has a store, old values are cheap and avoid tombstones for keys that never passed.
        self.sends_old_values = parent.send_old_values(force=False)

    def computed(self, context: TaskContext) -> Callable[[Any, Any], Any]:
        predicate, negated = self.predicate, self.negated

        def compute(key: Any, value: Any) -> Any:
            return value if value is not None and bool(predicate(key, value)) is not negated else None

        return compute


class TableMapValues(DerivedTable):
    """A table with mapped values (KTableMapValues)."""

    def __init__(
        self,
        name: str,
        parent: TableNode,
        mapper: Callable[..., Any],
        store: str | None,
        *,
        with_key: bool = False,
    ) -> None:
        super().__init__(name, parent, store)
        self.mapper = mapper
        self.with_key = with_key

    def computed(self, context: TaskContext) -> Callable[[Any, Any], Any]:
        mapper = self.mapper

        def compute(key: Any, value: Any) -> Any:
            return None if value is None else mapper(value)

        def compute_with_key(key: Any, value: Any) -> Any:
            return None if value is None else mapper(key, value)

        return compute_with_key if self.with_key else compute


class TableToStream(Node):
    """The changes of a table as a stream of new values (KTable.toStream)."""

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        def receive(key: Any, change: Any, timestamp: int) -> None:
            forward(key, change[0], timestamp)

        return receive


class TableSelect(Node):
    """Maps a table to other keys for a grouping (KTableRepartitionMap): the old value is subtracted from its group, and
    the new value is added to its group. If both groups are the same, one change is sent (KIP-904)."""

    def __init__(self, name: str, selector: Callable[[Any, Any], tuple[Any, Any]]) -> None:
        super().__init__(name)
        self.selector = selector

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        selector = self.selector

        def select(key: Any, value: Any) -> tuple[Any, Any] | None:
            if value is None:
                return None
            new_key, new_value = selector(key, value)
            return None if new_key is None or new_value is None else (new_key, new_value)

        def receive(key: Any, change: Any, timestamp: int) -> None:
            added, removed = select(key, change[0]), select(key, change[1])
            if added is not None and removed is not None and added[0] == removed[0]:
                forward(added[0], (added[1], removed[1]), timestamp)
                return
            # The old value goes first, so that no value is counted twice.
            if removed is not None:
                forward(removed[0], (None, removed[1]), timestamp)
            if added is not None:
                forward(added[0], (added[1], None), timestamp)

        return receive


class TableAggregate(StoreTable):
    """The aggregate of a grouped table (KTableAggregate): subtracts the old value, then adds the new one."""

    def __init__(
        self,
        name: str,
        store: str,
        initializer: Callable[[], Any],
        adder: Callable[[Any, Any, Any], Any],
        subtractor: Callable[[Any, Any, Any], Any],
    ) -> None:
        super().__init__(name, store)
        self.initializer = initializer
        self.adder = adder
        self.subtractor = subtractor

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        store = context.store(self.store)
        initializer, adder, subtractor = self.initializer, self.adder, self.subtractor
        sends_old = self.sends_old_values

        def receive(key: Any, change: Any, timestamp: int) -> None:
            if key is None:
                context.drop("null-key")
                return
            new, old = change
            found = store.get(key)
            before, last_time = (None, timestamp) if found is None else found
            aggregate, time = before, timestamp
            if old is not None and before is not None:
                aggregate = subtractor(key, old, before)
                time = max(timestamp, last_time)
            if new is not None:
                aggregate = adder(key, new, initializer() if aggregate is None else aggregate)
                time = max(timestamp, last_time)
            store.put(key, None if aggregate is None else ValueAndTimestamp(aggregate, time))
            forward(key, (aggregate, before if sends_old else None), time)

        return receive


class TableReduce(StoreTable):
    """The reduction of a grouped table (KTableReduce)."""

    def __init__(
        self, name: str, store: str, adder: Callable[[Any, Any], Any], subtractor: Callable[[Any, Any], Any]
    ) -> None:
        super().__init__(name, store)
        self.adder = adder
        self.subtractor = subtractor

    def receiver(self, context: TaskContext, forward: Receiver) -> Receiver:
        store, adder, subtractor = context.store(self.store), self.adder, self.subtractor
        sends_old = self.sends_old_values

        def receive(key: Any, change: Any, timestamp: int) -> None:
            if key is None:
                context.drop("null-key")
                return
            new, old = change
            found = store.get(key)
            before, last_time = (None, timestamp) if found is None else found
            value, time = before, timestamp
            if old is not None and before is not None:
                value = subtractor(before, old)
                time = max(timestamp, last_time)
            if new is not None:
                value = new if value is None else adder(value, new)
                time = max(timestamp, last_time)
            store.put(key, None if value is None else ValueAndTimestamp(value, time))
            forward(key, (value, before if sends_old else None), time)

        return receive
