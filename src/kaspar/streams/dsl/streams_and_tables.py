"""KStream: a stream of independent records.
KTable: the last value of each key, as a stream of changes.

Each has methods that return the other, so both are in one module. This module imports those of groupings, which get
KTable's constructor as an argument.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kaspar.streams.dsl import stream_joins, table_joins
from kaspar.streams.dsl.branches import BranchedKStream
from kaspar.streams.dsl.grouped import KGroupedStream
from kaspar.streams.dsl.grouped_tables import KGroupedTable
from kaspar.streams.dsl.handles import GlobalKTable, StreamHandle, TableHandle
from kaspar.streams.dsl.materialized import Materialized
from kaspar.streams.dsl.suppressed import Suppressed, suppress
from kaspar.streams.errors import TopologyError
from kaspar.streams.operators import stateless, tables
from kaspar.streams.operators.changes import ChangeSerde
from kaspar.streams.operators.processors import Processor, ProcessorNode
from kaspar.streams.operators.transform_values import TableTransformValues
from kaspar.streams.operators.windowed_keys import partitioner_of
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.endpoints import Repartition, Sink, StreamPartitioner, TopicNameExtractor
from kaspar.streams.topology.node import Node, PassThrough
from kaspar.streams.windows import JoinWindows


class KStream(StreamHandle):
    """A stream of independent records. Methods return a new stream and do not change this one. Every method takes
    `name=`, the name of its step.

    After an operation that may change the key, the records are repartitioned by their new keys before the next grouping
    or join.
    """

    # --- one record at a time -----------------------------------------------------------------------------------------

    def map(self, mapper: Callable[[Any, Any], tuple[Any, Any]], *, name: str | None = None) -> "KStream":
        """Replace each record: `mapper(key, value)` returns the new key and value."""
        return self._rekeyed(stateless.Map(self._name("KSTREAM-MAP-", name), mapper))

    def map_values(self, mapper: Callable[..., Any], *, with_key: bool = False, name: str | None = None) -> "KStream":
        """Replace each value by `mapper(value)`, or by `mapper(key, value)` with `with_key`."""
        node = stateless.MapValues(self._name("KSTREAM-MAPVALUES-", name), mapper, with_key=with_key)
        return self._with_new_values(node)

    def flat_map(
        self, mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]], *, name: str | None = None
    ) -> "KStream":
        """Replace each record by any number of records: `mapper(key, value)` returns pairs of key and value."""
        return self._rekeyed(stateless.FlatMap(self._name("KSTREAM-FLATMAP-", name), mapper))

    def flat_map_values(
        self, mapper: Callable[..., Iterable[Any]], *, with_key: bool = False, name: str | None = None
    ) -> "KStream":
        """Replace each value by those that `mapper(value)` returns, or `mapper(key, value)` with `with_key`."""
        node = stateless.FlatMapValues(self._name("KSTREAM-FLATMAPVALUES-", name), mapper, with_key=with_key)
        return self._with_new_values(node)

    def filter(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> "KStream":
        return self._same(stateless.Filter(self._name("KSTREAM-FILTER-", name), predicate))

    def filter_not(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> "KStream":
        return self._same(stateless.Filter(self._name("KSTREAM-FILTER-", name), predicate, negated=True))

    def select_key(self, mapper: Callable[[Any, Any], Any], *, name: str | None = None) -> "KStream":
        """Replace each key by `mapper(key, value)`."""
        node = self._add(stateless.SelectKey(self._name("KSTREAM-KEY-SELECT-", name), mapper))
        return self.at(node, None, self.value_serde, needs_repartition=True)

    def peek(self, action: Callable[[Any, Any], object], *, name: str | None = None) -> "KStream":
        """Call a function for each record. It is called again for the same record if a micro-batch is repeated."""
        return self._same(stateless.Peek(self._name("KSTREAM-PEEK-", name), action))

    def foreach(self, action: Callable[[Any, Any], object], *, name: str | None = None) -> None:
        """Call a function for each record, like peek(), and end the stream."""
        self._add(stateless.Peek(self._name("KSTREAM-FOREACH-", name), action))

    def split(self, *, name: str | None = None) -> "BranchedKStream[KStream]":
        """Split the stream: `split().branch(predicate, "name").default_branch("rest")` returns branches by name."""
        return BranchedKStream(self, self._name("KSTREAM-BRANCH-", name))

    def merge(self, other: "KStream", *, name: str | None = None) -> "KStream":
        """The records of both streams. Records of one stream keep their order."""
        node = PassThrough(self._name("KSTREAM-MERGE-", name))
        node.input_serdes = self._common_serdes(other)
        self.graph.add(node, [self.node, other.node])
        needs_repartition = self.needs_repartition or other.needs_repartition
        return self.at(node, *self._common_serdes(other), needs_repartition=needs_repartition)

    # --- processors ---------------------------------------------------------------------------------------------------

    def process(
        self, supplier: Callable[[], Processor], stores: Sequence[str] = (), *, name: str | None = None
    ) -> "KStream":
        """Process records with a custom Processor, which may use stores, forward records, and schedule punctuators."""
        node = ProcessorNode(self._name("KSTREAM-PROCESSOR-", name), supplier)
        self.graph.connect(node, *stores)
        return self._rekeyed(node)

    def process_values(
        self, supplier: Callable[[], Processor], stores: Sequence[str] = (), *, name: str | None = None
    ) -> "KStream":
        """Process records like process(), but without changing keys."""
        node = ProcessorNode(self._name("KSTREAM-PROCESSVALUES-", name), supplier, keeps_key=True)
        self.graph.connect(node, *stores)
        return self._with_new_values(node)

    # --- grouping -----------------------------------------------------------------------------------------------------

    def group_by(
        self,
        selector: Callable[[Any, Any], Any],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[KTable]":
        """Group records by the new key `selector(key, value)`."""
        node = self._add(stateless.SelectKey(self._name("KSTREAM-KEY-SELECT-", name, "-select"), selector))
        stream = self.at(node, key_serde, value_serde or self.value_serde, needs_repartition=True)
        return KGroupedStream(stream, name, KTable)

    def group_by_key(
        self,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream[KTable]":
        return KGroupedStream(self.with_serdes(key_serde, value_serde), name, KTable)

    def repartition(
        self,
        *,
        partitions: int | None = None,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: StreamPartitioner | None = None,
        name: str | None = None,
    ) -> "KStream":
        """Repartition records by key: with a shuffle of the query, or with a topic if a stateful step precedes. Records
        without a key are dropped."""
        if partitions is not None and partitions < 1:
            raise TopologyError(f"repartition() needs at least one partition, not {partitions}.")
        key_serde, value_serde = key_serde or self.key_serde, value_serde or self.value_serde
        step = self._name("KSTREAM-REPARTITION-", name)
        keyed = self._add(stateless.DropNullKeys(f"{step}-filter"))
        node = Repartition(
            step, key_serde=key_serde, value_serde=value_serde, partitions=partitions, partitioner=partitioner
        )
        self.graph.add(node, [keyed])
        return self.at(node, key_serde, value_serde)

    def to_table(
        self,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KTable":
        """The stream as a table: the last value of each key. A record without a value deletes its key."""
        step = self._name("KSTREAM-TOTABLE-", name)
        given = Materialized(store, key_serde, value_serde).or_serdes(self.key_serde, self.value_serde)
        spec = given.key_value_store(self.graph, "KSTREAM-TOTABLE-")
        source = self.with_serdes(given.key_serde, given.value_serde).repartitioned(step)
        graph = self.graph
        node = tables.TableSource(step, spec.name, lambda node: graph.add_store(spec, [node]), stored=store is not None)
        node.input_serdes = given.key_serde, given.value_serde
        graph.add(node, [source.node])
        return KTable(self.graph, node, given.key_serde, given.value_serde)

    # --- joins --------------------------------------------------------------------------------------------------------

    def join(
        self,
        other: "KStream | KTable | GlobalKTable",
        joiner: Callable[..., Any],
        windows: JoinWindows | None = None,
        **options: Any,
    ) -> "KStream":
        """An inner join with a stream (within `windows`), a table, or a global table (by `key_selector`).

        `joiner(value, other_value)` returns the new value; `joiner(key, value, other_value)` with `with_key=True`.
        Options: key_serde, value_serde and other_value_serde, if a store or repartitioning needs them; store_name;
        for a global table `key_selector(key, value)`; name.
        """
        return stream_joins.join(self, other, joiner, windows, kind="inner", **options)

    def left_join(
        self,
        other: "KStream | KTable | GlobalKTable",
        joiner: Callable[..., Any],
        windows: JoinWindows | None = None,
        **options: Any,
    ) -> "KStream":
        """A left join: like join(), but a record without a match is joined with None."""
        return stream_joins.join(self, other, joiner, windows, kind="left", **options)

    def outer_join(
        self, other: "KStream", joiner: Callable[..., Any], windows: JoinWindows, **options: Any
    ) -> "KStream":
        """An outer join of two streams: like join(), but a record without a match is joined with None."""
        return stream_joins.join(self, other, joiner, windows, kind="outer", **options)

    # --- to a topic ---------------------------------------------------------------------------------------------------

    def to(
        self,
        topic: str | TopicNameExtractor,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: StreamPartitioner | None = None,
        name: str | None = None,
    ) -> None:
        """Write the records to a topic, or each to the topic that `topic(key, value, record_context)` returns."""
        key_serde, value_serde = key_serde or self.key_serde, value_serde or self.value_serde
        sink = Sink(
            self._name("KSTREAM-SINK-", name),
            topic,
            key_serde=key_serde,
            value_serde=value_serde,
            partitioner=partitioner or partitioner_of(key_serde),
        )
        self._add(sink)

    # --- how streams are made from streams ----------------------------------------------------------------------------

    def _name(self, prefix: str, given: str | None, suffix: str = "") -> str:
        return self.graph.new_name(prefix, given, suffix if given is not None else "")

    def _same(self, node: Node) -> "KStream":
        self._add(node)
        return self.at(node, self.key_serde, self.value_serde, needs_repartition=self.needs_repartition)

    def _with_new_values(self, node: Node) -> "KStream":
        self._add(node)
        return self.at(node, self.key_serde, None, needs_repartition=self.needs_repartition)

    def _rekeyed(self, node: Node) -> "KStream":
        self._add(node)
        return self.at(node, needs_repartition=True)

    def _common_serdes(self, other: "KStream") -> tuple[Serde[Any] | None, Serde[Any] | None]:
        return (
            self.key_serde if self.key_serde is other.key_serde else None,
            self.value_serde if self.value_serde is other.value_serde else None,
        )


class KTable(TableHandle):
    """The last value of each key. Methods return a new table and do not change this one. With `store`, a result is kept
    in a store of that name, and is queryable."""

    def filter(
        self,
        predicate: Callable[[Any, Any], bool],
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KTable":
        """Keep the keys for which `predicate(key, value)` holds. A key whose new value does not pass is deleted."""
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
        """Replace each value by `mapper(value)`, or by `mapper(key, value)` with `with_key`."""
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
        """Replace each value by `transform(key, value)` of the ValueTransformer that `transformer()` returns. It may
        use the given stores."""
        spec = self._spec(Materialized(store, key_serde, value_serde).or_serdes(self.key_serde))
        node = TableTransformValues(
            self.graph.new_name("KTABLE-TRANSFORMVALUES-", name), self.node, transformer, _name_of(spec)
        )
        self.graph.connect(node, *stores)
        return self._derived(node, spec, value_serde)

    def to_stream(self, selector: Callable[[Any, Any], Any] | None = None, *, name: str | None = None) -> KStream:
        """The changes as records; a deletion is a record without a value. `selector(key, value)` returns new keys."""
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
        """Write the changes to a topic: to_stream().to(topic)."""
        self.to_stream().to(topic, key_serde=key_serde, value_serde=value_serde, partitioner=partitioner)

    def suppress(self, suppressed: Suppressed, *, name: str | None = None) -> "KTable":
        """Delay changes until their window closes, or for some time."""
        return suppress(self, suppressed, name)

    def group_by(
        self,
        selector: Callable[[Any, Any], tuple[Any, Any]],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KGroupedTable[KTable]":
        """Group rows by a new key: `selector(key, value)` returns the new key and value."""
        self.node.send_old_values(force=True)
        node = tables.TableSelect(self.graph.new_name("KTABLE-SELECT-", name), selector)
        self.graph.add(node, [self.node])
        return KGroupedTable(self.graph, node, key_serde, value_serde, name, KTable)

    def join(
        self,
        other: "KTable",
        joiner: Callable[..., Any],
        store: str | None = None,
        *,
        foreign_key: Callable[..., Any] | None = None,
        **options: Any,
    ) -> "KTable":
        """An inner join by key, or a foreign-key join, if `foreign_key(value)` returns the key in the other table.
        `joiner(value, other_value)` returns the new value. Options: key_serde, value_serde, name."""
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
        """A left join: like join(), but a row without a match is joined with None."""
        return self._join(other, joiner, store, foreign_key, kind="left", **options)

    def outer_join(
        self, other: "KTable", joiner: Callable[..., Any], store: str | None = None, **options: Any
    ) -> "KTable":
        """An outer join by key: like join(), but a row without a match is joined with None."""
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
        if foreign_key is not None:
            return table_joins.foreign_key_join(self, other, foreign_key, joiner, store, **options)
        return table_joins.join(self, other, joiner, store, **options)

    def _spec(self, given: Materialized) -> StoreSpec | None:
        """The store of a derived table, if the caller has named it."""
        return None if given.name is None else given.key_value_store(self.graph, "")

    def _filtered(
        self, predicate: Callable[[Any, Any], bool], given: Materialized, name: str | None, *, negated: bool
    ) -> "KTable":
        spec = self._spec(given.or_serdes(self.key_serde, self.value_serde))
        step = self.graph.new_name("KTABLE-FILTER-", name)
        node = tables.TableFilter(step, self.node, predicate, _name_of(spec), negated=negated)
        return self._derived(node, spec, given.value_serde or self.value_serde)

    def _derived(self, node: tables.TableNode, spec: StoreSpec | None, value_serde: Serde[Any] | None) -> "KTable":
        # The node receives changes. If values have no serde, a shuffle transfers changes like any other value.
        node.input_serdes = self.key_serde, None if self.value_serde is None else ChangeSerde(self.value_serde)
        self.graph.add(node, [self.node])
        if spec is not None:
            self.graph.add_store(spec, [node])
        return self.at(node, self.key_serde, value_serde)


def _name_of(spec: StoreSpec | None) -> str | None:
    return None if spec is None else spec.name
