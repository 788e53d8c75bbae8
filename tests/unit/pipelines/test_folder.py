"""The files of a supervisor: who may use them, and what they say after any end."""

import os
import stat
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId
from kaspar.pipelines.folder import (
    Definition,
    Folder,
    RunningHost,
    RunningSupervisor,
    Seen,
    SessionPlan,
    Wanted,
    check_name,
    default_folder,
)
from kaspar.pipelines.statuses import PipelineStatus, State

APP = Definition("/srv/app.py", ("--fast",), 7)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "pipelines")
    made.make()
    return made


def test_default_is_in_the_users_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_folder() == Path("/state/kaspar/pipelines")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_folder() == Path.home() / ".local/state/kaspar/pipelines"


def test_only_the_owner_may_enter(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o777)
    for path in (tmp_path / "new", tmp_path / "open"):
        Folder(path).make()
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_folder_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    tmp_path.chmod(0o755)
    with pytest.raises(KasparError, match="is not empty and was not created by 'kaspar pipeline'"):
        Folder(tmp_path).make()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_folder_of_another_user_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: folder.path.stat().st_uid + 1)
    with pytest.raises(KasparError, match="belongs to another user"):
        folder.make()


def test_one_supervisor_at_a_time(folder: Folder) -> None:
    with folder.supervising() as first, folder.supervising() as second:
        assert (first, second) == (True, False)
    with folder.supervising() as third:
        assert third


def test_definition_is_kept(folder: Folder) -> None:
    assert folder.definitions() == {}
    folder.define("b", APP)
    folder.define("a", Definition("/srv/other.py", (), 8, Wanted.STOPPED))
    again = Folder(folder.path)
    assert again.names() == ["a", "b"]
    assert again.definitions()["b"] == APP
    assert again.definitions()["a"].wanted is Wanted.STOPPED


def test_damaged_definition_is_named(folder: Folder) -> None:
    folder.define("app", APP)
    file = folder.path / "pipelines/app/pipeline.json"
    file.write_text('{"program": 3}')
    with pytest.raises(KasparError, match=f"{file} was not written by 'kaspar pipeline'"):
        folder.definitions()


def test_damaged_state_is_as_none(folder: Folder) -> None:
    folder.define("app", APP)
    (folder.path / "pipelines/app/state.json").write_text("{")
    assert folder.seen("app") is None


def test_finished_counts_for_its_generation_only(folder: Folder) -> None:
    folder.define("app", APP)
    folder.write_seen("app", Seen(7, PipelineStatus("app", State.FINISHED, 1)))
    assert folder.has_finished("app", APP)
    assert not folder.has_finished("app", Definition("/srv/app.py", (), 8))


def test_forgotten_pipeline_leaves_nothing_and_its_state_is_not_written_any_more(folder: Folder) -> None:
    folder.define("app", APP)
    folder.log("app").write_text("a log")
    folder.forget("app")
    folder.write_seen("app", Seen(7, PipelineStatus("app", State.STOPPED, 1)))
    assert folder.names() == []
    assert list((folder.path / "pipelines").iterdir()) == []


def test_supervisor_that_has_ended_is_none(folder: Folder) -> None:
    here = ProcessId.of(os.getpid())
    folder.write_supervisor(RunningSupervisor(here, "no host"))
    assert folder.supervisor() == RunningSupervisor(here, "no host")
    folder.write_supervisor(RunningSupervisor(ProcessId(here.pid, here.start_ticks - 1)))
    assert folder.supervisor() is None
    folder.remove_supervisor()
    assert folder.supervisor() is None


def test_host_and_session_are_kept(folder: Folder) -> None:
    assert folder.host() is None
    assert folder.session() == SessionPlan()
    folder.write_host(RunningHost(ProcessId(1, 2), ProcessId(3, 4)))
    folder.write_session(SessionPlan("local[2]", {"spark.driver.memory": "2g"}))
    assert folder.host() == RunningHost(ProcessId(1, 2), ProcessId(3, 4))
    assert folder.session() == SessionPlan("local[2]", {"spark.driver.memory": "2g"})


@pytest.mark.parametrize("name", ["app", "a.b-c_9", "x" * 100])
def test_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-a", ".a", "x" * 101, "a b", "é", "a\n"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(KasparError, match="is not a valid pipeline name"):
        check_name(name)
