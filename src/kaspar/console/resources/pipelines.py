"""Pipelines of this machine: listed, restarted and stopped. Where brokers know the callers, their rights on the cluster
apply: Describe to see pipelines, Alter to change them."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from kaspar.acls.acl import AclOperation
from kaspar.callers.permissions import require_cluster
from kaspar.console.http.endpoint import Call, changes, reads
from kaspar.console.pipelines import changing
from kaspar.console.pipelines.reading import PipelinesView, PipelineView, describe_pipeline, list_pipelines

_Result = TypeVar("_Result")


@reads("/api/pipelines")
async def pipelines(call: Call) -> PipelinesView:
    await _require(call, AclOperation.DESCRIBE, "Seeing pipelines")
    return await _shared(call, "pipelines", partial(list_pipelines, _folder(call)))


@reads("/api/pipelines/{pipeline}")
async def pipeline(call: Call) -> PipelineView:
    await _require(call, AclOperation.DESCRIBE, "Seeing a pipeline")
    name = call.path["pipeline"]
    return await _shared(call, ("pipeline", name), partial(describe_pipeline, _folder(call), name))


@changes("POST", "/api/pipelines/{pipeline}/restart", action="restart pipeline", resource="pipeline {pipeline}")
async def restart(call: Call) -> None:
    await _require(call, AclOperation.ALTER, "Restarting a pipeline")
    await asyncio.to_thread(changing.restart, _folder(call), call.path["pipeline"])


@changes("POST", "/api/pipelines/{pipeline}/stop", action="stop pipeline", resource="pipeline {pipeline}")
async def stop(call: Call) -> None:
    await _require(call, AclOperation.ALTER, "Stopping a pipeline")
    await asyncio.to_thread(changing.stop, _folder(call), call.path["pipeline"])


async def _require(call: Call, operation: AclOperation, what: str) -> None:
    if call.context.propagates:
        check = partial(require_cluster, operation=operation, what=what)
        await call.shared(("cluster operation", operation), check)


async def _shared(call: Call, what: object, read: Callable[[], _Result]) -> _Result:
    """Call `read` once for all callers, since they see the same pipelines."""
    return await call.context.reads.get(("folder of pipelines", what), lambda: asyncio.to_thread(read))


def _folder(call: Call) -> Path | None:
    folder = call.context.config.settings.kaspar_console_pipelines_folder
    return Path(folder) if folder else None


ENDPOINTS = (pipelines, pipeline, restart, stop)
