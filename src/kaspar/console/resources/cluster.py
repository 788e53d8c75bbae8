"""Whether the cluster responds, which every page watches."""

from dataclasses import dataclass

from kaspar.console.http.endpoint import Call, watched


@dataclass(frozen=True, slots=True)
class ClusterState:
    problem: str
    """Why the monitor could not read the cluster the last time; empty if it could."""
    at_ms: int | None
    """When the monitor last read it; None if there is no problem, or it was never read."""


@watched("cluster")
async def cluster(call: Call, argument: str) -> ClusterState:
    monitor = call.context.monitor
    if not monitor.cluster_problem:
        return ClusterState("", None)
    return ClusterState(monitor.cluster_problem, None if monitor.cluster is None else monitor.cluster.at_ms)


CHANNELS = (cluster,)
