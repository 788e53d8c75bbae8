"""The supervisor, with small programs in the place of its host."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId
from kaspar.pipelines.exit_codes import RENEWED
from kaspar.pipelines.folder import Definition, Folder, RunningHost, RunningSupervisor, Seen
from kaspar.pipelines.statuses import PipelineStatus, State
from kaspar.pipelines.supervisor import Supervisor, end_leftovers

SECONDS = 20.0

HOST_PROGRAM = Path(__file__).with_name("host_program.py")


class Said:
    """What the supervisor says, and what it shows."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.states: list[State] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def show(self, statuses: Sequence[PipelineStatus]) -> None:
        self.states += [status.state for status in statuses]

    def wait_for(self, words: str) -> None:
        until = time.monotonic() + SECONDS
        while not any(words in line for line in self.lines):
            assert time.monotonic() < until, self.lines
            time.sleep(0.01)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setattr("kaspar.pipelines.supervisor._LOOK_EVERY_S", 0.02)
    made = Folder(tmp_path / "pipelines")
    made.make()
    made.define("app", Definition("/app.py", (), 1))
    return made


def supervisor(folder: Folder, said: Said, *, exit_code: int = 0, finished_after_s: float = 1e9) -> Supervisor:
    host = (sys.executable, str(HOST_PROGRAM), str(exit_code), str(finished_after_s))
    return Supervisor(folder, said, host)


def starts(folder: Folder) -> int:
    return len((folder.path / "starts").read_text())


class After(threading.Thread):
    """Does something beside the supervisor, which has the main thread, and then has that stop."""

    def __init__(self, said: Said, steps: Sequence[tuple[str, object]]) -> None:
        super().__init__()
        self._said, self._steps = said, steps
        self.start()

    def run(self) -> None:
        try:
            for words, action in self._steps:
                self._said.wait_for(words)
                assert callable(action)
                action()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)


def test_host_that_does_not_start_is_an_error_with_its_words(folder: Folder) -> None:
    said = Said()
    program = folder.path.parent / "host.py"
    program.write_text("import sys; print('ERROR x'); sys.exit('kaspar: Spark requires Java, and none was found')")
    with pytest.raises(KasparError, match=r"^Spark requires Java, and none was found \(log: .*host.log\)$"):
        Supervisor(folder, said, (sys.executable, str(program))).run()
    assert folder.supervisor() is None


def test_signal_stops_the_host_and_the_supervisor(folder: Folder) -> None:
    said = Said()
    running: list[RunningSupervisor | None] = []
    thread = After(said, [("Spark is ready", lambda: running.append(folder.supervisor()))])
    assert supervisor(folder, said).run() == 0
    thread.join()
    assert running == [RunningSupervisor(ProcessId.of(os.getpid()))]
    assert folder.supervisor() is None
    assert said.states[0] is State.RUNNING
    assert said.lines[-1].startswith("Stopping after the running micro-batches.")


def test_host_that_ends_is_started_again_and_the_reason_recorded(folder: Folder) -> None:
    said = Said()
    problems: list[str | None] = []

    def look() -> None:
        found = folder.supervisor()
        problems.append(None if found is None else found.problem)
        until = time.monotonic() + SECONDS
        while starts(folder) < 2:
            assert time.monotonic() < until
            time.sleep(0.01)

    steps = [
        ("Spark is ready", (folder.path / "end").touch),
        ("Restarting all pipelines in 0.5 s, because the host exited with code 70", look),
    ]
    thread = After(said, steps)
    assert supervisor(folder, said, exit_code=70).run() == 0
    thread.join()
    assert problems == ["the host exited with code 70"]
    assert starts(folder) == 2


def test_host_that_asks_for_another_process_gets_it_at_once(folder: Folder) -> None:
    said = Said()
    steps = [("Spark is ready", (folder.path / "end").touch), ("modules of a program have changed", lambda: None)]
    thread = After(said, steps)
    supervisor(folder, said, exit_code=RENEWED).run()
    thread.join()
    assert not any("start again in" in line for line in said.lines)


@pytest.mark.parametrize("finished_after_s", [0.0, 0.2], ids=["before it was seen to run", "after a while"])
def test_supervisor_ends_when_all_programs_have_finished(folder: Folder, finished_after_s: float) -> None:
    said = Said()
    assert supervisor(folder, said, finished_after_s=finished_after_s).run() == 0
    assert "All programs have finished." in said.lines


def test_supervisor_waits_for_changes_if_programs_had_finished_before_its_start(folder: Folder) -> None:
    said = Said()
    folder.write_seen("app", Seen(1, PipelineStatus("app", State.FINISHED, 0)))
    thread = After(said, [("Spark is ready", lambda: None)])
    assert supervisor(folder, said, finished_after_s=0.0).run() == 0
    thread.join()
    assert "All programs have finished." not in said.lines


def test_leftovers_of_a_killed_supervisor_are_ended_first(folder: Folder) -> None:
    end_leftovers(folder)  # there are none
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    folder.write_host(RunningHost(ProcessId.of(left.pid)))
    waiting = threading.Thread(target=left.wait)  # who reaps it
    waiting.start()
    end_leftovers(folder)
    waiting.join()
    assert left.returncode == -signal.SIGTERM


def test_supervisor_and_its_command_load_nothing_of_spark() -> None:
    program = (
        "import sys, kaspar.cli.main, kaspar.pipelines.supervisor, kaspar.pipelines.looking, kaspar.pipelines.display"
    )
    program += "; print([name for name in sys.modules if name.partition('.')[0] in ('pyspark', 'py4j', 'pyarrow')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
