"""The pipelines of a folder, as their host reports them, or as it last saved them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kaspar.base.errors import KasparError
from kaspar.console.pipelines.topologies import SubTopology, read_topology
from kaspar.console.problems import NotThere

if TYPE_CHECKING:
    from kaspar.pipelines.folder import Folder
    from kaspar.pipelines.statuses import PipelineStatus

NO_FOLDER: Final = "No pipelines folder is configured: set kaspar.console.pipelines.folder."


@dataclass(frozen=True, slots=True)
class PipelineRow:
    """A pipeline in the list. Its figures are those of the last micro-batch; None if they are not known."""

    name: str
    state: str
    wanted: str
    since_ms: int
    restarts: int
    reason: str | None
    """The reason of the last failure."""
    failed_ms: int | None
    batches: int | None
    rows: int | None
    input_rows_per_second: float | None
    processed_rows_per_second: float | None
    lag: int | None
    batch_ms: int | None
    state_rows: int | None
    state_bytes: int | None
    stream_time_ms: int | None


@dataclass(frozen=True, slots=True)
class PipelinesView:
    rows: tuple[PipelineRow, ...]
    folder: str | None
    has_supervisor: bool
    remark: str = ""
    """Why the list is empty, or why nothing runs."""


@dataclass(frozen=True, slots=True)
class QueryView:
    name: str
    id: str
    is_active: bool
    doing: str


@dataclass(frozen=True, slots=True)
class PipelineView:
    row: PipelineRow
    program: str
    arguments: tuple[str, ...]
    log: str
    queries: tuple[QueryView, ...]
    description: str
    topology: tuple[SubTopology, ...]
    """The graph of a running streams program; empty for any other."""
    restart_policy: str


def open_folder(path: Path | None) -> "Folder":
    """Raises NotThere."""
    from kaspar.pipelines.folder import Folder

    if path is None:
        raise NotThere(NO_FOLDER)
    return Folder(path)


def list_pipelines(path: Path | None) -> PipelinesView:
    """The pipelines of a folder. Raises KasparError if it cannot be read."""
    from kaspar.pipelines.looking import statuses_of

    if path is None:
        return PipelinesView((), None, False, NO_FOLDER)
    folder = open_folder(path)
    if not folder.exists():
        return PipelinesView((), str(folder.path), False, f"No pipelines have been run in {folder.path} yet.")
    wanted = _wanted(folder)
    rows = tuple(_row(each, wanted.get(each.name, "")) for each in statuses_of(folder))
    has_supervisor = folder.supervisor() is not None
    remark = (
        ""
        if has_supervisor
        else "No supervisor is running: 'kaspar pipeline run' resumes the pipelines that were not stopped."
    )
    return PipelinesView(rows, str(folder.path), has_supervisor, remark)


def describe_pipeline(path: Path | None, name: str) -> PipelineView:
    """One pipeline with its queries. Raises NotThere, and KasparError if the folder cannot be read."""
    from kaspar.pipelines.lines import restart_policy
    from kaspar.pipelines.looking import details_of

    folder = open_folder(path)
    check_there(folder, name)
    details = details_of(folder, name)
    return PipelineView(
        _row(details.status, _wanted(folder).get(name, "")),
        details.program,
        details.arguments,
        details.log,
        tuple(QueryView(each.name, each.id, each.is_active, each.doing) for each in details.queries),
        details.description,
        read_topology(details.description),
        restart_policy(),
    )


def check_there(folder: "Folder", name: str) -> None:
    if name not in folder.names():
        raise NotThere(f"There is no pipeline {name} in {folder.path}.")


def _wanted(folder: "Folder") -> Mapping[str, str]:
    try:
        return {name: each.wanted.value for name, each in folder.definitions().items()}
    except KasparError:  # a definition is being removed or is damaged: the host still knows the states
        return {}


def _row(status: "PipelineStatus", wanted: str) -> PipelineRow:
    progress = status.progress
    return PipelineRow(
        status.name,
        status.state.value,
        wanted,
        status.since_ms,
        status.restarts,
        status.reason,
        status.failed_ms,
        progress.batches,
        progress.rows,
        progress.input_rows_per_second,
        progress.processed_rows_per_second,
        progress.lag,
        progress.batch_ms,
        progress.state_rows,
        progress.state_bytes,
        progress.stream_time_ms,
    )
