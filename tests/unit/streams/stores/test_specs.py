"""The declaration of stores: what is opened, the changelog's form and configuration."""

import pickle

import pytest

from kaspar.streams import serdes
from kaspar.streams.errors import StreamsError, TopologyError
from kaspar.streams.stores import kinds
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.key_schema import session_key, window_key
from kaspar.streams.stores.spec import ChangelogRecord, StoreKind, StoreSpec
from kaspar.streams.stores.typed import (
    KeyValueStore,
    ReadOnlyKeyValueStore,
    ReadOnlyTimestampedKeyValueStore,
    SessionStore,
    TimestampedKeyValueStore,
    TimestampedWindowStore,
    WindowStore,
)
from kaspar.streams.windows import Window, Windowed
from tests.unit.streams.stores.store_task import StoreTask

ALL_KINDS = [kinds.KEY_VALUE, kinds.TIMESTAMPED_KEY_VALUE, kinds.WINDOW, kinds.TIMESTAMPED_WINDOW, kinds.SESSION]


def spec(kind: StoreKind, *, retain_duplicates: bool = False, retention_ms: int = 240_000) -> StoreSpec:
    return StoreSpec(
        "counts",
        kind,
        serdes.text(),
        serdes.text(),
        retention_ms=retention_ms,
        window_size_ms=10,
        retain_duplicates=retain_duplicates,
    )


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_spec_is_pickled(kind: StoreKind) -> None:
    assert pickle.loads(pickle.dumps(spec(kind))) == spec(kind)


def test_a_store_without_serdes_is_not_opened() -> None:
    with pytest.raises(StreamsError, match="store s has no serde"):
        StoreSpec("s", kinds.KEY_VALUE, key_serde=serdes.text()).open(OverlayStore(None), StoreTask())


def test_a_changelog_has_kafkas_name() -> None:
    assert spec(kinds.KEY_VALUE).changelog_topic("app") == "app-counts-changelog"


def test_each_kind_opens_its_typed_store() -> None:
    types = [type(spec(kind).open(OverlayStore(None), StoreTask())) for kind in ALL_KINDS]
    assert types == [KeyValueStore, TimestampedKeyValueStore, WindowStore, TimestampedWindowStore, SessionStore]


def test_key_value_changelogs_are_compacted_and_windowed_ones_also_expire() -> None:
    compacted = {"message.timestamp.type": "CreateTime", "cleanup.policy": "compact"}
    assert spec(kinds.TIMESTAMPED_KEY_VALUE).changelog_config() == compacted
    windowed = {
        "message.timestamp.type": "CreateTime",
        "cleanup.policy": "compact,delete",
        "retention.ms": str(240_000 + 86_400_000),
    }
    for kind in (kinds.WINDOW, kinds.TIMESTAMPED_WINDOW, kinds.SESSION):
        assert spec(kind).changelog_config() == windowed
    longest = spec(kinds.SESSION, retention_ms=(1 << 63) - 1)
    assert longest.changelog_config()["retention.ms"] == str((1 << 63) - 1)


def test_the_programs_settings_of_a_changelog_win() -> None:
    declared = StoreSpec(
        "s", kinds.KEY_VALUE, serdes.text(), serdes.text(), changelog_overrides={"segment.bytes": "1", "x": "y"}
    )
    assert declared.changelog_config() == {**kinds.COMPACTED, "segment.bytes": "1", "x": "y"}


def test_a_timestamped_value_has_its_timestamp_in_the_record() -> None:
    declared = spec(kinds.TIMESTAMPED_KEY_VALUE)
    inner = OverlayStore(None)
    store = declared.open(inner, StoreTask())
    store.put("a", ("v", 12))
    store.flush()
    [(key, value)] = inner.changes.items()
    assert declared.to_changelog(key, value) == (b"a", b"v", 12)
    assert declared.from_changelog(b"a", b"v", 12) == (key, value)


def test_plain_values_and_tombstones_have_no_time_of_their_own() -> None:
    assert spec(kinds.KEY_VALUE).to_changelog(b"a", b"v") == (b"a", b"v", None)
    assert spec(kinds.KEY_VALUE).from_changelog(b"a", b"v", 5) == (b"a", b"v")
    for kind in ALL_KINDS[:2]:
        assert spec(kind).to_changelog(b"a", None) == (b"a", None, None)
        assert spec(kind).from_changelog(b"a", None, 5) == (b"a", None)


@pytest.mark.parametrize("retain_duplicates", [False, True])
def test_a_window_changelog_has_keys_without_segments(retain_duplicates: bool) -> None:
    for kind, value, timestamp in ((kinds.WINDOW, "v", None), (kinds.TIMESTAMPED_WINDOW, ("v", 7), 7)):
        declared = spec(kind, retain_duplicates=retain_duplicates)
        inner = OverlayStore(None)
        declared.open(inner, StoreTask()).put("a", value, 130_000)
        [(store_key, stored)] = inner.changes.items()
        record = declared.to_changelog(store_key, stored)
        assert record == ChangelogRecord(window_key(b"a", 130_000, 1 if retain_duplicates else 0), b"v", timestamp)
        assert declared.from_changelog(record.key, record.value, 7) == (store_key, stored)
        assert declared.from_changelog(record.key, None, 7) == (store_key, None)


def test_a_session_changelog_has_keys_without_segments() -> None:
    declared = spec(kinds.SESSION)
    inner = OverlayStore(None)
    declared.open(inner, StoreTask()).put(Windowed("a", Window(5, 130_000)), "v")
    [(store_key, stored)] = inner.changes.items()
    record = declared.to_changelog(store_key, stored)
    assert record == ChangelogRecord(session_key(b"a", 5, 130_000), b"v", None)
    assert declared.from_changelog(record.key, record.value, 7) == (store_key, stored)


def test_stream_time_and_expiry_follow_from_the_keys() -> None:
    window = spec(kinds.WINDOW).from_changelog(window_key(b"a", 130_000), b"v", 0)[0]
    session = spec(kinds.SESSION).from_changelog(session_key(b"a", 5, 130_000), b"v", 0)[0]
    assert kinds.WINDOW.stream_time(spec(kinds.WINDOW), window) == 130_000
    assert kinds.SESSION.stream_time(spec(kinds.SESSION), session) == 130_000
    assert kinds.KEY_VALUE.stream_time(spec(kinds.KEY_VALUE), b"a") == -1
    for kind in (kinds.WINDOW, kinds.SESSION):
        assert kind.first_live_key(spec(kind), 240_000 + 119_999) is None
        assert kind.first_live_key(spec(kind), 240_000 + 120_000) == bytes(7) + b"\x01"
    assert kinds.KEY_VALUE.first_live_key(spec(kinds.KEY_VALUE), 1 << 60) is None


def test_another_segment_interval_is_another_layout() -> None:
    for kind in (kinds.WINDOW, kinds.TIMESTAMPED_WINDOW, kinds.SESSION):
        assert spec(kind).layout != spec(kind, retention_ms=600_000).layout
        assert spec(kind, retention_ms=1).layout == spec(kind, retention_ms=2).layout
    assert len({spec(kind).layout for kind in ALL_KINDS}) == len(ALL_KINDS)


def test_stores_keep_their_times_apart() -> None:
    task = StoreTask()
    spec(kinds.WINDOW, retain_duplicates=True).open(OverlayStore(None), task).put("a", "v", 5)
    assert task.meta() == {"store.counts": 5, "store.counts.sequence": 1}


def test_a_key_value_store_has_a_read_only_view() -> None:
    inner = OverlayStore(None)
    assert type(kinds.open_read_only(spec(kinds.KEY_VALUE), inner, "app")) is ReadOnlyKeyValueStore
    view = kinds.open_read_only(spec(kinds.TIMESTAMPED_KEY_VALUE), inner, "app")
    assert type(view) is ReadOnlyTimestampedKeyValueStore
    with pytest.raises(TopologyError, match="counts"):
        kinds.open_read_only(spec(kinds.SESSION), inner, "app")
