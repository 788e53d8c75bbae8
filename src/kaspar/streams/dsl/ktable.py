"""KTable: the last value of each key, and how it changes. GlobalKTable: a table that every task has as a whole."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kaspar.streams.dsl.materialized import Materialized
from kaspar.streams.operators import tables
from kaspar.streams.operators.changes import ChangeSerde
from kaspar.streams.serdes import Serde, long
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.endpoints import Repartition, StreamPartitioner
from kaspar.streams.topology.graph import Graph

if TYPE_CHECKING:
    from kaspar.streams.dsl.kstream import KStream
    from kaspar.streams.dsl.suppressed import Suppressed


class GlobalKTable:
    """What StreamsBuilder.global_table returns, for joins."""

    def __init__(self, store: str, topic: str) -> None:
        self.store = store
        self.topic = topic


class KTable:
    """Methods return another table and leave this one as it is. With `store` a result is kept in a store of that name,
    and is queryable."""

    def __init__(
        self,
        graph: Graph,
        node: tables.TableNode,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
    ) -> None:
        self.graph = graph
        self.node = node
        self.key_serde = key_serde
        self.value_serde = value_serde

    def filter(
        self,
        predicate: Callable[[Any, Any], bool],
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KTable":
        """Keys whose value does not pass are deleted from the result."""
        return self._filtered(predicate, Materialized(store, key_serde, value_serde), name, negated=False)

    def filter_not(
        self,
        predicate: Callable[[Any, Any], bool],
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KTable":
        return self._filtered(predicate, Materialized(store, key_serde, value_serde), name, negated=True)

    def map_values(
        self,
        mapper: Callable[..., Any],
        store: str | None = None,
        *,
        with_key: bool = False,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KTable":
        """`mapper(value)`, or `mapper(key, value)` with `with_key`."""
        spec = self._spec(Materialized(store, key_serde, value_serde).or_serdes(self.key_serde))
        node = tables.TableMapValues(
            self.graph.new_name("KTABLE-MAPVALUES-", name), self.node, mapper, _name_of(spec), with_key=with_key
        )
        return self._derived(node, spec, value_serde)

    def transform_values(
        self,
        transformer: Callable[[], Any],
        store: str | None = None,
        *,
        stores: tuple[str, ...] = (),
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KTable":
        """`transformer()` returns a ValueTransformer, whose `transform(key, value)` may use the given stores."""
        from kaspar.streams.operators.transform_values import TableTransformValues

        spec = self._spec(Materialized(store, key_serde, value_serde).or_serdes(self.key_serde))
        node = TableTransformValues(
            self.graph.new_name("KTABLE-TRANSFORMVALUES-", name), self.node, transformer, _name_of(spec)
        )
        self.graph.connect(node, *stores)
        return self._derived(node, spec, value_serde)

    def to_stream(self, selector: Callable[[Any, Any], Any] | None = None, *, name: str | None = None) -> "KStream":
        """Every change as a record; a deletion is a record without value. `selector(key, value)` chooses new keys."""
        from kaspar.streams.dsl.kstream import KStream

        node = tables.TableToStream(self.graph.new_name("KTABLE-TOSTREAM-", name))
        node.input_serdes = self.key_serde, self.value_serde
        self.graph.add(node, [self.node])
        stream = KStream(self.graph, node, self.key_serde, self.value_serde)
        return stream if selector is None else stream.select_key(selector)

    def to(
        self,
        topic: str,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: StreamPartitioner | None = None,
    ) -> None:
        """to_stream().to(topic)."""
        self.to_stream().to(topic, key_serde=key_serde, value_serde=value_serde, partitioner=partitioner)

    def suppress(self, suppressed: "Suppressed", *, name: str | None = None) -> "KTable":
        """Hold changes back: until a window closes, or for some time."""
        from kaspar.streams.dsl.suppressed import suppress

        return suppress(self, suppressed, name)

    def group_by(
        self,
        selector: Callable[[Any, Any], tuple[Any, Any]],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KGroupedTable":
        """`selector(key, value)` returns the new key and value."""
        self.node.send_old_values(force=True)
        node = tables.TableSelect(self.graph.new_name("KTABLE-SELECT-", name), selector)
        self.graph.add(node, [self.node])
        return KGroupedTable(self.graph, node, key_serde, value_serde, name)

    def join(
        self,
        other: "KTable",
        joiner: Callable[..., Any],
        store: str | None = None,
        *,
        foreign_key: Callable[..., Any] | None = None,
        **options: Any,
    ) -> "KTable":
        """An inner join by key, or, with `foreign_key(value)`, by the key in the other table that this function finds
        in a value. `joiner(value, other_value)` returns the new value. Options: key_serde, value_serde, name."""
        return self._join(other, joiner, store, foreign_key, kind="inner", **options)

    def left_join(
        self,
        other: "KTable",
        joiner: Callable[..., Any],
        store: str | None = None,
        *,
        foreign_key: Callable[..., Any] | None = None,
        **options: Any,
    ) -> "KTable":
        """As join, with None for the other value where there is none."""
        return self._join(other, joiner, store, foreign_key, kind="left", **options)

    def outer_join(
        self, other: "KTable", joiner: Callable[..., Any], store: str | None = None, **options: Any
    ) -> "KTable":
        """As join by key, with None for either value where there is none."""
        return self._join(other, joiner, store, None, kind="outer", **options)

    # --- how tables are made from tables ------------------------------------------------------------------------------

    def _join(
        self,
        other: "KTable",
        joiner: Callable[..., Any],
        store: str | None,
        foreign_key: Callable[..., Any] | None,
        **options: Any,
    ) -> "KTable":
        from kaspar.streams.dsl import table_joins

        if foreign_key is not None:
            return table_joins.foreign_key_join(self, other, foreign_key, joiner, store, **options)
        return table_joins.join(self, other, joiner, store, **options)

    def _spec(self, given: Materialized) -> StoreSpec | None:
        """The store of a derived table, if the caller has named one."""
        return None if given.name is None else given.key_value_store(self.graph, "")

    def _filtered(
        self, predicate: Callable[[Any, Any], bool], given: Materialized, name: str | None, *, negated: bool
    ) -> "KTable":
        spec = self._spec(given.or_serdes(self.key_serde, self.value_serde))
        step = self.graph.new_name("KTABLE-FILTER-", name)
        node = tables.TableFilter(step, self.node, predicate, _name_of(spec), negated=negated)
        return self._derived(node, spec, given.value_serde or self.value_serde)

    def _derived(self, node: tables.TableNode, spec: StoreSpec | None, value_serde: Serde[Any] | None) -> "KTable":
        # It receives changes; where values have no serde, a shuffle passes changes on as it passes any value.
        node.input_serdes = self.key_serde, None if self.value_serde is None else ChangeSerde(self.value_serde)
        self.graph.add(node, [self.node])
        if spec is not None:
            self.graph.add_store(spec, [node])
        return KTable(self.graph, node, self.key_serde, value_serde)


class KGroupedTable:
    """A table grouped by another key. Aggregates are given a function that undoes what a value has added, since a row
    may change its group."""

    def __init__(
        self,
        graph: Graph,
        node: tables.TableSelect,
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
        name: str | None,
    ) -> None:
        self._graph = graph
        self._node = node
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._name = name
        self._repartition: Repartition | None = None

    def count(
        self,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> KTable:
        from kaspar.streams.dsl.grouped import count_one, zero

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
    ) -> KTable:
        """`adder(aggregate, value)` and `subtractor(aggregate, value)`."""
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
    ) -> KTable:
        """`adder(key, value, aggregate)` and `subtractor(key, value, aggregate)`."""
        given = Materialized(store, key_serde, value_serde).or_serdes(self._key_serde)
        spec = given.key_value_store(self._graph, "KTABLE-AGGREGATE-")
        step = self._graph.new_name("KTABLE-AGGREGATE-", name)
        return self._table(tables.TableAggregate(step, spec.name, initializer, adder, subtractor), spec)

    def _table(self, node: tables.TableNode, spec: StoreSpec) -> KTable:
        if self._repartition is None:
            self._repartition = Repartition(
                f"{self._name or spec.name}-repartition",
                key_serde=self._key_serde,
                value_serde=ChangeSerde(self._value_serde),
            )
            self._graph.add(self._repartition, [self._node])
        self._graph.add(node, [self._repartition])
        self._graph.add_store(spec, [node])
        return KTable(self._graph, node, spec.key_serde, spec.value_serde)


def _count_one_less(key: Any, value: Any, count: int) -> int:
    return count - 1


def _name_of(spec: StoreSpec | None) -> str | None:
    return None if spec is None else spec.name
