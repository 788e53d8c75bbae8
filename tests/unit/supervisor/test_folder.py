"""The files of a cluster: what is kept, what is refused, and the lock."""

import os
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.base.processes import ProcessId
from kaspar.supervisor.folder import Folder, Running, RunningMember
from kaspar.supervisor.plan import BrokerPlan, ClusterPlan, ZooKeeperPlan

PLAN = ClusterPlan((BrokerPlan(1, 9092, 9404), BrokerPlan(2, 9093, 9405)), (ZooKeeperPlan(1, 2181, 2888, 3888),))
ME = ProcessId.of(os.getpid())


def test_plan_and_processes_are_read_back(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    running = Running(ME, {1: RunningMember(ME, was_ready=True), 2: RunningMember()}, {1: RunningMember(ME)})
    folder.write_plan(PLAN)
    folder.write_running(running)
    assert Folder(tmp_path).plan() == PLAN
    assert Folder(tmp_path).running() == running
    assert running.processes() == [ME, ME]
    folder.remove_running()
    folder.remove_running()
    assert folder.running() is None


def test_new_or_empty_folder_has_no_plan(tmp_path: Path) -> None:
    assert Folder(tmp_path / "new").plan() is None
    folder = Folder(tmp_path)
    with folder.locked():
        assert folder.plan() is None, "the lock does not count"


def test_plan_that_was_not_completely_written_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "cluster.new").write_text("{")
    assert Folder(tmp_path).plan() is None


def test_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("node.id=1\n")
    with pytest.raises(KasparError, match="is not empty and was not created by 'kaspar up'"):
        Folder(tmp_path).plan()


@pytest.mark.parametrize("text", ["", "[]", '{"brokers": 3}', '{"brokers": [{"id": "one"}]}', "\xff"])
def test_file_that_others_have_written_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text, encoding="latin-1")
    with pytest.raises(KasparError, match="was not written by 'kaspar up'"):
        Folder(tmp_path).plan()


def test_second_supervisor_is_refused(tmp_path: Path) -> None:
    with Folder(tmp_path / "a").locked():
        with (
            pytest.raises(KasparError, match=r"is already running in .*kaspar stop --dir"),
            Folder(tmp_path / "a").locked(),
        ):
            pass
        with Folder(tmp_path / "b").locked():
            pass
    with Folder(tmp_path / "a").locked():
        pass


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = Folder(tmp_path / "file")
    with pytest.raises(KasparError, match="cannot be used: File exists"), folder.locked():
        pass
    with pytest.raises(KasparError, match="is not a folder"):
        folder.plan()
