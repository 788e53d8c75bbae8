"""The runner of all tests: that no test is left out or run twice, and that its report says what happened."""

from pathlib import Path

import pytest

from tests.run import (
    COMPILED,
    JOBS,
    LANES,
    LONG_JOBS,
    MOST_TRIED_AGAIN,
    QUICK_JOBS,
    ROOT,
    Job,
    Outcome,
    Run,
    is_mere_progress,
    percent_in,
    pytest_command,
    read_results,
    report,
)


def runs(job: Job, file: str) -> bool:
    """Whether this job's pytest is given `file`."""
    command = [str(word) for word in pytest_command(job, Path("results.xml"))]
    ignored = [word.removeprefix("--ignore=") for word in command if word.startswith("--ignore=")]
    return any(file.startswith(f"{path}/") for path in job.paths) and not any(
        file.startswith(f"{path}/") for path in ignored
    )


def test_every_file_of_tests_is_run_by_one_job() -> None:
    files = [str(each.relative_to(ROOT)) for each in (ROOT / "tests").rglob("test_*.py")]
    jobs = [job for job in JOBS if job.environment == COMPILED]
    by_file = {file: [job.name for job in jobs if runs(job, file)] for file in files}
    assert {file: names for file, names in by_file.items() if len(names) != 1} == {}


@pytest.mark.parametrize("job", [*JOBS, *LONG_JOBS], ids=lambda job: job.name)
def test_paths_of_jobs_exist(job: Job) -> None:
    assert [path for path in job.paths if not _exists(path)] == []


def _exists(path: str) -> bool:
    """A folder, a file, or a test of a file."""
    file, _, test = path.partition("::")
    return f"\ndef {test}(" in (ROOT / file).read_text() if test else (ROOT / path).exists()


def test_a_run_is_expected_to_take_as_long_as_its_longest_lane() -> None:
    jobs = [Job("a", 3.0), Job("b", 1.0), Job("c", 1.5), Job("d", 2.0)]
    assert Run(jobs, lanes=2).expected_minutes() == 4.5  # a, then d beside b and c: d starts at 2.5
    assert Run(jobs, lanes=1).expected_minutes() == 7.5


def test_everything_is_planned_to_take_at_most_28_minutes() -> None:
    assert Run(JOBS, LANES).expected_minutes() <= 28
    assert Run(QUICK_JOBS, LANES).expected_minutes() <= 4


@pytest.mark.parametrize(
    ("line", "percent", "mere"),
    [
        ("tests/unit/a.py::test_b PASSED                          [  7%]", 7, True),
        ("tests/unit/a.py::test_b[FAILED] FAILED                  [100%]", 100, False),
        ("tests/unit/a.py::test_b[ERROR] PASSED                   [ 99%]", 99, True),
        ("tests/unit/a.py::test_b SKIPPED (Go is missing)         [ 50%]", 50, True),
        ("tests/unit/a.py::test_b ERROR                           [ 51%]", 51, False),
        ("tests/unit/a.py::test_b ", None, True),
        ("  ready in 23 ms in this process", None, False),
        ("E   assert 1 == 2", None, False),
    ],
)
def test_lines_of_pytest_are_progress_or_printed(line: str, percent: int | None, mere: bool) -> None:
    assert (percent_in(line), is_mere_progress(line)) == (percent, mere)


class UnsteadyRun(Run):
    """Each job fails in the tests that are its paths, and then only in those that are called broken."""

    def _pytest(self, job: Job) -> Outcome:
        failed = [test for test in job.paths if "broken" in test or not job.name.endswith("again")]
        passed = len(job.paths) - len(failed)
        return Outcome(job, 1.0, passed, failed, durations=[(1.0, test) for test in job.paths])


def test_what_fails_is_tried_again_and_reported_as_unsteady_if_it_passes() -> None:
    (outcome,) = UnsteadyRun([Job("some", 1.0, ("a.py::test_b", "a.py::test_broken"))], lanes=1).run()
    assert (outcome.passed, outcome.failed, outcome.unsteady) == (1, ["a.py::test_broken"], ["a.py::test_b"])
    lines = report([outcome], 1.0).splitlines()
    assert lines[-1] == "1 passed, 1 failed, 0 skipped"
    assert lines.count("  some: a.py::test_b") == 1


def test_many_failures_are_not_tried_again() -> None:
    tests = tuple(f"a.py::test_{number}" for number in range(MOST_TRIED_AGAIN + 1))
    (outcome,) = UnsteadyRun([Job("some", 1.0, tests)], lanes=1).run()
    assert (len(outcome.failed), outcome.unsteady) == (MOST_TRIED_AGAIN + 1, ())


RESULTS = """<testsuites><testsuite>
<testcase classname="tests.unit.test_run" name="test_passes" time="0.5"/>
<testcase classname="tests.unit.test_run.TestB" name="test_fails"><failure/></testcase>
<testcase classname="tests.unit.test_run.TestB" name="test_fails"><error/></testcase>
<testcase classname="tests.unit.test_run" name="test_goes" time="0">
<skipped message="Go is missing"/></testcase>
</testsuite></testsuites>"""


def test_results_are_read_with_the_names_that_pytest_takes(tmp_path: Path) -> None:
    file = tmp_path / "results.xml"
    assert read_results(file) == []
    file.write_text(RESULTS)
    passes, fails, skipped = read_results(file)
    assert (passes.name, passes.failed, passes.skipped) == ("tests/unit/test_run.py::test_passes", False, None)
    assert (fails.name, fails.failed) == ("tests/unit/test_run.py::TestB::test_fails", True)
    assert skipped.skipped == "Go is missing"


def test_report_names_failures_skips_and_jobs_over_their_budget() -> None:
    slow = Outcome(
        Job("slow", 1.0), 90.0, 3, ["tests/a.py::test_b"], ["Go is missing"] * 2, [(60.0, "tests/a.py::test_c")]
    )
    quick = Outcome(Job("quick", 1.0), 30.0, 4)
    lines = report([slow, quick], 100.0).splitlines()
    assert lines[-1] == "7 passed, 1 failed, 2 skipped"
    assert [line.split()[0] for line in lines if line.endswith("  over its budget")] == ["slow"]
    assert "Warning: over their time budgets (which is no failure): slow" in lines
    assert "  slow: tests/a.py::test_b" in lines
    assert "    60.0  tests/a.py::test_c" in lines
    assert "       2  Go is missing" in lines
