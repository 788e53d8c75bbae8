"""What commands see, with a host and without."""

import os
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId
from kaspar.pipelines.control import ControlServer
from kaspar.pipelines.folder import Definition, Folder, RunningHost, RunningSupervisor, Seen, Wanted
from kaspar.pipelines.looking import details_of, statuses_of
from kaspar.pipelines.messages import Described, DescribePipeline, Pipelines, Request, Response
from kaspar.pipelines.statuses import PipelineDetails, PipelineStatus, State

HERE = ProcessId.of(os.getpid())
LIVE = PipelineStatus("app", State.RUNNING, 9)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "pipelines")
    made.make()
    made.define("app", Definition("/app.py", ("x",), 1))
    return made


def saw(folder: Folder, state: State, generation: int = 1) -> None:
    folder.write_seen("app", Seen(generation, PipelineStatus("app", state, 5, restarts=2, reason="before")))


def test_host_is_asked(folder: Folder) -> None:
    def respond(request: Request) -> Response:
        if isinstance(request, DescribePipeline):
            return Described(PipelineDetails(LIVE, "/app.py", (), "log", description="text"))
        return Pipelines((LIVE,), True)

    server = ControlServer(folder.socket, respond)
    try:
        assert statuses_of(folder) == [LIVE]
        assert details_of(folder, "app").description == "text"
        with pytest.raises(KasparError, match="there is no pipeline gone"):
            details_of(folder, "gone")
    finally:
        server.close()


@pytest.mark.parametrize(
    ("last", "wanted", "shown"),
    [
        (State.RUNNING, Wanted.RUNNING, State.INTERRUPTED),
        (State.FAILED, Wanted.RUNNING, State.INTERRUPTED),
        (State.INTERRUPTED, Wanted.RUNNING, State.INTERRUPTED),
        (State.FINISHED, Wanted.RUNNING, State.FINISHED),
        (State.RUNNING, Wanted.STOPPED, State.STOPPED),
    ],
)
def test_when_nothing_runs_the_folder_says_what_was(last: State, wanted: Wanted, shown: State, folder: Folder) -> None:
    folder.define("app", Definition("/app.py", ("x",), 1, wanted))
    saw(folder, last)
    (status,) = statuses_of(folder)
    assert (status.state, status.restarts, status.reason) == (shown, 2, "before")
    details = details_of(folder, "app")
    assert (details.program, details.arguments, details.log) == ("/app.py", ("x",), str(folder.log("app")))


def test_state_of_an_earlier_generation_is_none_of_this_one(folder: Folder) -> None:
    saw(folder, State.FINISHED, generation=0)
    (status,) = statuses_of(folder)
    assert (status.state, status.restarts) == (State.INTERRUPTED, 0)


def test_supervisor_without_a_host_is_restarting_it(folder: Folder) -> None:
    saw(folder, State.RUNNING)
    folder.write_supervisor(RunningSupervisor(HERE, "the host was killed by SIGKILL"))
    (status,) = statuses_of(folder)
    assert (status.state, status.reason) == (State.RESTARTING, "the host was killed by SIGKILL")


def test_host_that_is_too_busy_to_respond_says_what_it_wrote(folder: Folder) -> None:
    saw(folder, State.RUNNING)
    folder.write_supervisor(RunningSupervisor(HERE))
    folder.write_host(RunningHost(HERE))
    assert [status.state for status in statuses_of(folder)] == [State.RUNNING]


def test_folder_that_is_not_there_has_no_pipelines(tmp_path: Path) -> None:
    assert statuses_of(Folder(tmp_path / "none")) == []
