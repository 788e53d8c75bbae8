"""What all decoders share: columns are gathered once, and unfit values are found one by one."""

from typing import Any

import pyarrow as pa

from kaspar.spark.formats.decoder import column_of, fitting


class Bytes:
    """Gathers numbers of one byte, and knows how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, values: list[Any]) -> pa.Array:
        self.times += 1
        with fitting("too large"):
            return pa.array(values, pa.uint8())


def test_values_that_all_fit_are_gathered_once() -> None:
    gather, bad = Bytes(), dict[int, str]()
    assert column_of([1, None, 3], gather, bad).to_pylist() == [1, None, 3]
    assert (gather.times, bad) == (1, {})


def test_unfit_values_are_null_and_join_those_that_are_bad_already() -> None:
    bad = {1: "not a number"}
    assert column_of([256, None, 3, 1000, 5], Bytes(), bad).to_pylist() == [None, None, 3, None, 5]
    assert bad == {0: "too large", 1: "not a number", 3: "too large"}
