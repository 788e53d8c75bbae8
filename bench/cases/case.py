"""The shape of a case."""

from collections.abc import Mapping

from bench.bench import Bench
from bench.rows import Row
from bench.sides import Side


class Case:
    """Measures its rows for one side at a time. The runner calls, in this order:

    set_up and one unrecorded warm_up for each side; in every round, measure for each side; tear_down for each side.
    """

    def __init__(self, name: str, rows: tuple[Row, ...]) -> None:
        self.name = name
        self.rows = rows

    def set_up(self, bench: Bench, side: Side) -> None:
        """What all rounds share."""

    def warm_up(self, bench: Bench, side: Side) -> None:
        """By default a whole round whose figures are thrown away."""
        self.measure(bench, side)

    def measure(self, bench: Bench, side: Side) -> Mapping[str, float]:
        """One value for each row, by the row's name."""
        raise NotImplementedError

    def tear_down(self, bench: Bench, side: Side) -> None:
        """Called also when a round failed."""
