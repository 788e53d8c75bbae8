"""What a worker of Spark has loaded is not looked through again after every task."""

import gc
from collections.abc import Iterator

import pytest

from kaspar.spark.garbage import freeze_loaded_objects


@pytest.fixture(autouse=True)
def a_process_that_is_left_as_it_was() -> Iterator[None]:
    freeze_loaded_objects.cache_clear()
    yield
    gc.unfreeze()
    freeze_loaded_objects.cache_clear()


def test_what_is_loaded_is_set_aside_and_what_comes_later_is_collected() -> None:
    freeze_loaded_objects()
    assert gc.get_freeze_count() > 1000
    cycle: list[object] = []
    cycle.append(cycle)
    del cycle
    assert gc.collect() == 1


def test_it_is_done_once() -> None:
    freeze_loaded_objects()
    gc.unfreeze()
    freeze_loaded_objects()
    assert gc.get_freeze_count() == 0
