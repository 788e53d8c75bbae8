"""The store of a table, as specified by the arguments of a DSL method (Kafka's Materialized)."""

from dataclasses import dataclass
from typing import Any

from kaspar.streams.serdes import Serde
from kaspar.streams.stores.kinds import TIMESTAMPED_KEY_VALUE
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.graph import Graph


@dataclass(frozen=True, slots=True)
class Materialized:
    """`name` is None if the caller has not named the store."""

    name: str | None
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None

    def or_serdes(self, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None = None) -> "Materialized":
        """These settings, with the given serdes where it has none."""
        return Materialized(self.name, self.key_serde or key_serde, self.value_serde or value_serde)

    def key_value_store(self, graph: Graph, prefix: str) -> StoreSpec:
        return StoreSpec(
            name=self.name or graph.new_store_name(prefix),
            kind=TIMESTAMPED_KEY_VALUE,
            key_serde=self.key_serde,
            value_serde=self.value_serde,
        )
