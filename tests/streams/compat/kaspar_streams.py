"""kaspar.streams: runs the topologies of topologies/ in its TopologyTestDriver."""

from collections.abc import Iterator
from typing import Any

from kaspar.streams import StreamsBuilder, TopologyTestDriver, Windowed
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.stores.time_ordered import TIME_ORDERED
from kaspar.streams.stores.typed import SessionStore
from kaspar.streams.topology.open_stores import resolved
from tests.streams.compat.generators import AdvanceWallClock, Step
from tests.streams.compat.kafka_streams import APPLICATION_ID, Job
from tests.streams.compat.results import ChangelogRow, Result, Row, StoreRow
from tests.streams.compat.topologies import definition_of


def run(job: Job) -> Result:
    builder = StreamsBuilder()
    definition_of(job.topology).build(builder)
    topology = builder.build()
    topics: dict[str, list[Row]] = {}
    with TopologyTestDriver(topology, {"application.id": APPLICATION_ID}) as driver:
        seen = 0
        for number, step in enumerate(job.steps):
            _play(driver, step)
            for topic, (key, value, timestamp, headers, _) in driver.produced[seen:]:
                topics.setdefault(topic, []).append(Row(number, key, value, timestamp, tuple(headers or ())))
            seen = len(driver.produced)
        specs = [*topology.stores, *(table.store for table in topology.global_tables)]
        named = [spec.name for spec in specs if _is_readable(spec)]
        stores = {name: [_store_row(*entry) for entry in _all(driver.store(name))] for name in named}
        changelogs = {spec.name: _changelog(driver, spec) for spec in topology.stores if spec.name in named}
    return Result(topics, stores, changelogs, topology.describe())


def _play(driver: TopologyTestDriver, step: Step) -> None:
    if isinstance(step, AdvanceWallClock):
        driver.advance_wall_clock_time(step.milliseconds)
    else:
        headers = [(name, value.encode()) for name, value in step.headers]
        driver.pipe(step.topic, _encoded(step.key), _encoded(step.value), step.timestamp, headers or None)


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _changelog(driver: TopologyTestDriver, spec: StoreSpec) -> dict[bytes, ChangelogRow]:
    """The state of a store as the records that a micro-batch writes for it."""
    spec = resolved(spec, driver.settings)
    records = [spec.to_changelog(*row) for row in driver.store(spec.name)._store.range(None, None)]
    return {record.key: ChangelogRow(record.value, record.timestamp) for record in records}


def _is_readable(store: StoreSpec) -> bool:
    """Whether the program has named it, and can read it."""
    is_named = not store.name.startswith("KSTREAM-") and "STATE-STORE-" not in store.name
    return is_named and store.kind != TIME_ORDERED


def _all(store: Any) -> Iterator[tuple[Any, Any]]:
    entries: Iterator[tuple[Any, Any]] = (
        store.fetch_range(None, None) if isinstance(store, SessionStore) else store.all()
    )
    return entries


def _store_row(key: Any, value: Any) -> StoreRow:
    value, timestamp = value if isinstance(value, tuple) else (value, None)
    if isinstance(key, Windowed):
        return StoreRow(str(key.key), str(value), timestamp, *key.window)
    return StoreRow(str(key), str(value), timestamp)
