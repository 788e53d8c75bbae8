"""The declaration of a state store. It is pickled with the topology; a task opens the store by it.

What depends on the kind of a store (its typed form, the layout of its keys, the form of its changelog) is in a
StoreKind: an object that a spec refers to. Kafka's common kinds are in kinds.py; another module can have others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from kaspar.streams.errors import StreamsError
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.byte_store import ByteStore
from kaspar.streams.stores.segments import StreamTime


class StoreContext(Protocol):
    """What a store needs of its task."""

    @property
    def application_id(self) -> str: ...

    def clock(self, name: str) -> StreamTime:
        """A number that only grows and is kept from one micro-batch to the next; -1 at first."""


class ChangelogRecord(NamedTuple):
    key: bytes
    value: bytes | None
    timestamp: int | None
    """None if the entry has no time of its own: it gets that of the record that is processed."""


class StoreKind(Protocol):
    """A kind of store. Its objects are pickled with the topology, and compared."""

    def open(self, spec: "StoreSpec", store: ByteStore, context: StoreContext) -> Any:
        """The typed store over these bytes."""

    def layout(self, spec: "StoreSpec") -> str:
        """Names what the keys in the ByteStore depend on. State on disk with another layout is rebuilt."""

    def changelog_config(self, spec: "StoreSpec") -> dict[str, str]:
        """The configuration of the changelog topic."""

    def to_changelog(self, spec: "StoreSpec", key: bytes, value: bytes | None) -> ChangelogRecord:
        """The record of the changelog for an entry of the ByteStore."""

    def from_changelog(
        self, spec: "StoreSpec", key: bytes, value: bytes | None, timestamp: int
    ) -> tuple[bytes, bytes | None]:
        """The entry of the ByteStore for a record of the changelog."""

    def stream_time(self, spec: "StoreSpec", key: bytes) -> int:
        """The time to which the store's stream time advances with an entry of the ByteStore; -1 if it has none."""

    def first_live_key(self, spec: "StoreSpec", now: int) -> bytes | None:
        """The entries of the ByteStore before this key have expired at that stream time; None if there are none."""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    name: str
    kind: StoreKind
    key_serde: Serde[Any] | None = None
    """None is the default of the program, which takes its place before the store is opened."""
    value_serde: Serde[Any] | None = None
    retention_ms: int = 0
    """Of window and session stores."""
    window_size_ms: int = 0
    retain_duplicates: bool = False
    is_logged: bool = True
    """Without a changelog the state is lost with the machine, and whenever a batch is repeated elsewhere."""
    changelog_overrides: Mapping[str, str] = field(default_factory=dict)
    """Settings of the changelog topic that the program gives (Materialized.withLoggingEnabled)."""

    def open(self, store: ByteStore, context: StoreContext) -> Any:
        return self.kind.open(self, store, context)

    @property
    def serdes(self) -> tuple[Serde[Any], Serde[Any]]:
        """Of keys and of values, when the defaults have taken their places."""
        if self.key_serde is None or self.value_serde is None:
            raise StreamsError(f"store {self.name} has no serde for its keys or its values")
        return self.key_serde, self.value_serde

    def changelog_topic(self, application_id: str) -> str:
        """Kafka's name (ProcessorStateManager). Serdes are given it even if the store has no changelog."""
        return f"{application_id}-{self.name}-changelog"

    def changelog_config(self) -> dict[str, str]:
        return self.kind.changelog_config(self) | dict(self.changelog_overrides)

    def to_changelog(self, key: bytes, value: bytes | None) -> ChangelogRecord:
        return self.kind.to_changelog(self, key, value)

    def from_changelog(self, key: bytes, value: bytes | None, timestamp: int) -> tuple[bytes, bytes | None]:
        return self.kind.from_changelog(self, key, value, timestamp)

    @property
    def layout(self) -> str:
        return self.kind.layout(self)

    @property
    def clock_name(self) -> str:
        """Of the stream time that the store has observed."""
        return f"store.{self.name}"

    @property
    def sequence_name(self) -> str:
        """Of the last sequence number, where duplicates are retained."""
        return f"store.{self.name}.sequence"
