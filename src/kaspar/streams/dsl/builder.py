"""StreamsBuilder: the entry point of the DSL."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kaspar.streams.dsl.handles import GlobalKTable
from kaspar.streams.dsl.materialized import Materialized
from kaspar.streams.dsl.streams_and_tables import KStream, KTable
from kaspar.streams.errors import TopologyError
from kaspar.streams.operators.stateless import relax_null_keys
from kaspar.streams.operators.tables import TableSource
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.endpoints import Source, TimestampExtractor
from kaspar.streams.topology.graph import GlobalTable, Graph
from kaspar.streams.topology.topology import Topology

_RESETS = ("earliest", "latest")


class StreamsBuilder:
    """Builds a topology:

        builder = StreamsBuilder()
        words = builder.stream("lines").flat_map_values(str.split)
        words.group_by(lambda key, word: word).count("counts").to_stream().to("word-counts")
        topology = builder.build()

    Serdes convert between bytes and keys or values; the default serdes are text, unless the program's settings contain
    others. `timestamp_extractor` takes (key, value, timestamp of the record) and returns the event time in
    milliseconds.
    """

    def __init__(self) -> None:
        self._graph = Graph()
        self._changelogs: dict[str, tuple[bool, dict[str, str]]] = {}

    def stream(
        self,
        topics: str | Sequence[str] | None = None,
        *,
        pattern: str | None = None,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        name: str | None = None,
    ) -> KStream:
        """The records of one or several topics, or of all topics whose names match a pattern."""
        names = [topics] if isinstance(topics, str) else list(topics or ())
        if bool(names) is (pattern is not None):
            raise TopologyError("stream() needs either the names of topics or a pattern.")
        _check_reset(offset_reset)
        source = self._graph.add(
            Source(
                self._graph.new_name("KSTREAM-SOURCE-", name),
                names,
                pattern=pattern,
                key_serde=key_serde,
                value_serde=value_serde,
                timestamp_extractor=timestamp_extractor,
                offset_reset=offset_reset,
            )
        )
        return KStream(self._graph, source, key_serde, value_serde)

    def table(
        self,
        topic: str,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """A topic as a table: the last value of each key. A record without a value deletes its key."""
        _check_reset(offset_reset)
        graph = self._graph
        spec = Materialized(store, key_serde, value_serde).key_value_store(graph, f"{topic}-")
        source_name = graph.new_name("KSTREAM-SOURCE-", name, "" if name is None else "-source")
        source = graph.add(
            Source(
                source_name,
                [topic],
                key_serde=key_serde,
                value_serde=value_serde,
                timestamp_extractor=timestamp_extractor,
                offset_reset=offset_reset,
            )
        )
        table = TableSource(
            graph.new_name("KTABLE-SOURCE-", name),
            spec.name,
            lambda node: graph.add_store(spec, [node]),
            stored=store is not None,
        )
        table.input_serdes = key_serde, value_serde
        graph.add(table, [source])
        return KTable(graph, table, key_serde, value_serde)

    def global_table(
        self,
        topic: str,
        store: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        name: str | None = None,
    ) -> GlobalKTable:
        """A topic as a table of which every task has a complete copy, for joins by any key."""
        graph = self._graph
        spec = Materialized(store, key_serde, value_serde).key_value_store(graph, f"{topic}-")
        if spec.name in graph.stores or spec.name in graph.global_tables:
            raise TopologyError(f"Two stores have the name {spec.name}: give each its own name.")
        source = Source(
            graph.new_name("KSTREAM-SOURCE-", name),
            [topic],
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
        )
        graph.global_tables[spec.name] = GlobalTable(source, spec)
        return GlobalKTable(spec.name, topic)

    def add_state_store(self, store: StoreSpec) -> "StreamsBuilder":
        """Add a store that process() and process_values() refer to by name. See kaspar.streams.stores."""
        self._graph.add_store(store)
        return self

    def changelog(
        self, store: str, config: Mapping[str, str] | None = None, *, enabled: bool = True
    ) -> "StreamsBuilder":
        """Set the configuration with which a store's changelog topic is created, or disable the changelog
        (withLoggingEnabled and withLoggingDisabled of Kafka's Materialized). Without a changelog, the store's contents
        are lost if the machine is lost."""
        if config and not enabled:
            raise TopologyError(f"The store {store} is to have no changelog, which therefore has no configuration.")
        self._changelogs[store] = enabled, dict(config or {})
        return self

    def build(self) -> Topology:
        """Build the topology. Raises TopologyError if it is invalid."""
        stores = self._graph.stores
        for name, (enabled, config) in self._changelogs.items():
            if name not in stores:
                raise TopologyError(f"changelog() names the store {name}, and there is none of that name with one.")
            stores[name] = replace(stores[name], is_logged=enabled, changelog_overrides=config)
        relax_null_keys(self._graph.nodes.values())
        return Topology(self._graph)


def _check_reset(offset_reset: str | None) -> None:
    if offset_reset is not None and offset_reset not in _RESETS:
        raise TopologyError(f"offset_reset must be {' or '.join(_RESETS)}, not {offset_reset!r}.")
