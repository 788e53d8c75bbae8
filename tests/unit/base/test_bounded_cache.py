"""Bounds of a cache: number, weight, time."""

from kaspar.base.bounded_cache import BoundedCache


def test_least_recently_used_entry_makes_room() -> None:
    cache = BoundedCache[str, int](2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert list(cache) == ["a", "c"]


def test_weights_together_are_bounded() -> None:
    cache = BoundedCache[str, str](100, max_weight=5, weight_of=lambda key, value: len(value))
    cache.put("a", "xxx")
    cache.put("b", "xx")
    assert list(cache) == ["a", "b"]
    cache.put("b", "xxx")
    assert list(cache) == ["b"]
    cache.discard("b")
    cache.put("c", "xxxxx")
    assert list(cache) == ["c"], "what was replaced or discarded weighs nothing"
    cache.put("d", "xxxxxx")
    assert len(cache) == 0, "an entry that is too heavy is not kept"


def test_entry_lives_for_its_time() -> None:
    now = 0.0
    cache = BoundedCache[str, int](2, lifetime_s=10, monotonic=lambda: now)
    cache.put("a", 1)
    now = 9.9
    assert cache.get("a") == 1
    now = 10.0
    assert cache.get("a") is None


def test_cache_without_a_lifetime_keeps_nothing() -> None:
    cache = BoundedCache[str, int](2, lifetime_s=0)
    cache.put("a", 1)
    assert cache.get("a") is None
