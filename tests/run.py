"""The full test suite in one command: `python -m tests.run` (`make test`).

The tests are divided into jobs (`JOBS`): checks of style, types, imports and pages, then folders of tests. Lanes take
the jobs from one queue, one more than there are cores, because tests often wait, and every line of output names its
job. A failure does not end the run, so that all failures are seen; the exit code reports them. The run ends with a
table of the jobs with their minutes and budgets, the slowest tests, and one line of counts.

If only a few tests fail, they are rerun alone at the end. A test that then passes is reported as unsteady: it does not
fail the run, but it is still a bug, in the test or in the product (as in Apache Kafka's own builds).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAMS = Path(sys.executable).parent
NO_TESTS = 5  # pytest's exit code
LANES = 3
MOST_TRIED_AGAIN = 5  # if more fail, something is broken
LOOK_EVERY_SECONDS = 0.5
PROGRESS_EVERY_SECONDS = 30
SLOWEST = 15

# A missing extension is a failure here: otherwise everyone would test the slow form without knowing.
COMPILED = {"KASPAR_COMPILED": "1"}
INTERPRETED = {"KASPAR_INTERPRETED": "1"}
MANY_ROUNDS = {**COMPILED, "CHAOS_ROUNDS": os.environ.get("CHAOS_ROUNDS", "100")}

CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("lint-imports",),
    ("mkdocs", "build", "--strict"),
)


@dataclass(frozen=True, slots=True)
class Job:
    """What a lane runs at a time: pytest on some paths, without those that have a job of their own; or the checks."""

    name: str
    budget: float  # in minutes, beside other jobs on two cores; the run reports a job that takes longer
    paths: tuple[str, ...] = ()  # none: the checks
    environment: Mapping[str, str] = field(default_factory=lambda: COMPILED)
    options: tuple[str, ...] = ()


# In the order in which they start: first those that find most mistakes soonest, then the longest, so that the lanes end
# at about the same time.
QUICK_JOBS = (
    Job("property", 4.0, ("tests/property",)),
    Job("unit", 4.0, ("tests/unit",)),
)
# The tests of the compiled modules, on their interpreted form.
INTERPRETED_TESTS = (
    "tests/unit/records",
    "tests/unit/protocol",
    "tests/property/test_codecs.py",
    "tests/property/test_produce_lanes.py",
)
# A few tests of each area, through clients of every kind. `make compat-cluster` runs all of them.
COMPAT_ON_A_CLUSTER = (
    "tests/compat/test_produce.py::test_an_idempotent_producer_writes_each_record_once",
    "tests/compat/test_produce.py::test_one_call_may_write_to_several_partitions",
    "tests/compat/test_consume.py::test_a_waiting_consumer_is_woken",
    "tests/compat/test_topics.py::test_a_created_topic_is_seen_by_others",
    "tests/compat/test_configs.py::test_a_changed_setting_is_seen_and_applied",
    "tests/compat/groups/test_commits.py::test_the_next_member_goes_on_at_the_commit",
    "tests/compat/groups/test_membership.py::test_partitions_move_to_a_member_that_joins_and_back_when_it_leaves",
    "tests/compat/transactions/test_transactions.py::test_read_committed_consumers_see_only_committed_records",
    "tests/compat/transactions/test_consume_transform_produce.py::test_each_record_is_transformed_once",
)
# The schema registry and the REST proxy, and what they are built on.
SERVICES = (
    "tests/integration/registry",
    "tests/integration/rest",
    "tests/integration/web",
    "tests/integration/serialization",
    "tests/compat/registry",
)
JOBS = (
    Job("checks", 1.0),
    *QUICK_JOBS,
    Job("interpreted core", 1.0, INTERPRETED_TESTS, INTERPRETED),
    Job("spark", 14.5, ("tests/spark",)),
    Job("integration", 14.5, ("tests/integration",)),
    Job("compat", 11.0, ("tests/compat",)),
    Job("streams on Spark", 8.0, ("tests/spark/programs", "tests/spark/pipelines")),
    Job("chaos", 6.5, ("tests/chaos",)),
    Job("compat/responses", 6.5, ("tests/compat/responses",)),
    Job("commands", 4.0, ("tests/compat/commands", "tests/integration/cli", "tests/integration/tools")),
    Job("browser", 3.5, ("tests/browser",)),
    Job("services", 2.0, SERVICES),
    Job("compat on a cluster", 1.0, COMPAT_ON_A_CLUSTER, options=("--against", "cluster")),
    Job("sim", 1.0, ("tests/sim",)),
    Job("streams", 0.5, ("tests/streams",)),
    Job("packaging", 0.5, ("tests/packaging",)),
)
# What stock clients do while something fails, over SASL_SSL with ACLs.
SECURED_CHAOS = (
    "tests/chaos/test_kill.py",
    "tests/chaos/test_exactly_once.py",
    "tests/chaos/test_groups.py",
    "tests/chaos/test_power_cut.py",
    "tests/chaos/test_cluster.py",
    "tests/spark/chaos/test_exactly_once.py",
)
LONG_JOBS = (
    Job("chaos, many rounds", 60.0, ("tests/chaos",), MANY_ROUNDS),
    Job("chaos, secured", 12.0, SECURED_CHAOS, options=("--secured",)),
    Job("spark/chaos, many rounds", 60.0, ("tests/spark/chaos",), MANY_ROUNDS),
    Job("compat, long", 30.0, ("tests/compat",), options=("--long",)),
    Job("spark, long", 12.0, ("tests/spark",), options=("--long",)),
    Job("integration, long", 8.0, ("tests/integration",), options=("--long",)),
    Job("sim, long", 10.0, ("tests/sim",), options=("--long",)),
    Job("property, long", 5.0, ("tests/property",), options=("--long",)),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    job: Job
    seconds: float
    passed: int = 0
    failed: Sequence[str] = ()  # the tests, or what else went wrong
    skipped: Sequence[str] = ()  # the reasons
    durations: Sequence[tuple[float, str]] = ()  # seconds and test
    unsteady: Sequence[str] = ()  # of the tests that passed, those that had failed before


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.run", description="Run everything that proves the product.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", dest="jobs", action="store_const", const=QUICK_JOBS, help="unit and property tests")
    which.add_argument("--long", dest="jobs", action="store_const", const=LONG_JOBS, help="only the long forms")
    parser.add_argument("--lanes", type=int, default=LANES, help="jobs that run at a time (default: %(default)s)")
    parser.add_argument(
        "--results", type=Path, metavar="FOLDER", help="keep the results of the jobs, in JUnit's format"
    )
    parser.add_argument("only", nargs="*", metavar="JOB", help="run only these jobs")
    parser.set_defaults(jobs=JOBS)
    chosen = parser.parse_args(argv)
    known = {job.name: job for job in chosen.jobs}
    for name in chosen.only:
        if name not in known:
            parser.error(f"there is no job {name!r}; there are: {', '.join(known)}")
    run = Run([job for job in chosen.jobs if not chosen.only or job.name in chosen.only], chosen.lanes, chosen.results)
    outcomes = run.run()
    print(report(outcomes, run.elapsed()), flush=True)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


class Run:
    """The jobs of one run, and how far each of them is."""

    def __init__(self, jobs: Sequence[Job], lanes: int, results: Path | None = None) -> None:
        self.jobs = jobs
        self.lanes = lanes
        self._results = results
        self._width = max(len(job.name) for job in jobs)
        self._percent: dict[str, int] = {}  # by name, of the jobs that have started
        self._start = time.monotonic()
        self._ended = threading.Event()

    def run(self) -> list[Outcome]:
        budgets = ", ".join(f"{job.name} {job.budget:g}" for job in self.jobs)
        self._say(f"{len(self.jobs)} jobs, {self.lanes} at a time: about {self.expected_minutes():.0f} minutes")
        self._say(f"minutes planned for each: {budgets}")
        threading.Thread(target=self._show_progress, daemon=True).start()
        with ThreadPoolExecutor(self.lanes) as lanes:
            outcomes = list(lanes.map(self._run_job, self.jobs))
        self._ended.set()
        return self._try_again(outcomes)

    def _try_again(self, outcomes: list[Outcome]) -> list[Outcome]:
        failed = sum(len(each.failed) for each in outcomes)
        if not 0 < failed <= MOST_TRIED_AGAIN:
            return outcomes
        self._say(f"what failed is tried again by itself: {failed}")
        return [self._tried_again(each) if each.failed and each.job.paths else each for each in outcomes]

    def _tried_again(self, outcome: Outcome) -> Outcome:
        again = self._pytest(replace(outcome.job, name=f"{outcome.job.name}, again", paths=tuple(outcome.failed)))
        passed = {name for _, name in again.durations} - set(again.failed)
        unsteady = [name for name in outcome.failed if name in passed]
        failed = [name for name in outcome.failed if name not in passed]
        return replace(outcome, passed=outcome.passed + len(unsteady), failed=failed, unsteady=unsteady)

    def elapsed(self) -> float:
        return time.monotonic() - self._start

    def expected_minutes(self) -> float:
        """How long the lanes take when every job takes its budget."""
        lanes = [0.0] * self.lanes
        for job in self.jobs:
            lanes[lanes.index(min(lanes))] += job.budget
        return max(lanes)

    def progress(self) -> str:
        done = sum(job.budget * self._percent.get(job.name, 0) for job in self.jobs)
        running = [f"{name} {percent} %" for name, percent in self._percent.items() if percent < 100]
        share = f"{done / sum(job.budget for job in self.jobs):.0f} % done"
        return f"{share}; running: {', '.join(running)}" if running else share

    def _show_progress(self) -> None:
        while not self._ended.wait(PROGRESS_EVERY_SECONDS):
            self._say(self.progress())

    def _say(self, text: str) -> None:
        minutes, seconds = divmod(int(self.elapsed()), 60)
        print(f"[{minutes:2}:{seconds:02}] {text}", flush=True)

    def _run_job(self, job: Job) -> Outcome:
        self._percent[job.name] = 0
        self._say(f"{job.name}: started")
        outcome = self._pytest(job) if job.paths else self._checks(job)
        self._percent[job.name] = 100
        counts = f"{outcome.passed} passed, {len(outcome.failed)} failed, {len(outcome.skipped)} skipped"
        self._say(f"{job.name}: {counts} in {outcome.seconds / 60:.1f} minutes; {self.progress()}")
        return outcome

    def _checks(self, job: Job) -> Outcome:
        start = time.monotonic()
        failed = []
        for number, command in enumerate(CHECKS):
            self._percent[job.name] = 100 * number // len(CHECKS)
            check = subprocess.run(
                [PROGRAMS / command[0], *command[1:]], cwd=ROOT, check=False, capture_output=True, text=True
            )
            if check.returncode != 0:
                failed.append(" ".join(command))
                for line in (check.stdout + check.stderr).splitlines():
                    self._print_line(job, line)
        return Outcome(job, time.monotonic() - start, len(CHECKS) - len(failed), failed)

    def _pytest(self, job: Job) -> Outcome:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "results.xml"
            code = self._run_and_print(job, pytest_command(job, results), Path(folder) / "output.txt")
            cases = read_results(results)
            if self._results is not None and results.exists():
                self._results.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(results, self._results / f"{re.sub('[^a-z]+', '-', job.name)}.xml")
        failed = [case.name for case in cases if case.failed]
        nothing_long = code == NO_TESTS and "--long" in job.options
        if code != 0 and not failed and not nothing_long:
            failed = [f"pytest on {' '.join(job.paths)} (exit code {code}" + ", no tests)" * (code == NO_TESTS)]
        skipped = [case.skipped for case in cases if case.skipped is not None]
        durations = [(case.seconds, case.name) for case in cases]
        passed = sum(not case.failed and case.skipped is None for case in cases)
        return Outcome(job, time.monotonic() - start, passed, failed, skipped, durations)

    def _run_and_print(self, job: Job, command: Sequence[str | Path], output: Path) -> int:
        """Run a program to its end and print each line of its output soon, but for tests that passed; its exit code.

        The output goes through a file: a process that a test left behind would keep a pipe open, and the run waiting.
        """
        with (
            output.open("w") as written,
            output.open(errors="replace") as read,
            subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, **job.environment}, stdout=written, stderr=subprocess.STDOUT
            ) as process,
        ):
            ended, unfinished = False, ""
            while not ended:
                ended = process.poll() is not None  # asked before the output is read, so that all of it is printed
                *whole, unfinished = (unfinished + read.read()).split("\n")
                for line in [*whole, unfinished] if ended else whole:
                    self._print_line(job, line)
                if not ended:
                    time.sleep(LOOK_EVERY_SECONDS)
        return process.returncode

    def _print_line(self, job: Job, line: str) -> None:
        percent = percent_in(line)
        if percent is not None:
            self._percent[job.name] = min(percent, 99)
        if line.strip() and not is_mere_progress(line):
            print(f"{job.name:{self._width}} | {line}", flush=True)


def pytest_command(job: Job, results: Path) -> list[str | Path]:
    """With a line for each test (-v), whose percentages are the progress."""
    ignored = []
    if job in JOBS:
        alike = [other for other in JOBS if (other.environment, other.options) == (job.environment, job.options)]
        others = [path for other in alike for path in other.paths]
        ignored = [path for path in others if any(path.startswith(f"{outer}/") for outer in job.paths)]
    options = ["-v", "--no-header", "-rfE", "--color=no", f"--junit-xml={results}", *job.options]
    return [sys.executable, "-m", "pytest", *job.paths, *(f"--ignore={path}" for path in ignored), *options]


def percent_in(line: str) -> int | None:
    """The percentage at the end of pytest's line about a test."""
    found = re.search(r"\[ *(\d+)%\]$", line)
    return int(found[1]) if found else None


def is_mere_progress(line: str) -> bool:
    """Whether this line is about a test that did not fail: it counts, but need not be read."""
    if percent_in(line) is not None:
        return re.search(r" (FAILED|ERROR) +\[ *\d+%\]$", line) is None
    return re.match(r"tests/\S+\.py::.* $", line) is not None  # a test that prints cuts its line in two


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    seconds: float
    failed: bool
    skipped: str | None  # the reason


def read_results(file: Path) -> list[Case]:
    """The tests of pytest's report in JUnit's format; none if pytest did not come to an end."""
    if not file.exists():
        return []
    cases: dict[str, Case] = {}
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        name = _test_id(case)
        skip = case.find("skipped")
        failed = case.find("failure") is not None or case.find("error") is not None
        if name in cases:  # pytest writes a test that fails, and whose teardown then fails, twice
            failed = failed or cases[name].failed
        cases[name] = Case(
            name, float(case.get("time", 0)), failed, None if skip is None else skip.get("message", "no reason given")
        )
    return list(cases.values())


def _test_id(case: ElementTree.Element) -> str:
    """As pytest takes it on its command line."""
    *words, name = [*case.get("classname", "").split("."), case.get("name", "")]
    for length in range(len(words), 0, -1):
        file = "/".join(words[:length]) + ".py"
        if (ROOT / file).exists():
            return "::".join([file, *words[length:], name])
    return "::".join([*words, name])


def report(outcomes: Sequence[Outcome], seconds: float) -> str:
    lines = ["", f"{'':26}{'passed':>8}{'failed':>8}{'skipped':>8}{'minutes':>9}{'budget':>8}"]
    for each in outcomes:
        counts = f"{each.passed:8}{len(each.failed):8}{len(each.skipped):8}"
        over = "  over its budget" if each.seconds > each.job.budget * 60 else ""
        lines.append(f"{each.job.name:26}{counts}{each.seconds / 60:9.1f}{each.job.budget:8.1f}{over}")
    lines.append(f"{'all':26}{'':24}{seconds / 60:9.1f}")

    slowest = sorted((entry for each in outcomes for entry in each.durations), reverse=True)[:SLOWEST]
    if slowest:
        lines += ["", "the slowest tests, in seconds:", *(f"{taken:8.1f}  {name}" for taken, name in slowest)]
    reasons = Counter(reason for each in outcomes for reason in each.skipped)
    if reasons:
        lines += ["", "skipped:", *(f"{count:8}  {reason}" for reason, count in reasons.most_common())]
    failed = [f"{each.job.name}: {what}" for each in outcomes for what in each.failed]
    if failed:
        lines += ["", "failed:", *(f"  {what}" for what in failed)]
    unsteady = [f"{each.job.name}: {what}" for each in outcomes for what in each.unsteady]
    if unsteady:
        lines += ["", "unsteady: failed, and passed when tried again. Each is a defect, and should be found:"]
        lines += [f"  {what}" for what in unsteady]
    late = [each.job.name for each in outcomes if each.seconds > each.job.budget * 60]
    if late:
        lines += ["", f"Warning: over their time budgets (which is no failure): {', '.join(late)}"]

    passed, skipped = sum(each.passed for each in outcomes), reasons.total()
    return "\n".join([*lines, "", f"{passed} passed, {len(failed)} failed, {skipped} skipped"])


if __name__ == "__main__":
    sys.exit(main())
