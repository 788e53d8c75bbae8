"""KStream: a stream of records, each of which stands for itself."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kaspar.streams.dsl.materialized import Materialized
from kaspar.streams.errors import TopologyError
from kaspar.streams.operators import stateless
from kaspar.streams.operators.processors import Processor, ProcessorNode
from kaspar.streams.operators.tables import TableSource
from kaspar.streams.operators.windowed_keys import partitioner_of
from kaspar.streams.serdes import Serde
from kaspar.streams.topology.endpoints import Repartition, Sink, StreamPartitioner, TopicNameExtractor
from kaspar.streams.topology.graph import Graph
from kaspar.streams.topology.node import Node, PassThrough

if TYPE_CHECKING:
    from kaspar.streams.dsl.grouped import KGroupedStream
    from kaspar.streams.dsl.ktable import GlobalKTable, KTable
    from kaspar.streams.windows import JoinWindows


class KStream:
    """Methods return another stream and leave this one as it is. Every method takes `name=`, the name of its step.

    An operation that may change the key marks the stream: before the next grouping or join its records are brought to
    the task of their new key.
    """

    def __init__(
        self,
        graph: Graph,
        node: Node,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        needs_repartition: bool = False,
    ) -> None:
        self.graph = graph
        self.node = node
        self.key_serde = key_serde
        self.value_serde = value_serde
        self.needs_repartition = needs_repartition

    # --- one record at a time -----------------------------------------------------------------------------------------

    def map(self, mapper: Callable[[Any, Any], tuple[Any, Any]], *, name: str | None = None) -> "KStream":
        """`mapper(key, value)` returns the new key and value."""
        return self._rekeyed(stateless.Map(self._name("KSTREAM-MAP-", name), mapper))

    def map_values(self, mapper: Callable[..., Any], *, with_key: bool = False, name: str | None = None) -> "KStream":
        """`mapper(value)`, or `mapper(key, value)` with `with_key`."""
        node = stateless.MapValues(self._name("KSTREAM-MAPVALUES-", name), mapper, with_key=with_key)
        return self._with_new_values(node)

    def flat_map(
        self, mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]], *, name: str | None = None
    ) -> "KStream":
        """`mapper(key, value)` returns any number of pairs of key and value."""
        return self._rekeyed(stateless.FlatMap(self._name("KSTREAM-FLATMAP-", name), mapper))

    def flat_map_values(
        self, mapper: Callable[..., Iterable[Any]], *, with_key: bool = False, name: str | None = None
    ) -> "KStream":
        """`mapper(value)`, or `mapper(key, value)` with `with_key`, returns any number of values."""
        node = stateless.FlatMapValues(self._name("KSTREAM-FLATMAPVALUES-", name), mapper, with_key=with_key)
        return self._with_new_values(node)

    def filter(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> "KStream":
        return self._same(stateless.Filter(self._name("KSTREAM-FILTER-", name), predicate))

    def filter_not(self, predicate: Callable[[Any, Any], bool], *, name: str | None = None) -> "KStream":
        return self._same(stateless.Filter(self._name("KSTREAM-FILTER-", name), predicate, negated=True))

    def select_key(self, mapper: Callable[[Any, Any], Any], *, name: str | None = None) -> "KStream":
        """`mapper(key, value)` returns the new key."""
        node = self._add(stateless.SelectKey(self._name("KSTREAM-KEY-SELECT-", name), mapper))
        return KStream(self.graph, node, None, self.value_serde, needs_repartition=True)

    def peek(self, action: Callable[[Any, Any], object], *, name: str | None = None) -> "KStream":
        """Call a function for each record. It may be called again if a micro-batch is repeated."""
        return self._same(stateless.Peek(self._name("KSTREAM-PEEK-", name), action))

    def foreach(self, action: Callable[[Any, Any], object], *, name: str | None = None) -> None:
        """As peek, at the end of a stream."""
        self._add(stateless.Peek(self._name("KSTREAM-FOREACH-", name), action))

    def split(self, *, name: str | None = None) -> "BranchedKStream":
        """Divide the stream: `split().branch(predicate, "name").default_branch("rest")` returns branches by name."""
        return BranchedKStream(self, self._name("KSTREAM-BRANCH-", name))

    def merge(self, other: "KStream", *, name: str | None = None) -> "KStream":
        """The records of both. Records of one stream keep their order."""
        node = PassThrough(self._name("KSTREAM-MERGE-", name))
        node.input_serdes = self._common_serdes(other)
        self.graph.add(node, [self.node, other.node])
        needs_repartition = self.needs_repartition or other.needs_repartition
        return KStream(self.graph, node, *self._common_serdes(other), needs_repartition=needs_repartition)

    # --- processors ---------------------------------------------------------------------------------------------------

    def process(
        self, supplier: Callable[[], "Processor"], stores: Sequence[str] = (), *, name: str | None = None
    ) -> "KStream":
        """Process records with an object of one's own, which may use stores, forward records, and schedule."""
        node = ProcessorNode(self._name("KSTREAM-PROCESSOR-", name), supplier)
        self.graph.connect(node, *stores)
        return self._rekeyed(node)

    def process_values(
        self, supplier: Callable[[], "Processor"], stores: Sequence[str] = (), *, name: str | None = None
    ) -> "KStream":
        """As process, with keys that stay as they are."""
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
    ) -> "KGroupedStream":
        """Group records by a new key: `selector(key, value)`."""
        from kaspar.streams.dsl.grouped import KGroupedStream

        node = self._add(stateless.SelectKey(self._name("KSTREAM-KEY-SELECT-", name, "-select"), selector))
        stream = KStream(self.graph, node, key_serde, value_serde or self.value_serde, needs_repartition=True)
        return KGroupedStream(stream, name)

    def group_by_key(
        self,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KGroupedStream":
        from kaspar.streams.dsl.grouped import KGroupedStream

        stream = KStream(
            self.graph,
            self.node,
            key_serde or self.key_serde,
            value_serde or self.value_serde,
            needs_repartition=self.needs_repartition,
        )
        return KGroupedStream(stream, name)

    def repartition(
        self,
        *,
        partitions: int | None = None,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: StreamPartitioner | None = None,
        name: str | None = None,
    ) -> "KStream":
        """Bring records to the task of their key: a shuffle of the query, or a topic if there is state before it.
        Records without a key are dropped."""
        if partitions is not None and partitions < 1:
            raise TopologyError(f"repartition() needs at least one partition, not {partitions}.")
        key_serde, value_serde = key_serde or self.key_serde, value_serde or self.value_serde
        step = self._name("KSTREAM-REPARTITION-", name)
        keyed = self._add(stateless.DropNullKeys(f"{step}-filter"))
        node = Repartition(
            step, key_serde=key_serde, value_serde=value_serde, partitions=partitions, partitioner=partitioner
        )
        self.graph.add(node, [keyed])
        return KStream(self.graph, node, key_serde, value_serde)

    def repartitioned(self, base_name: str, *, drop_null_keys: bool = False) -> "KStream":
        """This stream with each record at the task of its key: itself, unless an operation has changed keys."""
        if not self.needs_repartition:
            return self
        node = self.node
        if drop_null_keys:
            node = self._add(stateless.DropNullKeys(f"{base_name}-repartition-filter"))
        name = f"{base_name}-repartition"
        repartition = Repartition(name, key_serde=self.key_serde, value_serde=self.value_serde)
        self.graph.add(repartition, [node])
        return KStream(self.graph, repartition, self.key_serde, self.value_serde)

    def to_table(
        self,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KTable":
        """The last value of each key; a record without value deletes its key."""
        from kaspar.streams.dsl.ktable import KTable

        step = self._name("KSTREAM-TOTABLE-", name)
        given = Materialized(store, key_serde, value_serde).or_serdes(self.key_serde, self.value_serde)
        spec = given.key_value_store(self.graph, "KSTREAM-TOTABLE-")
        source = KStream(
            self.graph, self.node, given.key_serde, given.value_serde, needs_repartition=self.needs_repartition
        ).repartitioned(step)
        graph = self.graph
        node = TableSource(step, spec.name, lambda node: graph.add_store(spec, [node]), stored=store is not None)
        node.input_serdes = given.key_serde, given.value_serde
        graph.add(node, [source.node])
        return KTable(self.graph, node, given.key_serde, given.value_serde)

    # --- joins --------------------------------------------------------------------------------------------------------

    def join(
        self,
        other: "KStream | KTable | GlobalKTable",
        joiner: Callable[..., Any],
        windows: "JoinWindows | None" = None,
        **options: Any,
    ) -> "KStream":
        """An inner join with a stream (within `windows`), a table, or a global table (by `key_selector`).

        `joiner(value, other_value)` returns the new value; `joiner(key, value, other_value)` with `with_key=True`.
        Options: key_serde, value_serde and other_value_serde, where a store or re-partitioning needs them; store_name;
        for a global table `key_selector(key, value)`; name.
        """
        from kaspar.streams.dsl.stream_joins import join

        return join(self, other, joiner, windows, kind="inner", **options)

    def left_join(
        self,
        other: "KStream | KTable | GlobalKTable",
        joiner: Callable[..., Any],
        windows: "JoinWindows | None" = None,
        **options: Any,
    ) -> "KStream":
        """As join, with None for the other value where there is none."""
        from kaspar.streams.dsl.stream_joins import join

        return join(self, other, joiner, windows, kind="left", **options)

    def outer_join(
        self, other: "KStream", joiner: Callable[..., Any], windows: "JoinWindows", **options: Any
    ) -> "KStream":
        """As join of two streams, with None for either value where there is none."""
        from kaspar.streams.dsl.stream_joins import join

        return join(self, other, joiner, windows, kind="outer", **options)

    # --- to a topic ---------------------------------------------------------------------------------------------------

    def to(
        self,
        topic: "str | TopicNameExtractor",
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: StreamPartitioner | None = None,
        name: str | None = None,
    ) -> None:
        """Write the records to a topic, or to the one that `topic(key, value, record_context)` names for each."""
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

    def _add(self, node: Node) -> Node:
        node.input_serdes = self.key_serde, self.value_serde
        return self.graph.add(node, [self.node])

    def _same(self, node: Node) -> "KStream":
        self._add(node)
        return KStream(self.graph, node, self.key_serde, self.value_serde, needs_repartition=self.needs_repartition)

    def _with_new_values(self, node: Node) -> "KStream":
        self._add(node)
        return KStream(self.graph, node, self.key_serde, None, needs_repartition=self.needs_repartition)

    def _rekeyed(self, node: Node) -> "KStream":
        self._add(node)
        return KStream(self.graph, node, needs_repartition=True)

    def _common_serdes(self, other: "KStream") -> tuple[Serde[Any] | None, Serde[Any] | None]:
        return (
            self.key_serde if self.key_serde is other.key_serde else None,
            self.value_serde if self.value_serde is other.value_serde else None,
        )


class BranchedKStream:
    """The branches of a split stream, in the order in which their predicates are tried."""

    def __init__(self, stream: KStream, name: str) -> None:
        self._stream = stream
        self._name = name
        self._node = stateless.Branch(name)
        self._branches: dict[str, KStream] = {}
        stream._add(self._node)

    def branch(
        self,
        predicate: Callable[[Any, Any], bool],
        name: str | None = None,
        *,
        consumer: Callable[[KStream], object] | None = None,
        chain: Callable[[KStream], KStream] | None = None,
    ) -> "BranchedKStream":
        """Records for which `predicate(key, value)` holds, and none before it. `chain` is applied to the branch;
        `consumer` takes it, and then it is not among the results."""
        self._add(predicate, name or str(len(self._node.predicates) + 1), consumer, chain)
        return self

    def default_branch(
        self,
        name: str | None = None,
        *,
        consumer: Callable[[KStream], object] | None = None,
        chain: Callable[[KStream], KStream] | None = None,
    ) -> dict[str, KStream]:
        """All other records. Returns the branches by their names."""
        self._add(lambda key, value: True, name or "0", consumer, chain)
        return self._branches

    def no_default_branch(self) -> dict[str, KStream]:
        """Drop all other records. Returns the branches by their names."""
        return self._branches

    def _add(
        self,
        predicate: Callable[[Any, Any], bool],
        name: str,
        consumer: Callable[[KStream], object] | None,
        chain: Callable[[KStream], KStream] | None,
    ) -> None:
        stream = self._stream
        node = PassThrough(f"{self._name}-{name}")
        node.input_serdes = stream.key_serde, stream.value_serde
        stream.graph.add(node, [self._node])
        self._node.predicates.append(predicate)
        branch = KStream(
            stream.graph, node, stream.key_serde, stream.value_serde, needs_repartition=stream.needs_repartition
        )
        if consumer is not None:
            consumer(branch)
        else:
            self._branches[name] = branch if chain is None else chain(branch)
