"""OverlayStore: what it shows over a snapshot, and the changes that it collects."""

from kaspar.streams.stores.byte_store import OverlayStore, Row


def in_memory(**rows: str) -> OverlayStore:
    store = OverlayStore(None)
    for key, value in rows.items():
        store.put(key.encode(), value.encode())
    return store


def over_base(**rows: str) -> OverlayStore:
    return OverlayStore(in_memory(**rows))


def text(rows: list[Row]) -> str:
    return " ".join(f"{key.decode()}={value.decode()}" for key, value in rows)


def everything(store: OverlayStore, *, reverse: bool = False) -> str:
    return text(list(store.range(None, None, reverse=reverse)))


def test_a_key_without_a_change_is_read_from_the_base() -> None:
    store = over_base(a="1")
    assert store.get(b"a") == b"1"
    assert store.get(b"b") is None
    assert store.changes == {}


def test_a_change_hides_the_base() -> None:
    store = over_base(a="1", b="2")
    store.put(b"a", b"3")
    store.put(b"b", None)
    assert (store.get(b"a"), store.get(b"b")) == (b"3", None)
    assert everything(store) == "a=3"
    assert store.changes == {b"a": b"3", b"b": None}


def test_changes_keep_the_last_value_of_a_key() -> None:
    store = over_base()
    for value in (b"1", b"2", None, b"3"):
        store.put(b"a", value)
    assert store.changes == {b"a": b"3"}


def test_a_store_in_memory_keeps_no_deletions() -> None:
    store = in_memory(a="1", b="2")
    store.put(b"a", None)
    store.put(b"x", None)
    assert store.changes == {b"b": b"2"}
    assert everything(store) == "b=2"
    store.put(b"b", None)
    store.put(b"a", b"4")
    assert everything(store) == "a=4"


def test_a_range_merges_base_and_changes_in_order() -> None:
    store = over_base(b="1", d="2", f="3")
    store.put(b"e", b"4")
    store.put(b"a", b"5")
    store.put(b"d", b"6")
    store.put(b"f", None)
    store.put(b"g", b"7")
    assert everything(store) == "a=5 b=1 d=6 e=4 g=7"
    assert everything(store, reverse=True) == "g=7 e=4 d=6 b=1 a=5"


def test_a_range_includes_its_first_key_and_excludes_its_last() -> None:
    store = over_base(a="1", c="3")
    store.put(b"b", b"2")
    store.put(b"d", b"4")
    assert text(list(store.range(b"a", b"c"))) == "a=1 b=2"
    assert text(list(store.range(b"b", b"d"))) == "b=2 c=3"
    assert text(list(store.range(b"b", None, reverse=True))) == "d=4 c=3 b=2"
    assert text(list(store.range(b"c", b"a"))) == ""


def test_keys_put_after_a_scan_are_in_the_next_one() -> None:
    store = over_base()
    store.put(b"c", b"3")
    assert everything(store) == "c=3"
    store.put(b"a", b"1")
    store.put(b"c", b"4")
    store.put(b"b", b"2")
    assert everything(store) == "a=1 b=2 c=4"


def test_an_iterator_shows_the_store_as_it_was() -> None:
    store = over_base(a="1", c="3", e="5")
    store.put(b"d", b"4")
    rows = store.range(None, None)
    store.put(b"b", b"2")
    seen = []
    for key, value in rows:
        seen.append((key, value))
        store.put(key, None)
        store.put(key + b"x", b"new")
        store.delete_range(b"e", b"f")
    assert text(seen) == "a=1 c=3 d=4 e=5"
    assert everything(store) == "ax=new b=2 cx=new dx=new"


def test_a_deleted_range_hides_the_base_and_drops_changes() -> None:
    store = over_base(a="1", b="2", c="3", d="4")
    store.put(b"b", b"5")
    store.put(b"bb", b"6")
    store.delete_range(b"b", b"d")
    assert everything(store) == "a=1 d=4"
    assert (store.get(b"b"), store.get(b"c"), store.get(b"d")) == (None, None, b"4")
    assert store.changes == {}
    assert store.deleted_ranges == [(b"b", b"d")]


def test_a_key_may_be_put_into_a_deleted_range() -> None:
    store = over_base(a="1", b="2")
    store.delete_range(None, None)
    store.put(b"b", b"3")
    assert everything(store) == "b=3"
    assert store.changes == {b"b": b"3"}


def test_a_larger_deleted_range_replaces_smaller_ones() -> None:
    store = over_base()
    for last in (b"b", b"c", b"d"):
        store.delete_range(None, last)
    store.delete_range(b"x", b"y")
    assert store.deleted_ranges == [(None, b"d"), (b"x", b"y")]
    store.delete_range(None, None)
    assert store.deleted_ranges == [(None, None)]


def test_ranges_are_deleted_before_and_after_the_first_scan() -> None:
    for scanned in (False, True):
        store = in_memory(a="1", b="2", c="3")
        if scanned:
            assert everything(store)
        store.delete_range(b"b", b"c")
        assert everything(store) == "a=1 c=3"
        assert store.deleted_ranges == []


def test_the_number_of_entries_is_exact_in_memory_and_an_estimate_over_a_base() -> None:
    assert in_memory(a="1", b="2").approximate_num_entries() == 2
    store = over_base(a="1", b="2")
    store.put(b"c", b"3")
    assert store.approximate_num_entries() == 3


def test_the_first_row_is_that_of_the_range() -> None:
    store = over_base(a="1", b="2", d="4")
    store.put(b"a", None)
    store.put(b"c", b"3")
    store.put(b"e", None)
    for bounds in ((None, None), (b"a", b"b"), (b"b", b"c"), (b"bb", None), (b"d", b"d"), (b"e", None)):
        for reverse in (False, True):
            rows = list(store.range(*bounds, reverse=reverse))
            assert store.first_row(*bounds, reverse=reverse) == next(iter(rows), None)
    store.delete_range(None, b"c")
    assert store.first_row(None, None) == (b"c", b"3")
    assert in_memory(a="1", b="2").first_row(None, None, reverse=True) == (b"b", b"2")
    assert in_memory().first_row(None, None) is None
