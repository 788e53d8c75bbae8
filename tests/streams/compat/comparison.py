"""Compares what two runs of a topology gave, and describes the first difference for people.

Records of one topic are compared in order, with their bytes, timestamps, headers and the step that wrote them. Records
of different topics have no order. Of internal topics only the last records of changelogs are compared, with what the
stores have at the end: in between, a micro-batch writes a key once, and Kafka Streams whenever it changes.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from tests.streams.compat.differences import LAST_VALUES_ONLY
from tests.streams.compat.kafka_streams import APPLICATION_ID, Job
from tests.streams.compat.results import ChangelogRow, Result, Row


def difference(job: Job, ours: Result, theirs: Result) -> str | None:
    """The first difference, or None if there is none."""
    if ours.error is not None:
        return f"{job}: kaspar.streams fails: {ours.error}"
    last_values_only = job.topology in LAST_VALUES_ONLY
    for topic in sorted({*_written(ours), *_written(theirs)}):
        our_rows, their_rows = ours.topics.get(topic, ()), theirs.topics.get(topic, ())
        if last_values_only:
            if _last_values(our_rows) != _last_values(their_rows):
                return f"{job}: the last values in topic {topic} differ: {our_rows} and {their_rows}"
        elif (found := _first_difference(our_rows, their_rows)) is not None:
            return f"{job}: topic {topic} differs{_explained(job, *found)}"
    return _store_difference(job, ours, theirs)


def _written(result: Result) -> list[str]:
    return [topic for topic, rows in result.topics.items() if rows and not topic.startswith(f"{APPLICATION_ID}-")]


def _first_difference(ours: Sequence[Row], theirs: Sequence[Row]) -> tuple[int, Row | None, Row | None] | None:
    for number, (our_row, their_row) in enumerate(zip_longest(ours, theirs)):
        if our_row != their_row:
            return number, our_row, their_row
    return None


def _last_values(rows: Sequence[Row]) -> Mapping[bytes | None, tuple[bytes | None, int]]:
    return {row.key: (row.value, row.timestamp) for row in rows}


def _explained(job: Job, number: int, ours: Row | None, theirs: Row | None) -> str:
    step = min(row.step for row in (ours, theirs) if row is not None)
    before = "\n".join(f"  {number}: {each}" for number, each in enumerate(job.steps[: step + 1]))
    return f" at its record {number}:\n  ours:   {ours}\n  Kafka's: {theirs}\nafter the steps\n{before}"


def _store_difference(job: Job, ours: Result, theirs: Result) -> str | None:
    for name, their_rows in theirs.stores.items():
        if name not in ours.stores:
            return f"{job}: there is no store {name}"
        only_ours, only_theirs = set(ours.stores[name]) - set(their_rows), set(their_rows) - set(ours.stores[name])
        if only_ours or only_theirs:
            return f"{job}: store {name} differs\n  only ours:   {only_ours}\n  only Kafka's: {only_theirs}"
        their_changelog = theirs.changelogs.get(name, {})
        for key, row in ours.changelogs.get(name, {}).items():
            if not _are_equal(row, their_changelog.get(key)):
                return f"{job}: changelog of {name} differs for {key!r}: {row}; Kafka's: {their_changelog.get(key)}"
    return None


def _are_equal(ours: ChangelogRow, theirs: ChangelogRow | None) -> bool:
    if theirs is None or ours.value != theirs.value:
        return False
    return ours.timestamp is None or ours.timestamp == theirs.timestamp
