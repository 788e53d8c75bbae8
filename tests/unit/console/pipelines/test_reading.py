"""Pipelines as their folder has them, while no host runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from kaspar.console.pipelines.changing import restart, stop
from kaspar.console.pipelines.reading import NO_FOLDER, describe_pipeline, list_pipelines
from kaspar.console.problems import Conflict, NotThere
from kaspar.pipelines.folder import Definition, Folder, Seen, Wanted
from kaspar.pipelines.lines import restart_policy
from kaspar.pipelines.pipeline import PipelineProgress
from kaspar.pipelines.statuses import PipelineStatus, State


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """With a pipeline that ran until its supervisor ended."""
    folder = Folder(tmp_path / "pipelines")
    folder.make()
    folder.define("copy", Definition("/programs/copy.py", ("--fast",), 7))
    progress = PipelineProgress(batches=3, processed_rows_per_second=12.5, lag=40, batch_ms=210, state_bytes=1024)
    status = PipelineStatus("copy", State.RUNNING, 1_000, 2, "boom", 900, progress)
    folder.write_seen("copy", Seen(7, status))
    return folder


def test_what_was_last_seen_is_shown(folder: Folder) -> None:
    view = list_pipelines(folder.path)
    (row,) = view.rows
    assert (row.name, row.state, row.wanted, row.restarts, row.reason) == ("copy", "interrupted", "running", 2, "boom")
    assert (row.processed_rows_per_second, row.lag, row.batch_ms, row.state_bytes) == (12.5, 40, 210, 1024)
    assert not view.has_supervisor
    assert "No supervisor is running" in view.remark


def test_one_pipeline_has_its_program_and_the_restart_policy(folder: Folder) -> None:
    view = describe_pipeline(folder.path, "copy")
    assert (view.program, view.arguments) == ("/programs/copy.py", ("--fast",))
    assert view.log == str(folder.log("copy"))
    assert view.topology == ()
    assert view.restart_policy == restart_policy()
    assert "after 0.5 s" in view.restart_policy
    with pytest.raises(NotThere, match="no pipeline other"):
        describe_pipeline(folder.path, "other")


def test_a_console_without_a_folder_says_so(tmp_path: Path) -> None:
    assert list_pipelines(None).remark == NO_FOLDER
    with pytest.raises(NotThere):
        describe_pipeline(None, "copy")
    assert "No pipelines have been run" in list_pipelines(tmp_path / "new").remark


def test_a_stopped_pipeline_stays_stopped(folder: Folder) -> None:
    stop(folder.path, "copy")
    definition = folder.definition("copy")
    assert definition is not None
    assert definition.wanted is Wanted.STOPPED
    assert list_pipelines(folder.path).rows[0].state == "stopped"


def test_a_restart_needs_somebody_who_starts_it(folder: Folder) -> None:
    with pytest.raises(Conflict, match="No supervisor is running"):
        restart(folder.path, "copy")
    assert folder.definition("copy") == Definition("/programs/copy.py", ("--fast",), 7)
    with pytest.raises(NotThere):
        restart(folder.path, "../../etc")


def test_the_console_loads_no_spark(folder: Folder) -> None:
    program = f"""
import sys
from pathlib import Path
from kaspar.console.pipelines import changing, reading
path = Path({str(folder.path)!r})
reading.list_pipelines(path)
reading.describe_pipeline(path, "copy")
changing.stop(path, "copy")
heavy = sorted(each for each in sys.modules if each.partition(".")[0] in ("pyspark", "py4j", "pandas", "pyarrow"))
sys.exit(", ".join(heavy) or 0)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
