"""The topic of a global table, read as a changelog."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from kaspar.records import Record as Stored
from kaspar.serialization.errors import RegistryUnavailable
from kaspar.streams import Processor, Record, StreamsBuilder, serdes
from kaspar.streams.running.changelog_clients import LazyReader
from kaspar.streams.running.global_tables import CheckedReader
from kaspar.streams.topology.context import OnError, TaskSettings


class Topic:
    """A reader of one partition."""

    def __init__(self, *values: bytes) -> None:
        self._records = [
            Stored(offset=offset, timestamp=5, key=b"k", value=value, headers=()) for offset, value in enumerate(values)
        ]

    def read(self, store: str, partition: int, from_offset: int, to_offset: int) -> Iterator[Sequence[Stored]]:
        yield self._records[from_offset:to_offset]


def read(topic: Topic, value_serde: Any) -> list[int]:
    """The offsets of the records that the table gets."""
    builder = StreamsBuilder()
    table = builder.global_table("rates", value_serde=value_serde)
    builder.stream("in").join(table, lambda value, rate: rate, key_selector=lambda key, value: key).to("out")
    (plan,) = builder.build().sub_topologies
    settings = TaskSettings("app", on_deserialization_error=OnError.CONTINUE)
    reader = CheckedReader(cast("LazyReader", topic), plan.global_tables[0], settings, "rates")
    return [record.offset for records in reader.read("rates", 0, 0, 9) for record in records]


def test_a_record_that_cannot_be_read_is_skipped() -> None:
    assert read(Topic(b"1", b"x", b"3"), serdes.json()) == [0, 2]


def test_no_record_is_skipped_because_the_registry_is_away() -> None:
    away = {"schema.registry.url": "http://127.0.0.1:1", "max.retries": "0"}
    with pytest.raises(RegistryUnavailable):
        read(Topic(b"\0\0\0\0\1\x02"), serdes.avro(None, registry=away))


class Looking(Processor):
    def process(self, record: Record) -> None: ...


def test_a_sub_topology_has_the_tables_that_its_steps_may_look_up() -> None:
    builder = StreamsBuilder()
    rates, names = builder.global_table("rates"), builder.global_table("names")
    for number, table in enumerate((rates, names)):
        stream = builder.stream(f"in-{number}")
        stream.join(table, lambda value, other: other, key_selector=lambda key, value: key).to("out")
    builder.stream("counted").group_by_key().count()
    builder.stream("processed").process(Looking)
    plans = builder.build().sub_topologies
    assert [[table.source.topics[0] for table in plan.global_tables] for plan in plans] == [
        ["rates"],
        ["names"],
        [],
        ["rates", "names"],
    ]
