"""All steps and stores of a program, while it is built. Names are generated as in Kafka's InternalStreamsBuilder."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from kaspar.streams.errors import NEVER_SKIPPED, ProcessingError, TopologyError
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.stores.typed import ValueAndTimestamp
from kaspar.streams.topology.context import OnError, TaskSettings
from kaspar.streams.topology.endpoints import Source
from kaspar.streams.topology.node import Node

AnyNode = TypeVar("AnyNode", bound=Node)


class GlobalTable:
    """A topic of which every task has a complete copy, in a separate store."""

    def __init__(self, source: Source, store: StoreSpec) -> None:
        self.source = source
        self.store = store

    def put(
        self,
        store: Any,
        settings: TaskSettings,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
    ) -> None:
        """Apply a record of the topic to the store. A record that cannot be deserialized is skipped or raises
        ProcessingError, according to the settings."""
        source = self.source
        try:
            read_key = settings.key_serde(source.key_serde).deserialize(topic, key)
            read_value = settings.value_serde(source.value_serde).deserialize(topic, value)
            if source.timestamp_extractor is not None:
                timestamp = source.timestamp_extractor(read_key, read_value, timestamp)
        except NEVER_SKIPPED:
            raise
        except Exception as problem:
            if settings.on_deserialization_error is OnError.CONTINUE:
                return
            raise ProcessingError(f"A record of the global table {topic} cannot be read: {problem}") from problem
        if read_key is not None:
            store.put(read_key, None if read_value is None else ValueAndTimestamp(read_value, timestamp))


class Graph:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.stores: dict[str, StoreSpec] = {}
        self.global_tables: dict[str, GlobalTable] = {}
        """The global tables by store name."""
        self._count = 0

    def new_name(self, prefix: str, given: str | None = None, suffix: str = "") -> str:
        """The name of a new step: the given one with the suffix, or one that consists of prefix, a unique number and
        suffix."""
        number = self._count
        if given is not None:
            return given + suffix
        self._count += 1
        return f"{prefix}{number:010d}{suffix}"

    def new_store_name(self, prefix: str) -> str:
        return self.new_name(f"{prefix}STATE-STORE-")

    def add(self, node: AnyNode, parents: Iterable[Node] = ()) -> AnyNode:
        if node.name in self.nodes:
            raise TopologyError(f"Two steps have the name {node.name}: give each its own name with name=.")
        self.nodes[node.name] = node
        for parent in parents:
            parent.children.append(node)
            node.parents.append(parent)
        if isinstance(node, Source):
            self._check_topics(node)
        return node

    def add_store(self, store: StoreSpec, users: Sequence[Node] = ()) -> StoreSpec:
        known = self.stores.get(store.name)
        if known is not None and known is not store:
            raise TopologyError(f"Two stores have the name {store.name}: give each its own name.")
        if store.name in self.global_tables:
            raise TopologyError(f"A global table already has the name {store.name}: rename the store.")
        self.stores[store.name] = store
        for node in users:
            self.connect(node, store.name)
        return store

    def connect(self, node: Node, *stores: str) -> None:
        """Let a step use stores. Steps that share a store are in the same sub-topology."""
        for name in stores:
            if name not in self.stores and name not in self.global_tables:
                raise TopologyError(f"Unknown store {name}: add it with add_state_store().")
            if name in self.stores and name not in node.stores:
                node.stores.append(name)

    def _check_topics(self, added: Source) -> None:
        for node in self.nodes.values():
            if node is added or not isinstance(node, Source):
                continue
            if both := set(node.topics) & set(added.topics):
                raise TopologyError(
                    f"The topic {min(both)} is read twice: read it once, and use that stream or table in both places."
                )
