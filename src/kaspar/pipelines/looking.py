"""The statuses of a folder's pipelines, for other processes: from the host, or if none responds, from its files."""

import time
from dataclasses import replace

from kaspar.pipelines.control import NoHost, ask
from kaspar.pipelines.definitions import known
from kaspar.pipelines.folder import Definition, Folder, Wanted
from kaspar.pipelines.messages import Described, DescribePipeline, ListPipelines, Pipelines
from kaspar.pipelines.statuses import PipelineDetails, PipelineStatus, State


def statuses_of(folder: Folder) -> list[PipelineStatus]:
    try:
        return list(ask(folder.socket, ListPipelines(), Pipelines).statuses)
    except NoHost:
        return [_without_host(folder, name, definition) for name, definition in folder.definitions().items()]


def details_of(folder: Folder, name: str) -> PipelineDetails:
    definition = known(folder, name)
    try:
        return ask(folder.socket, DescribePipeline(name), Described).details
    except NoHost:
        status = _without_host(folder, name, definition)
        return PipelineDetails(status, definition.program, definition.arguments, str(folder.log(name)))


def _without_host(folder: Folder, name: str, definition: Definition) -> PipelineStatus:
    seen = folder.seen(name)
    if seen is None or seen.generation != definition.generation:
        status = PipelineStatus(name, State.INTERRUPTED, time.time_ns() // 1_000_000)
    else:
        status = seen.status
    if definition.wanted is Wanted.STOPPED:
        return replace(status, state=State.STOPPED)
    if status.state is State.FINISHED:
        return status
    host, supervisor = folder.host(), folder.supervisor()
    if host is not None and host.process.is_running():
        return status  # too busy to respond
    if supervisor is None:
        return replace(status, state=State.INTERRUPTED)
    return replace(status, state=State.RESTARTING, reason=supervisor.problem or status.reason)
