"""Batches of a sub-topology with state: map side, shuffle and tasks, without Spark."""

import random
import shutil
from pathlib import Path

import pytest

from kaspar.streams import StreamsBuilder, TimeWindows
from kaspar.streams.running import rows
from kaspar.streams.topology.context import OnError
from kaspar.streams.topology.topology import Topology
from tests.unit.streams.running.batches import READER, Runtime, read_from, source_rows

LINES = [b"a b a", b"c a", b"b b c", b"d a"]


def word_count() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("lines").flat_map_values(lambda line: line.lower().split())
    words.group_by(lambda key, word: word).count("counts").to_stream().to("word-counts")
    return builder.build()


def lines(*texts: bytes, first: int = 0, partition: int = 0) -> object:
    return source_rows("lines", [(None, text, 1000 + first) for text in texts], first=first, partition=partition)


def last_counts(runtime: Runtime, topic: str = "word-counts") -> dict[str, int]:
    return {
        key.decode(): int.from_bytes(value)
        for key, value, _ in runtime.cluster.topic(topic)
        if key is not None and value is not None
    }


def test_every_update_is_written(tmp_path: Path) -> None:
    runtime = Runtime(word_count(), tmp_path)
    runtime.run(lines(*LINES))
    written = runtime.cluster.topic("word-counts")
    assert sorted(int.from_bytes(value or b"") for key, value, _ in written if key == b"a") == [1, 2, 3, 4]
    assert len(written) == 10


def test_the_next_batch_goes_on_with_the_state(tmp_path: Path) -> None:
    runtime = Runtime(word_count(), tmp_path)
    for number, line in enumerate(LINES):
        runtime.run(lines(line, first=number))
    assert last_counts(runtime) == {"a": 4, "b": 3, "c": 2, "d": 1}


def test_a_changelog_has_one_record_for_each_key_that_a_batch_changes(tmp_path: Path) -> None:
    runtime = Runtime(word_count(), tmp_path)
    runtime.run(lines(*LINES))
    changelog = runtime.cluster.topic("app-counts-changelog")
    assert sorted((key, int.from_bytes(value or b"")) for key, value, _ in changelog) == [
        (b"a", 4),
        (b"b", 3),
        (b"c", 2),
        (b"d", 1),
    ]


def test_a_batch_that_was_not_published_leaves_no_trace_in_the_state(tmp_path: Path) -> None:
    runtime = Runtime(word_count(), tmp_path)
    runtime.run(lines(b"a b"))
    runtime.run(lines(b"a a a", first=1), publish=False)
    runtime.run(lines(b"a", first=1))
    assert last_counts(runtime)["a"] == 2


def test_lost_state_is_read_from_the_changelog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime(word_count(), tmp_path)
    runtime.run(lines(*LINES))
    shutil.rmtree(tmp_path)
    monkeypatch.setattr(READER, read_from(runtime.cluster, {"counts": "app-counts-changelog"}))
    runtime.restart()
    runtime.run(lines(b"a d", first=4))
    assert last_counts(runtime) == {"a": 5, "b": 3, "c": 2, "d": 2}


def test_stream_time_survives_lost_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime(word_count(), tmp_path, partitions=1)
    runtime.run(source_rows("lines", [(None, b"a", 5000)]))
    shutil.rmtree(tmp_path)
    monkeypatch.setattr(READER, read_from(runtime.cluster, {"counts": "app-counts-changelog"}))
    runtime.restart()
    runtime.run(source_rows("lines", [(None, b"b", 10)], first=1))
    assert runtime.versions.meta[0]["task"] == 5000


@pytest.mark.parametrize("seed", range(5))
def test_a_repeated_batch_is_byte_identical_in_any_order_of_tasks(tmp_path: Path, seed: int) -> None:
    batches = [lines(*LINES, partition=0), lines(b"x a", b"a y", partition=1), lines(b"z z", partition=2)]
    first = Runtime(word_count(), tmp_path / "first")
    again = Runtime(word_count(), tmp_path / "again", tasks=3)
    rng = random.Random(seed)
    for _ in range(3):
        first.run(*batches)
        again.run(*rng.sample(batches, 3), rng=rng)
    assert first.cluster.logs == again.cluster.logs


def test_records_that_need_no_step_pass_the_map_side_unread(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.table("users", "users").to_stream().to("copy")
    runtime = Runtime(builder.build(), tmp_path)
    runtime.run(source_rows("users", [(b"u", b"one", 5), (b"v", b"two", 6), (b"u", None, 7)]))
    assert sorted(runtime.cluster.topic("copy"), key=lambda each: each[2]) == [
        (b"u", b"one", 5),
        (b"v", b"two", 6),
        (b"u", None, 7),
    ]


def test_what_the_map_side_writes_reaches_its_topic(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("events")
    stream.filter(lambda key, value: value.startswith("!")).to("alarms")
    stream.group_by_key().count("counts")
    runtime = Runtime(builder.build(), tmp_path)
    runtime.run(source_rows("events", [(b"k", b"!one", 5), (b"k", b"two", 6), (b"k", b"!three", 7)]))
    assert runtime.cluster.topic("alarms") == [(b"k", b"!one", 5), (b"k", b"!three", 7)]
    assert last_counts(runtime, "app-counts-changelog") == {"k": 3}


def test_records_that_the_map_side_drops_are_counted(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.stream("events").map_values(int).group_by_key().count("counts")
    runtime = Runtime(builder.build(), tmp_path, on_processing_error=OnError.CONTINUE, dead_letter_topic="dead")
    runtime.run(source_rows("events", [(b"k", b"1", 5), (b"k", b"x", 6)]))
    assert runtime.dropped == {"processing": 1}
    assert runtime.cluster.topic("dead") == [(b"k", b"x", 6)]


def test_late_records_are_written_as_they_were_read(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    words = builder.stream("events").map_values(lambda text: {"text": text})
    words.group_by_key().windowed_by(TimeWindows.of_size(10)).count("counts")
    runtime = Runtime(builder.build(), tmp_path, partitions=1, late_topic="late")
    runtime.run(source_rows("events", [(b"k", b"one", 50), (b"k", b"two", 6)]))
    assert runtime.dropped == {"late": 1}
    assert runtime.cluster.topic("late") == [(b"k", b"two", 6)]


@pytest.mark.parametrize("is_large", [False, True])
def test_columns_may_have_more_bytes_than_arrow_puts_into_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    """With 2 GiB of values, the limit of a column with 32-bit offsets, all records are processed in their order."""
    if is_large:
        monkeypatch.setattr(rows, "_MAX_COLUMN_BYTES", 0)
    builder = StreamsBuilder()
    stream = builder.stream("lines")
    stream.map_values(lambda line: line.upper()).to("upper")
    stream.group_by(lambda key, line: line[0]).count("counts").to_stream().to("counts")
    runtime = Runtime(builder.build(), tmp_path)
    runtime.run(lines(*LINES), lines(*LINES, partition=1))
    assert last_counts(runtime, "counts") == {"a": 2, "b": 2, "c": 2, "d": 2}
    assert [value for _, value, _ in runtime.cluster.topic("upper")][:4] == [line.upper() for line in LINES]


def test_a_partitioner_of_the_program_decides_where_records_go(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("events").repartition(
        name="by-value", partitioner=lambda topic, key, value, partitions: int(value) % partitions
    )
    stream.group_by_key().count("counts")
    runtime = Runtime(builder.build(), tmp_path, partitions=3)
    runtime.run(source_rows("events", [(b"k", b"4", 5), (b"k", b"2", 6), (b"k", b"1", 7)]))
    changelog = {where.partition: len(log) for where, log in runtime.cluster.logs.items()}
    assert changelog == {1: 1, 2: 1}
    assert sorted(int.from_bytes(value or b"") for _, value, _ in runtime.cluster.topic("app-counts-changelog")) == [
        1,
        2,
    ]
