"""Topology: a complete program, divided into sub-topologies, for KafkaStreams or TopologyTestDriver."""

from collections.abc import Iterator

from kaspar.streams.errors import TopologyError
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.describe import description
from kaspar.streams.topology.endpoints import Source
from kaspar.streams.topology.graph import GlobalTable, Graph
from kaspar.streams.topology.picture import picture
from kaspar.streams.topology.plan import InternalSource, SubTopology, divide


class Topology:
    """The result of StreamsBuilder.build(). It can be pickled with cloudpickle."""

    def __init__(self, graph: Graph) -> None:
        if not any(isinstance(node, Source) for node in graph.nodes.values()) and not graph.global_tables:
            raise TopologyError("The topology reads no topic: start with stream() or table().")
        self.sub_topologies: tuple[SubTopology, ...] = divide(graph)
        self.global_tables: tuple[GlobalTable, ...] = tuple(graph.global_tables.values())

    @property
    def stores(self) -> Iterator[StoreSpec]:
        """The stores of all sub-topologies, without those of global tables."""
        for sub_topology in self.sub_topologies:
            yield from sub_topology.stores

    @property
    def source_topics(self) -> tuple[str, ...]:
        """The topics that must exist before the program starts, including those of global tables."""
        names = [
            topic
            for sub_topology in self.sub_topologies
            for source in sub_topology.sources
            if not isinstance(source, InternalSource)
            for topic in source.topics
        ]
        return tuple(names + [topic for table in self.global_tables for topic in table.source.topics])

    def describe(self) -> str:
        """The sub-topologies with their sources, processors, stores and sinks, as in Kafka's Topology.describe()."""
        return description(self.sub_topologies, self.global_tables)

    def picture(self) -> str:
        """The topology as a drawing in SVG."""
        return picture(self.sub_topologies)
