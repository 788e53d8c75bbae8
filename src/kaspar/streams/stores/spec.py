"""The specification of a state store. It is pickled with the topology, and a task opens the store with it.

Everything that depends on the kind of a store (its typed store, the layout of its keys, the format of its changelog) is
in a StoreKind, which the spec refers to. Kafka's common kinds are in kinds.py; other modules can define others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from kaspar.streams.errors import StreamsError
from kaspar.streams.serdes import Serde
from kaspar.streams.stores.byte_store import ByteStore
from kaspar.streams.stores.segments import StreamTime


class StoreContext(Protocol):
    """The parts of a task that a store needs."""

    @property
    def application_id(self) -> str: ...

    def clock(self, name: str) -> StreamTime:
        """A number that only increases and is kept between micro-batches; initially -1."""


class ChangelogRecord(NamedTuple):
    key: bytes
    value: bytes | None
    timestamp: int | None
    """None if the entry has no timestamp: the record gets the stream time of the task."""


class StoreKind(Protocol):
    """A kind of store. Instances are pickled with the topology, and compared."""

    def open(self, spec: "StoreSpec", store: ByteStore, context: StoreContext) -> Any:
        """Open the typed store over a ByteStore."""

    def layout(self, spec: "StoreSpec") -> str:
        """A name of the layout of keys in the ByteStore. State on disk with another layout is rebuilt."""

    def changelog_config(self, spec: "StoreSpec") -> dict[str, str]:
        """The configuration of the changelog topic."""

    def to_changelog(self, spec: "StoreSpec", key: bytes, value: bytes | None) -> ChangelogRecord:
        """Convert an entry of the ByteStore to a changelog record."""

    def from_changelog(
        self, spec: "StoreSpec", key: bytes, value: bytes | None, timestamp: int
    ) -> tuple[bytes, bytes | None]:
        """Convert a changelog record to an entry of the ByteStore."""

    def stream_time(self, spec: "StoreSpec", key: bytes) -> int:
        """The time to which an entry of the ByteStore advances the store's stream time; -1 if the kind has none."""

    def first_live_key(self, spec: "StoreSpec", now: int) -> bytes | None:
        """The first key of the ByteStore that is not expired at stream time `now`; None if nothing is expired."""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    name: str
    kind: StoreKind
    key_serde: Serde[Any] | None = None
    """None means the program's default, which replaces it before the store is opened."""
    value_serde: Serde[Any] | None = None
    retention_ms: int = 0
    """For window and session stores."""
    window_size_ms: int = 0
    retain_duplicates: bool = False
    is_logged: bool = True
    """Without a changelog, the state is lost with the machine, and whenever a batch is repeated on another one."""
    changelog_overrides: Mapping[str, str] = field(default_factory=dict)
    """The program's settings of the changelog topic (Materialized.withLoggingEnabled)."""

    def open(self, store: ByteStore, context: StoreContext) -> Any:
        return self.kind.open(self, store, context)

    @property
    def serdes(self) -> tuple[Serde[Any], Serde[Any]]:
        """The serdes of keys and values, after the defaults were filled in."""
        if self.key_serde is None or self.value_serde is None:
            raise StreamsError(f"store {self.name} has no serde for its keys or its values")
        return self.key_serde, self.value_serde

    def changelog_topic(self, application_id: str) -> str:
        """The name as in Kafka (ProcessorStateManager). It is passed to serdes even if the store has no changelog."""
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
        """The name of the stream time that the store has observed."""
        return f"store.{self.name}"

    @property
    def sequence_name(self) -> str:
        """The name of the last sequence number, if duplicates are retained."""
        return f"store.{self.name}.sequence"
