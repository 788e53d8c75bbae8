"""The index of aborted transactions: its bytes, its searches, and what a disk may do to it."""

from pathlib import Path

import pytest

from kaspar.storage import AbortedTransaction, OsFiles
from kaspar.storage.segments.transaction_index import TransactionIndex

FILES = OsFiles()
ABORTED = [
    AbortedTransaction(0, 0, 10, 11),
    AbortedTransaction(1, 5, 15, 13),
    AbortedTransaction(2, 18, 35, 25),
    AbortedTransaction(3, 32, 50, 40),
]


def index_of(*transactions: AbortedTransaction) -> TransactionIndex:
    index = TransactionIndex()
    for transaction in transactions:
        index.append(transaction)
    return index


def collected(index: TransactionIndex, fetch_offset: int, upper_offset: int) -> tuple[list[AbortedTransaction], bool]:
    found: list[AbortedTransaction] = []
    complete = index.collect(fetch_offset, upper_offset, found)
    return found, complete


def test_an_entry_has_kafkas_bytes(tmp_path: Path) -> None:
    path = str(tmp_path / "i.txnindex")
    index_of(AbortedTransaction(7, 100, 110, 105)).write(FILES, path)
    assert Path(path).read_bytes().hex() == (
        "0000"  # version
        "0000000000000007"  # producer id
        "0000000000000064"  # first offset
        "000000000000006e"  # last offset
        "0000000000000069"  # last stable offset
    )
    assert TransactionIndex.load(FILES, path)[0] == AbortedTransaction(7, 100, 110, 105)


@pytest.mark.parametrize(
    ("fetch_offset", "upper_offset", "expected", "complete"),
    [
        (0, 100, ABORTED, False),
        (0, 32, ABORTED[:3], True),
        (0, 35, ABORTED, True),
        (10, 35, ABORTED, True),
        (11, 35, ABORTED[1:], True),
        (20, 41, ABORTED[2:], False),
        (0, 0, [], True),
        (51, 100, [], False),
    ],
)
def test_a_search_finds_what_overlaps_and_ends_where_nothing_else_can(
    fetch_offset: int, upper_offset: int, expected: list[AbortedTransaction], complete: bool
) -> None:
    assert collected(index_of(*ABORTED), fetch_offset, upper_offset) == (expected, complete)


def test_entries_are_written_as_they_come_and_cut_where_the_log_is(tmp_path: Path) -> None:
    path = str(tmp_path / "i.txnindex")
    index = TransactionIndex()
    for transaction in ABORTED:
        index.append(transaction)
        index.write(FILES, path)
    index.cut(FILES, path, 35)
    assert collected(TransactionIndex.load(FILES, path), 0, 100)[0] == ABORTED[:2]
    index.append(ABORTED[2])
    index.write(FILES, path)
    assert collected(TransactionIndex.load(FILES, path), 0, 100)[0] == ABORTED[:3]
    index.cut(FILES, path, 0)
    assert len(index) == 0
    assert Path(path).read_bytes() == b""


def test_a_cut_leaves_what_a_search_has_begun_with(tmp_path: Path) -> None:
    path = str(tmp_path / "i.txnindex")
    index = index_of(*ABORTED)
    index.write(FILES, path)

    class Found(list[AbortedTransaction]):
        def append(self, found: AbortedTransaction) -> None:
            super().append(found)
            index.cut(FILES, path, 15)

    found = Found()
    index.collect(0, 100, found)
    assert found == ABORTED


def test_markers_come_in_order() -> None:
    with pytest.raises(AssertionError):
        index_of(ABORTED[1], ABORTED[0])


def test_soundness_is_what_one_segment_can_hold() -> None:
    whole = index_of(*ABORTED)
    assert whole.is_sound(10)
    assert not whole.is_sound(11), "the first marker is in an earlier segment"
    packed = b"".join(index_of(transaction)._entries for transaction in ABORTED)
    assert not TransactionIndex(packed[34:] + packed[:34]).is_sound(0), "markers out of order"
    assert not TransactionIndex(packed[:-34] + bytes(34)).is_sound(0), "zeros that a power cut left"
    assert not TransactionIndex(b"\1" + packed[1:]).is_sound(0), "a version that is not known"
    assert TransactionIndex(packed + b"\0" * 33).is_sound(0), "a partial entry is left out"
