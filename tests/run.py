"""Everything that proves the product, in one command: `python -m tests.run`.

Style, types and import rules first, then the tests folder by folder. Folders whose tests keep one core busy run in two
lanes side by side, and each line of theirs names its folder. A failure does not end the run, so that all failures are
seen; the exit code tells. The end is a table of minutes and one line of counts.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAMS = Path(sys.executable).parent
NO_TESTS = 5  # pytest's exit code

CHECKS = (
    ("ruff check", ("ruff", "check", ".")),
    ("ruff format", ("ruff", "format", "--check", ".")),
    ("mypy", ("mypy",)),
    ("import rules", ("lint-imports",)),
)
ON_ALL_CORES = ("-n", "2")
LOOK_EVERY_SECONDS = 0.5
SLOWEST = ("--durations=10", "--durations-min=5")


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float


# In the proof a missing extension is a failure: everyone would measure and test the slow form without knowing.
COMPILED = {"KASPAR_COMPILED": "1"}
INTERPRETED = {"KASPAR_INTERPRETED": "1"}
LANES = (("integration", "compat"), ("spark", "chaos"))


def main() -> int:
    start = time.monotonic()
    core = [path for path in ("tests/unit/records", "tests/unit/protocol") if (ROOT / path).is_dir()]
    outcomes = [check(name, command) for name, command in CHECKS]
    outcomes += [
        pytest("unit", ["tests/unit"], ON_ALL_CORES, COMPILED),
        pytest("unit, interpreted core", core, ON_ALL_CORES, INTERPRETED),
        pytest("property", ["tests/property"], ON_ALL_CORES, COMPILED),
    ]
    with ThreadPoolExecutor(len(LANES)) as lanes:
        for lane in lanes.map(run_lane, LANES):
            outcomes += lane
    report(outcomes, time.monotonic() - start)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


def run_lane(folders: Sequence[str]) -> list[Outcome]:
    return [pytest(name, [f"tests/{name}"], (), COMPILED, prefix=f"{name:12}| ") for name in folders]


def check(name: str, command: Sequence[str]) -> Outcome:
    print(f"\n=== {name}", flush=True)
    start = time.monotonic()
    code = subprocess.run([PROGRAMS / command[0], *command[1:]], cwd=ROOT, check=False).returncode
    return Outcome(name, int(code == 0), int(code != 0), 0, time.monotonic() - start)


def pytest(
    name: str, paths: Sequence[str], options: Sequence[str], environment: Mapping[str, str], prefix: str = ""
) -> Outcome:
    print(f"\n=== {name}", flush=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.xml"
        command = [sys.executable, "-m", "pytest", *paths, *options, *SLOWEST, "-q", f"--junit-xml={counts}"]
        code = _run_and_print(command, environment, prefix, Path(folder) / "output.txt")
        passed, failed, skipped = _counts(counts)
    if code != 0 and failed == 0:
        failed = 1  # pytest itself did not come to an end, or found nothing to run
        print(f"{prefix}pytest ended with code {code}" + (": there are no tests here" if code == NO_TESTS else ""))
    return Outcome(name, passed, failed, skipped, time.monotonic() - start)


def _run_and_print(command: Sequence[str | Path], environment: Mapping[str, str], prefix: str, output: Path) -> int:
    """Run a program to its end, each line of its output printed soon, behind `prefix`; its exit code.

    The output goes through a file: a process that a test left behind would keep a pipe open, and the run waiting.
    """
    with (
        output.open("w") as written,
        output.open(errors="replace") as read,
        subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **environment}, stdout=written, stderr=subprocess.STDOUT
        ) as process,
    ):
        ended, unfinished = False, ""
        while not ended:
            ended = process.poll() is not None  # asked before the output is read, so that all of it is printed
            *whole, unfinished = (unfinished + read.read()).split("\n")
            for line in whole:
                print(prefix + line, flush=True)
            if not ended:
                time.sleep(LOOK_EVERY_SECONDS)
        if unfinished:
            print(prefix + unfinished, flush=True)
    return process.returncode


def _counts(file: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped, from pytest's report in JUnit's format."""
    if not file.exists():
        return 0, 0, 0
    suites = list(ElementTree.parse(file).getroot().iter("testsuite"))
    tests, failures, errors, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    )
    return tests - failures - errors - skipped, failures + errors, skipped


def report(outcomes: Sequence[Outcome], seconds: float) -> None:
    print(f"\n{'':24}{'minutes':>8}{'passed':>9}{'failed':>9}{'skipped':>9}")
    for each in outcomes:
        print(f"{each.name:24}{each.seconds / 60:8.1f}{each.passed:9}{each.failed:9}{each.skipped:9}")
    print(f"{'all':24}{seconds / 60:8.1f}\n")
    passed, failed, skipped = (
        sum(getattr(each, name) for each in outcomes) for name in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped")


if __name__ == "__main__":
    sys.exit(main())
