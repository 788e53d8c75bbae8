"""Whether the cluster responds: every page watches that."""

from dataclasses import dataclass

from kaspar.console.http.endpoint import Call, watched


@dataclass(frozen=True, slots=True)
class ClusterState:
    problem: str
    """Why the monitor could not look at it the last time; empty if it could."""
    at_ms: int | None
    """When the monitor has last seen it, if there is a problem."""


@watched("cluster")
async def cluster(call: Call, argument: str) -> ClusterState:
    monitor = call.context.monitor
    if not monitor.cluster_problem:
        return ClusterState("", None)
    return ClusterState(monitor.cluster_problem, None if monitor.cluster is None else monitor.cluster.at_ms)


CHANNELS = (cluster,)
