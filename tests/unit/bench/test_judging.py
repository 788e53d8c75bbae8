"""The benchmark's own arithmetic: ratios, goals, the search for the highest rate, and the page it writes into."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from bench import report
from bench.bench import Bench, Load
from bench.cases import Case, all_cases
from bench.cases.requests import HighestRate
from bench.cluster.bench import ClusterCase
from bench.cluster.catalog import all_cases as all_cluster_cases
from bench.programs import LoadError, Programs
from bench.registry.case import RegistryCase
from bench.registry.cases import all_cases as all_registry_cases
from bench.rows import Better, Comparison, Ratio, Row, figure, meets_goal
from bench.runner import Results
from bench.sides import Role, Side, kafka, kaspar

MORE = Row("rate", "a rate", "section", "MB/s", Better.MORE, 1.5)
LESS = Row("time", "a time", "section", "s", Better.LESS, 0.5)
MORE_MS = Row("more", "a difference", "section", "ms", Better.LESS, 40.0, Comparison.DIFFERENCE)
PLAIN = Row("plain", "no goal", "section", "s", Better.LESS)


def _bench(*, patience: int = 0) -> Bench:
    tool = Path("unused")
    return Bench(Programs(*[tool] * len(fields(Programs))), tool, on_tmpfs=True, scale=1.0, patience=patience)


def test_ratio_pairs_the_runs_of_a_round() -> None:
    assert Ratio.of(MORE, [30.0, 10.0, 20.0], [10.0, 10.0, 10.0]) == Ratio(median=2.0, best=3.0, worst=1.0)


def test_best_is_the_smallest_ratio_where_less_is_better() -> None:
    assert Ratio.of(LESS, [30.0, 10.0, 20.0], [10.0, 10.0, 10.0]) == Ratio(median=2.0, best=1.0, worst=3.0)


def test_a_row_may_be_judged_by_the_difference_of_the_runs_of_a_round() -> None:
    compared = Ratio.of(MORE_MS, [130.0, 90.0, 110.0], [100.0, 100.0, 0.0])
    assert compared == Ratio(median=30.0, best=-10.0, worst=110.0)
    assert compared.meets(MORE_MS)
    assert MORE_MS.goal_text() == "at most +40"
    assert [MORE_MS.compared_text(each) for each in (30.0, 0.0, -10.0)] == ["+30", "0", "-10"]


def test_there_is_no_ratio_to_zero() -> None:
    assert Ratio.of(PLAIN, [1.0], [0.0]) is None


@pytest.mark.parametrize(
    ("row", "median", "meets"), [(MORE, 1.5, True), (MORE, 1.49, False), (LESS, 0.5, True), (LESS, 0.51, False)]
)
def test_a_goal_is_met_from_its_own_value_on(row: Row, median: float, meets: bool) -> None:
    assert Ratio(median, median, median).meets(row) is meets


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (0.01234, "0.0123"), (12.34, "12.3"), (12345.6, "12,346")])
def test_figures_have_three_digits_or_all_before_the_point(value: float, text: str) -> None:
    assert figure(value) == text


@pytest.mark.parametrize(("ours", "is_met"), [([0.9, 1.5, 1.0], True), ([1.1, 0.2, 1.2], False)])
def test_a_goal_may_be_a_value_of_its_own_whatever_the_reference_reaches(ours: list[float], is_met: bool) -> None:
    row = Row("gap", "a gap", "section", "s", Better.LESS, 1.0, goal_is_value=True)
    assert meets_goal(row, ours, [10.0, 0.0, 0.1]) is is_met
    assert row.goal_text() == "at most 1 s"


def test_table_marks_goals_and_names_failures() -> None:
    case = Case("case", (MORE, LESS, PLAIN))
    results = Results()
    results.add(Role.CANDIDATE, {"rate": 20.0, "time": 6.0, "plain": 1.0})
    results.add(Role.REFERENCE, {"rate": 10.0, "time": 10.0, "plain": 2.0})
    broken = Case("broken", (Row("lost", "a lost one", "section", "s", Better.LESS, 1.0),))
    results.fail(broken, "kafka: it | ended")
    sides = [kaspar(), kafka()]
    lines = report.table(sides, [case, broken], results, with_goals=True).splitlines()
    assert "| a rate | MB/s | 20 | 10 | 2 | 2 | 2 | at least 1.5 | yes |" in lines
    assert "| a time | s | 6 | 10 | 0.6 | 0.6 | 0.6 | at most 0.5 | **no** |" in lines
    assert "| no goal | s | 1 | 2 | 0.5 | 0.5 | 0.5 |  |  |" in lines
    assert any(line.startswith("| a lost one | s | failed: kafka: it / ended |") for line in lines)
    assert len({line.count("|") for line in lines}) == 1
    assert report.summary([case, broken], results) == "1 of 3 goals met. Not met: time, lost."


def test_table_of_one_side_has_the_goals_for_its_values() -> None:
    gap = Row("gap", "a gap", "section", "s", Better.LESS, 1.0, goal_is_value=True)
    case = Case("case", (gap, PLAIN))
    results = Results()
    results.add(Role.CANDIDATE, {"gap": 2.0, "plain": 1.0})
    broken = Case("broken", (Row("lost", "a lost one", "section", "s", Better.LESS),))
    results.fail(broken, "kaspar: it ended")
    lines = report.table([kaspar()], [case, broken], results, with_goals=True).splitlines()
    assert "| a gap | s | 2 | at most 1 s | **no** |" in lines
    assert "| no goal | s | 1 |  |  |" in lines
    assert len({line.count("|") for line in lines}) == 1
    assert report.summary([case], results) == "0 of 1 goals met. Not met: gap."


def test_a_failed_case_leaves_no_value_of_an_earlier_round() -> None:
    results = Results()
    results.add(Role.CANDIDATE, {"rate": 20.0})
    results.fail(Case("case", (MORE,)), "it ended")
    assert "rate" not in results.values[Role.CANDIDATE]


def test_results_replace_only_what_stands_between_their_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin results: disk -->\nold\n<!-- end results: disk -->\nafter\n")
    report.write_into(page, "disk", "new")
    assert page.read_text() == "before\n<!-- begin results: disk -->\nnew\n<!-- end results: disk -->\nafter\n"
    with pytest.raises(ValueError, match="no place"):
        report.write_into(page, "tmpfs", "new")


def test_the_page_has_a_place_for_all_kinds_of_results(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text((Path(__file__).parents[3] / "docs" / "benchmarks.md").read_text())
    for name in ("tmpfs", "disk", "cluster", "registry"):
        report.write_into(page, name, f"figures of {name}")
        assert f"figures of {name}" in page.read_text()


@pytest.mark.parametrize(
    "cases", [all_cases(), all_cluster_cases(), all_registry_cases()], ids=["brokers", "clusters", "registry"]
)
def test_names_of_cases_and_rows_are_unique(
    cases: Sequence[Case] | Sequence[ClusterCase] | Sequence[RegistryCase],
) -> None:
    names = [case.name for case in cases]
    rows = [row.name for case in cases for row in case.rows]
    assert len(set(names)) == len(names)
    assert len(set(rows)) == len(rows)


class _Simulated(HighestRate):
    """A broker whose p99 is given by a function of the rate."""

    def __init__(self, p99_ms: Callable[[float], float]) -> None:
        super().__init__(1)
        self._p99_ms = p99_ms

    def send(self, bench: Bench, side: Side, mode: str, seconds: float, rate_or_depth: int) -> Load:
        measured: Mapping[str, float] = {
            "requests": 10.0,
            "responses": 10.0,
            "rate": float(rate_or_depth),
            "p99_us": self._p99_ms(rate_or_depth) * 1000,
        }
        return Load(measured, 0.0)


@pytest.mark.parametrize("limit", [700.0, 4_000.0, 5_000.0, 33_333.0, 250_000.0])
def test_highest_rate_is_found_within_five_percent(limit: float) -> None:
    found = _Simulated(lambda rate: 1.0 if rate <= limit else 50.0).measure(_bench(), kaspar())["highest_rate_c1"]
    assert limit / 1.05 <= found <= limit


def test_a_broker_that_is_always_late_is_a_failure() -> None:
    with pytest.raises(LoadError, match="over 10"):
        _Simulated(lambda rate: 50.0).measure(_bench(), kaspar())
