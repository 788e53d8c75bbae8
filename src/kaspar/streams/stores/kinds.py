"""Kafka's common kinds of store, and their changelogs, which Java can read.

A changelog contains plain values. The timestamp of a timestamped value is that of the record. Window and session keys
have no segment prefix there.
"""

from dataclasses import dataclass
from typing import Any

from kaspar.streams.errors import TopologyError
from kaspar.streams.stores.byte_store import ByteStore, Snapshot
from kaspar.streams.stores.key_schema import MAX_TIME, session_end, window_start
from kaspar.streams.stores.segments import (
    SEGMENT_PREFIX_SIZE,
    first_live_prefix,
    segment_interval_ms,
    segment_prefix,
)
from kaspar.streams.stores.spec import ChangelogRecord, StoreContext, StoreKind, StoreSpec
from kaspar.streams.stores.typed import (
    KeyValueStore,
    ReadOnlyKeyValueStore,
    ReadOnlyTimestampedKeyValueStore,
    SessionStore,
    TimestampedKeyValueStore,
    TimestampedWindowStore,
    WindowStore,
)
from kaspar.streams.stores.typed.values import TIMESTAMP_SIZE, read_timestamp, write_timestamp

ADDITIONAL_RETENTION_MS = 24 * 60 * 60 * 1000
"""Kafka's windowstore.changelog.additional.retention.ms."""

_CREATE_TIME = {"message.timestamp.type": "CreateTime"}
COMPACTED = {**_CREATE_TIME, "cleanup.policy": "compact"}
"""The configuration of a changelog that keeps the last record of every key."""


@dataclass(frozen=True, slots=True)
class _KeyValue:
    is_timestamped: bool

    def open(self, spec: StoreSpec, store: ByteStore, context: StoreContext) -> Any:
        topic = spec.changelog_topic(context.application_id)
        typed = TimestampedKeyValueStore if self.is_timestamped else KeyValueStore
        return typed(spec.name, store, topic, *spec.serdes)

    def layout(self, spec: StoreSpec) -> str:
        return "timestamped" if self.is_timestamped else "plain"

    def changelog_config(self, spec: StoreSpec) -> dict[str, str]:
        return dict(COMPACTED)

    def to_changelog(self, spec: StoreSpec, key: bytes, value: bytes | None) -> ChangelogRecord:
        return _record(key, value, self.is_timestamped)

    def from_changelog(
        self, spec: StoreSpec, key: bytes, value: bytes | None, timestamp: int
    ) -> tuple[bytes, bytes | None]:
        return key, _stored(value, timestamp, self.is_timestamped)

    def stream_time(self, spec: StoreSpec, key: bytes) -> int:
        return -1

    def first_live_key(self, spec: StoreSpec, now: int) -> bytes | None:
        return None


@dataclass(frozen=True, slots=True)
class _Window:
    is_timestamped: bool

    def open(self, spec: StoreSpec, store: ByteStore, context: StoreContext) -> Any:
        typed = TimestampedWindowStore if self.is_timestamped else WindowStore
        return typed(
            spec.name,
            store,
            spec.changelog_topic(context.application_id),
            *spec.serdes,
            retention_ms=spec.retention_ms,
            window_size_ms=spec.window_size_ms,
            time=context.clock(spec.clock_name),
            sequence=context.clock(spec.sequence_name) if spec.retain_duplicates else None,
        )

    def layout(self, spec: StoreSpec) -> str:
        kind = "timestamped-window" if self.is_timestamped else "window"
        return f"{kind}/{segment_interval_ms(spec.retention_ms)}"

    def changelog_config(self, spec: StoreSpec) -> dict[str, str]:
        return _windowed_config(spec)

    def to_changelog(self, spec: StoreSpec, key: bytes, value: bytes | None) -> ChangelogRecord:
        return _record(key[SEGMENT_PREFIX_SIZE:], value, self.is_timestamped)

    def from_changelog(
        self, spec: StoreSpec, key: bytes, value: bytes | None, timestamp: int
    ) -> tuple[bytes, bytes | None]:
        return _in_segment(spec, key, window_start(key)), _stored(value, timestamp, self.is_timestamped)

    def stream_time(self, spec: StoreSpec, key: bytes) -> int:
        return window_start(key)

    def first_live_key(self, spec: StoreSpec, now: int) -> bytes | None:
        return first_live_prefix(spec.retention_ms, now)


@dataclass(frozen=True, slots=True)
class _Session:
    def open(self, spec: StoreSpec, store: ByteStore, context: StoreContext) -> Any:
        return SessionStore(
            spec.name,
            store,
            spec.changelog_topic(context.application_id),
            *spec.serdes,
            retention_ms=spec.retention_ms,
            time=context.clock(spec.clock_name),
        )

    def layout(self, spec: StoreSpec) -> str:
        return f"session/{segment_interval_ms(spec.retention_ms)}"

    def changelog_config(self, spec: StoreSpec) -> dict[str, str]:
        return _windowed_config(spec)

    def to_changelog(self, spec: StoreSpec, key: bytes, value: bytes | None) -> ChangelogRecord:
        return ChangelogRecord(key[SEGMENT_PREFIX_SIZE:], value, None)

    def from_changelog(
        self, spec: StoreSpec, key: bytes, value: bytes | None, timestamp: int
    ) -> tuple[bytes, bytes | None]:
        return _in_segment(spec, key, session_end(key)), value

    def stream_time(self, spec: StoreSpec, key: bytes) -> int:
        return session_end(key)

    def first_live_key(self, spec: StoreSpec, now: int) -> bytes | None:
        return first_live_prefix(spec.retention_ms, now)


KEY_VALUE: StoreKind = _KeyValue(is_timestamped=False)
TIMESTAMPED_KEY_VALUE: StoreKind = _KeyValue(is_timestamped=True)
WINDOW: StoreKind = _Window(is_timestamped=False)
TIMESTAMPED_WINDOW: StoreKind = _Window(is_timestamped=True)
SESSION: StoreKind = _Session()


def open_read_only(
    spec: StoreSpec, snapshot: Snapshot, application_id: str
) -> ReadOnlyKeyValueStore[Any, Any] | ReadOnlyTimestampedKeyValueStore[Any, Any]:
    """A read-only view of a key-value store, such as a task's view of a global table."""
    if spec.kind not in (KEY_VALUE, TIMESTAMPED_KEY_VALUE):
        raise TopologyError(f"store {spec.name} is not a key-value store: only key-value stores have read-only views")
    topic = spec.changelog_topic(application_id)
    if spec.kind == TIMESTAMPED_KEY_VALUE:
        return ReadOnlyTimestampedKeyValueStore(spec.name, snapshot, topic, *spec.serdes)
    return ReadOnlyKeyValueStore(spec.name, snapshot, topic, *spec.serdes)


def _windowed_config(spec: StoreSpec) -> dict[str, str]:
    """The configuration of Kafka's WindowedChangelogTopicConfig."""
    retention_ms = min(spec.retention_ms + ADDITIONAL_RETENTION_MS, MAX_TIME)
    return {**_CREATE_TIME, "cleanup.policy": "compact,delete", "retention.ms": str(retention_ms)}


def _in_segment(spec: StoreSpec, key: bytes, time: int) -> bytes:
    return segment_prefix(time // segment_interval_ms(spec.retention_ms)) + key


def _record(key: bytes, value: bytes | None, is_timestamped: bool) -> ChangelogRecord:
    if value is None or not is_timestamped:
        return ChangelogRecord(key, value, None)
    return ChangelogRecord(key, value[TIMESTAMP_SIZE:], read_timestamp(value)[0])


def _stored(value: bytes | None, timestamp: int, is_timestamped: bool) -> bytes | None:
    return value if value is None or not is_timestamped else write_timestamp(timestamp) + value
