"""The interface of a case."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from bench.bench import Bench
from bench.rows import Row
from bench.sides import Side

BenchT = TypeVar("BenchT")
SideT = TypeVar("SideT")


class CaseOf(Generic[BenchT, SideT]):
    """Measures its rows for one side at a time. The runner calls, in this order:

    set_up and one unrecorded warm_up for each side; in every round, measure for each side; tear_down for each side.
    """

    def __init__(self, name: str, rows: tuple[Row, ...]) -> None:
        self.name = name
        self.rows = rows

    def set_up(self, bench: BenchT, side: SideT) -> None:
        """Prepare what all rounds share."""

    def warm_up(self, bench: BenchT, side: SideT) -> None:
        """By default a whole round whose values are discarded."""
        self.measure(bench, side)

    def measure(self, bench: BenchT, side: SideT) -> Mapping[str, float]:
        """Return one value for each row, by the row's name."""
        raise NotImplementedError

    def tear_down(self, bench: BenchT, side: SideT) -> None:
        """Also called if a round failed."""


class Case(CaseOf[Bench, Side]):
    """A case of single brokers."""
