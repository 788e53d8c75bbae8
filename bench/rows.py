"""What is measured and how it is judged: rows, goals, and the statistics over rounds."""

import enum
import fnmatch
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar


class Better(enum.Enum):
    MORE = "more"
    LESS = "less"


class Comparison(enum.Enum):
    """How the candidate's value is compared with the reference's."""

    RATIO = "ratio"
    DIFFERENCE = "difference"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of results. `goal` is for the median comparison of candidate and reference, or with
    `goal_is_value` for the candidate's own median, whatever the reference's is.
    """

    name: str
    title: str
    section: str
    unit: str
    better: Better
    goal: float | None = None
    comparison: Comparison = Comparison.RATIO
    goal_is_value: bool = False

    def goal_text(self) -> str:
        if self.goal is None:
            return ""
        words = "at least" if self.better is Better.MORE else "at most"
        if self.goal_is_value:
            return f"{words} {figure(self.goal)} {self.unit}"
        return f"{words} {self.compared_text(self.goal)}"

    def compared_text(self, compared: float) -> str:
        if self.comparison is Comparison.RATIO:
            return figure(compared)
        return f"{'+' if compared > 0 else ''}{figure(compared)}"


class WithRows(Protocol):
    """The rows of a case, for results and tables. They do not change."""

    rows: tuple[Row, ...]


class Named(Protocol):
    @property
    def name(self) -> str: ...


AnyCase = TypeVar("AnyCase", bound=Named)


def chosen(cases: Sequence[AnyCase], only: str | None) -> list[AnyCase]:
    """The cases that `--only` names, or all."""
    if only is None:
        return list(cases)
    patterns = only.split(",")
    for pattern in patterns:
        if not any(fnmatch.fnmatch(case.name, pattern) for case in cases):
            raise SystemExit(f"No case is called '{pattern}'. The cases: {', '.join(case.name for case in cases)}.")
    return [case for case in cases if any(fnmatch.fnmatch(case.name, pattern) for pattern in patterns)]


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratios, or differences, of all rounds. Each compares two successive runs."""

    median: float
    best: float
    worst: float

    @classmethod
    def of(cls, row: Row, candidate: Sequence[float], reference: Sequence[float]) -> "Ratio | None":
        """None if all values of the reference are zero, so that there is no ratio."""
        pairs = list(zip(candidate, reference, strict=True))
        if row.comparison is Comparison.DIFFERENCE:
            ratios = [ours - theirs for ours, theirs in pairs]
        else:
            ratios = [ours / theirs for ours, theirs in pairs if theirs > 0]
        if not ratios:
            return None
        best, worst = (max(ratios), min(ratios)) if row.better is Better.MORE else (min(ratios), max(ratios))
        return cls(statistics.median(ratios), best, worst)

    def meets(self, row: Row) -> bool:
        return _reaches(row, self.median)


def meets_goal(row: Row, candidate: Sequence[float], reference: Sequence[float]) -> bool:
    """Whether the values of all rounds meet the row's goal. Without a ratio no goal is met."""
    if row.goal_is_value:
        return _reaches(row, statistics.median(candidate))
    ratio = Ratio.of(row, candidate, reference)
    return ratio is not None and ratio.meets(row)


def _reaches(row: Row, value: float) -> bool:
    assert row.goal is not None
    return value >= row.goal if row.better is Better.MORE else value <= row.goal


def figure(value: float) -> str:
    """The value with three significant digits, as people write numbers."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
