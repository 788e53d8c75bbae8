"""The store of records without partner, in memory and over a snapshot."""

from typing import Any

import pytest

from kaspar.streams import serdes
from kaspar.streams.operators.waiting_records import NEVER, WAITING_RECORDS, EitherSide, WaitingRecord, WaitingRecords
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.spec import StoreSpec
from kaspar.streams.topology.context import Clock, TaskSettings
from kaspar.streams.topology.open_stores import open_stores

SPEC = StoreSpec("waiting", WAITING_RECORDS, serdes.text(), EitherSide(serdes.text(), None))


def opened(store: OverlayStore) -> WaitingRecords:
    waiting: WaitingRecords = open_stores([SPEC], TaskSettings("app"), dict[str, Clock](), lambda _: store)["waiting"]
    return waiting


def left(key: str, timestamp: int, value: str = "v") -> WaitingRecord:
    return WaitingRecord(True, key, value, timestamp)


def right(key: str, timestamp: int, value: str = "v") -> WaitingRecord:
    return WaitingRecord(False, key, value, timestamp)


@pytest.fixture(params=["in memory", "over a snapshot"])
def waiting(request: Any) -> WaitingRecords:
    """Empty, but over a snapshot of records that were taken."""
    store = OverlayStore(None)
    if request.param == "in memory":
        return opened(store)
    before = opened(store)
    for time in (1, 2, 3):
        before.add(left("a", time))
        before.add(right("a", time))
    empty = opened(OverlayStore(store))
    assert len(list(empty.take_closed(4, 4))) == 6
    return opened(empty._store)  # type: ignore[arg-type]  # it is an OverlayStore


def test_records_are_taken_by_time_then_right_before_left_then_by_key(waiting: WaitingRecords) -> None:
    records = [right("b", 4), left("b", 5), right("a", 6), right("b", 6), left("a", 6)]
    for record in reversed(records):
        waiting.add(record)
    assert list(waiting.all()) == records
    assert list(waiting.take_closed(6, 7)) == records[:-1]
    assert list(waiting.all()) == [left("a", 6)]


def test_records_of_one_side_key_and_time_are_removed_together(waiting: WaitingRecords) -> None:
    for record in (left("a", 5, "1"), left("a", 5, "2"), right("a", 5, "3"), left("ab", 5, "4")):
        waiting.add(record)
    waiting.remove(is_left=True, key="a", timestamp=5)
    waiting.remove(is_left=True, key="a", timestamp=6)
    assert list(waiting.all()) == [right("a", 5, "3"), left("ab", 5, "4")]


def test_a_record_may_be_added_before_the_time_of_those_that_were_taken(waiting: WaitingRecords) -> None:
    waiting.add(left("a", 5))
    assert list(waiting.take_closed(9, 9)) == [left("a", 5)]
    waiting.add(left("a", 6))
    assert list(waiting.take_closed(10, 10)) == [left("a", 6)]


def test_the_first_record_decides_when_to_look(waiting: WaitingRecords) -> None:
    assert waiting.earliest == NEVER
    waiting.add(left("a", 7))
    waiting.add(right("a", 6))
    assert waiting.earliest == 6


@pytest.mark.parametrize(
    ("records", "earliest"),
    [
        ([], NEVER),
        ([left("a", 5)], 5),  # it is closed, and was the last
        ([left("a", 11), left("a", 12), left("a", 13)], 13),  # no right record: the loop ends with the last
        ([left("a", 11), right("a", 12), left("a", 14), left("a", 15)], 14),  # both sides are open: the next record
        ([right("a", 12), left("a", 12), left("b", 12), right("a", 13)], 12),
        ([right("a", 12), left("a", 12), right("a", 13), right("a", 14)], 13),
        ([left("a", 11), right("a", 12)], 12),  # and there is no next
        ([left("a", 11), right("a", 12, "1"), right("a", 12, "2"), left("a", 14)], 12),
        ([left("a", 11), right("a", 12), right("b", 12), left("a", 14)], 12),
    ],
)
def test_a_look_ends_where_kafkas_does(waiting: WaitingRecords, records: list[WaitingRecord], earliest: int) -> None:
    for record in records:
        waiting.add(record)
    list(waiting.take_closed(10, 10))
    assert waiting.earliest == earliest


def test_a_new_batch_looks_from_the_first_record_on() -> None:
    store = OverlayStore(None)
    for time in (5, 6, 7):
        opened(store).add(left("a", time))
    assert opened(OverlayStore(store)).earliest == 5


def test_its_changelog_restores_it() -> None:
    store, restored = OverlayStore(None), OverlayStore(None)
    opened(store).add(left("a", 5))
    for key, value in store.changes.items():
        record = SPEC.to_changelog(key, value)
        restored.put(*SPEC.from_changelog(record.key, record.value, 0))
    assert list(opened(restored).all()) == [left("a", 5)]
