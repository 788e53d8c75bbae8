"""Processes known by their id and the moment they started."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kaspar.base import processes
from kaspar.base.processes import ProcessId, descendants, end_all, session_of


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_process_is_known_again(sleeper: "subprocess.Popen[bytes]") -> None:
    assert ProcessId.of(sleeper.pid).is_running()


def test_another_process_with_the_same_id_is_not_the_same(sleeper: "subprocess.Popen[bytes]") -> None:
    there = ProcessId.of(sleeper.pid)
    earlier = ProcessId(there.pid, there.start_ticks - 1)
    assert not earlier.is_running()
    assert end_all([earlier]) == 0
    assert there.is_running()


def test_process_that_has_ended_does_not_run_even_before_it_is_waited_for(sleeper: "subprocess.Popen[bytes]") -> None:
    known = ProcessId.of(sleeper.pid)
    assert end_all([known]) == 1
    assert not known.is_running()
    assert end_all([known]) == 0


def test_process_that_is_gone_was_never_running() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert not ProcessId.of(process.pid).is_running()


def test_what_does_not_end_when_asked_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "EXIT_TIMEOUT_S", 0.3)
    program = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as deaf:
        assert deaf.stdout is not None
        deaf.stdout.readline()
        assert end_all([ProcessId.of(deaf.pid)]) == 1
        assert deaf.wait() == -9


def test_descendants_are_all_generations() -> None:
    with subprocess.Popen(["sh", "-c", "sh -c 'sleep 600; true'; true"]) as parent:
        known = ProcessId.of(parent.pid)
        try:
            while len(descendants(known)) < 2:
                os.sched_yield()
            family = descendants(known)
            assert all(each.is_running() for each in family)
            assert known in descendants(ProcessId.of(os.getpid()))
        finally:
            end_all([known, *descendants(known)])


def test_session_has_also_the_children_of_a_leader_that_has_ended() -> None:
    script = "sleep 60 >/dev/null & echo $!"
    leader = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    child, _ = leader.communicate(timeout=10)
    known = ProcessId.of(int(child))
    assert session_of(ProcessId(leader.pid, 0)) == [known]
    assert end_all([known]) == 1
    assert session_of(ProcessId(leader.pid, 0)) == []
