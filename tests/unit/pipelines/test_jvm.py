"""Whether a session can still be used."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kaspar.pipelines import jvm as jvms
from kaspar.pipelines.jvm import Jvm, how_it_ended


class Context:
    """A SparkContext, which is reached or not."""

    def __init__(self, *, stopped: bool = False, reached: bool = True) -> None:
        self.stopped = stopped
        self.reached = reached
        self.asked = 0
        self._jsc: Any = self

    def sc(self) -> "Context":
        return self

    def isStopped(self) -> bool:  # noqa: N802
        self.asked += 1
        if not self.reached:
            raise ConnectionError
        return self.stopped


class Session:
    def __init__(self, context: Context) -> None:
        self.sparkContext = context


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    running = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield running
    running.kill()
    running.wait()


def jvm(context: Context, process: "subprocess.Popen[bytes] | None") -> Jvm:
    session: Any = Session(context)
    made = Jvm(session)
    made._process = process
    return made


def test_session_that_runs_has_no_problem(process: "subprocess.Popen[bytes]") -> None:
    assert jvm(Context(), process).problem() is None
    assert jvm(Context(), None).problem() is None


def test_session_that_was_stopped(process: "subprocess.Popen[bytes]") -> None:
    assert jvm(Context(stopped=True), process).problem() == "the Spark session was stopped"
    context = Context()
    context._jsc = None  # by this Python
    assert jvm(context, process).problem() == "the Spark session was stopped"


def test_jvm_that_was_killed(process: "subprocess.Popen[bytes]") -> None:
    watched = jvm(Context(), process)
    process.kill()
    process.wait()
    assert watched.problem() == "Spark's JVM was killed by SIGKILL"


def test_jvm_whose_connections_close_before_it_has_ended() -> None:
    dying = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2); exit(3)"])
    assert jvm(Context(reached=False), dying).problem() == "Spark's JVM exited with code 3"


def test_jvm_that_does_not_respond_is_tried_again(
    process: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvms, "_END_S", 0.01)
    context = Context(reached=False)
    assert jvm(context, process).problem() == "Spark's JVM does not respond"
    assert context.asked > 1


def test_end_is_described() -> None:
    assert how_it_ended(3) == "exited with code 3"
    assert how_it_ended(-signal.SIGKILL) == "was killed by SIGKILL"
    assert how_it_ended(-200) == "was killed by signal 200"
