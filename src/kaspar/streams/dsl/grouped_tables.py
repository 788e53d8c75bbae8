"""Grouped tables: count, reduce, aggregate (KTable.group_by)."""

from collections.abc import Callable
from typing import Any, Generic

from kaspar.streams.dsl.groupings import count_one, zero
from kaspar.streams.dsl.handles import NewTable, Table
from kaspar.streams.dsl.materialized import Materialized
from kaspar.streams.operators import tables
from kaspar.streams.operators.changes import ChangeSerde
from kaspar.streams.serdes import Serde, long
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.endpoints import Repartition
from kaspar.streams.topology.graph import Graph


class KGroupedTable(Generic[Table]):
    """A table grouped by another key. Aggregates need a subtractor, which undoes the effect of a value, because a row
    may move to another group."""

    def __init__(
        self,
        graph: Graph,
        node: tables.TableSelect,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        name: str | None,
        new_table: NewTable[Table],
    ) -> None:
        self._graph = graph
        self._node = node
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._name = name
        self._new_table = new_table
        self._repartition: Repartition | None = None

    def count(
        self,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> Table:
        return self.aggregate(
            zero, count_one, _count_one_less, store, key_serde=key_serde, value_serde=value_serde or long(), name=name
        )

    def reduce(
        self,
        adder: Callable[[Any, Any], Any],
        subtractor: Callable[[Any, Any], Any],
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> Table:
        """Apply `adder(aggregate, value)` to new values and `subtractor(aggregate, value)` to old ones."""
        given = Materialized(store, key_serde, value_serde).or_serdes(self._key_serde, self._value_serde)
        spec = given.key_value_store(self._graph, "KTABLE-REDUCE-")
        step = self._graph.new_name("KTABLE-REDUCE-", name)
        return self._table(tables.TableReduce(step, spec.name, adder, subtractor), spec)

    def aggregate(
        self,
        initializer: Callable[[], Any],
        adder: Callable[[Any, Any, Any], Any],
        subtractor: Callable[[Any, Any, Any], Any],
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> Table:
        """Apply `adder(key, value, aggregate)` to new values and `subtractor(key, value, aggregate)` to old ones."""
        given = Materialized(store, key_serde, value_serde).or_serdes(self._key_serde)
        spec = given.key_value_store(self._graph, "KTABLE-AGGREGATE-")
        step = self._graph.new_name("KTABLE-AGGREGATE-", name)
        return self._table(tables.TableAggregate(step, spec.name, initializer, adder, subtractor), spec)

    def _table(self, node: tables.TableNode, spec: StoreSpec) -> Table:
        if self._repartition is None:
            self._repartition = Repartition(
                f"{self._name or spec.name}-repartition",
                key_serde=self._key_serde,
                value_serde=ChangeSerde(self._value_serde),
            )
            self._graph.add(self._repartition, [self._node])
        self._graph.add(node, [self._repartition])
        self._graph.add_store(spec, [node])
        return self._new_table(self._graph, node, spec.key_serde, spec.value_serde)


def _count_one_less(key: Any, value: Any, count: int) -> int:
    return count - 1
