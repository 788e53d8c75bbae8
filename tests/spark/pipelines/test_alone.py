"""A program that runs its pipeline by itself: `python app.py`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.processes import ProcessId, descendants
from tests.spark.pipelines.supervised import COUNTING, Counts, wait_until


class Alone:
    def __init__(self, folder: Path) -> None:
        self.counts = Counts(folder)
        self._output = folder / "output"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, COUNTING, folder],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "KASPAR_SPARK_MASTER": "local[1]"},
            )

    def text(self) -> str:
        return self._output.read_text()

    def ctrl_c(self) -> None:
        """As a terminal sends it: to the JVM and the workers too."""
        os.killpg(self.process.pid, signal.SIGINT)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    running = Alone(tmp_path / "alone")
    yield running
    if running.process.poll() is None:
        os.killpg(running.process.pid, signal.SIGKILL)
        running.process.wait()


def test_program_restarts_a_failed_query_and_ctrl_c_lets_the_micro_batch_finish(alone: Alone) -> None:
    alone.counts.wait_for_more(alone.text)
    (alone.counts.folder / "fail").touch()
    wait_until(lambda: "ValueError: told to fail in alone" in alone.text(), "the reason is shown", alone.text)
    alone.counts.wait_for_more(alone.text)
    end = alone.counts.begin_slow_batch(alone.text)
    alone.ctrl_c()
    assert alone.process.wait(60) == 0
    assert end in alone.counts.lines()
    assert alone.counts.lines("session")[-1] == "returned"
    assert "Traceback" not in alone.text()


@pytest.mark.long
def test_second_ctrl_c_ends_it_at_once(alone: Alone) -> None:
    alone.counts.wait_for_more(alone.text)
    end = alone.counts.begin_slow_batch(alone.text)
    while alone.process.poll() is None:  # the kernel may make one signal of two
        alone.ctrl_c()
        time.sleep(0.1)
    assert alone.process.returncode == 130
    assert end not in alone.counts.lines()


@pytest.mark.long
def test_program_ends_with_its_jvm(alone: Alone) -> None:
    alone.counts.wait_for_more(alone.text)
    (jvm, *_) = [each for each in descendants(ProcessId.of(alone.process.pid)) if _is_java(each)]
    os.kill(jvm.pid, signal.SIGKILL)
    assert alone.process.wait(60) == 1
    assert "SessionLost: Spark's JVM was killed by SIGKILL" in alone.text()


def _is_java(process: ProcessId) -> bool:
    return b"java" in Path(f"/proc/{process.pid}/cmdline").read_bytes().partition(b"\0")[0]
