"""The store of a suppression: entries leave in the order of their times, whoever has put them."""

import pickle

from kaspar.streams import serdes
from kaspar.streams.stores.byte_store import OverlayStore
from kaspar.streams.stores.time_ordered import TIME_ORDERED, TimeOrderedStore, Totals


def opened(store: OverlayStore) -> TimeOrderedStore:
    return TimeOrderedStore("waiting", store, "changelog", serdes.text(), serdes.text())


def put(store: TimeOrderedStore, *entries: tuple[int, bytes]) -> None:
    for time, key in entries:
        store.put(time, key, b"value", is_new=store.get(time, key) is None)


def drained(store: TimeOrderedStore) -> list[tuple[int, bytes]]:
    entries = []
    while (first := store.first()) is not None:
        entries.append(first)
        store.remove(*first)
    return entries


def test_entries_leave_in_the_order_of_time_and_then_of_keys() -> None:
    store = opened(OverlayStore(None))
    put(store, (300, b"b"), (2, b"c"), (300, b"a"), (2, b"ca"))
    assert drained(store) == [(2, b"c"), (2, b"ca"), (300, b"a"), (300, b"b")]


def test_entries_of_earlier_batches_are_between_new_ones() -> None:
    state = OverlayStore(None)
    put(opened(state), (1, b"a"), (5, b"a"), (9, b"a"))
    batch = opened(OverlayStore(state))
    put(batch, (3, b"new"), (7, b"new"), (11, b"new"))
    assert [time for time, _ in drained(batch)] == [1, 3, 5, 7, 9, 11]


def test_a_removed_entry_is_skipped_wherever_it_was() -> None:
    state = OverlayStore(None)
    put(opened(state), (1, b"a"), (2, b"a"))
    batch = opened(OverlayStore(state))
    put(batch, (0, b"new"), (3, b"new"))
    batch.remove(1, b"a")
    batch.remove(0, b"new")
    assert drained(batch) == [(2, b"a"), (3, b"new")]


def test_an_entry_that_was_removed_and_put_again_leaves_once() -> None:
    state = OverlayStore(None)
    put(opened(state), (1, b"a"))
    batch = opened(OverlayStore(state))
    batch.remove(1, b"a")
    put(batch, (1, b"a"))
    assert drained(batch) == [(1, b"a")]


def test_an_entry_that_replaces_another_leaves_once() -> None:
    store = opened(OverlayStore(None))
    put(store, (1, b"a"), (1, b"a"))
    assert drained(store) == [(1, b"a")]


def test_times_of_keys_and_totals_are_no_entries() -> None:
    store = opened(OverlayStore(None))
    store.set_time_of(b"a", 5)
    store.set_totals(Totals(1, 20))
    assert store.first() is None
    assert (store.time_of(b"a"), store.time_of(b"b"), store.totals()) == (5, None, (1, 20))
    store.set_time_of(b"a", None)
    store.set_totals(None)
    assert (store.time_of(b"a"), store.totals()) == (None, None)


def test_the_kind_is_pickled_and_compared() -> None:
    assert pickle.loads(pickle.dumps(TIME_ORDERED)) == TIME_ORDERED
