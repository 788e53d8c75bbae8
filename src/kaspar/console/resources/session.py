"""The session: the caller, the cluster, and the available parts of the console."""

from dataclasses import dataclass

from kaspar import __version__
from kaspar.console.http.endpoint import Call, reads


@dataclass(frozen=True, slots=True)
class Session:
    caller: str | None
    """None if callers do not log in."""
    is_read_only: bool
    cluster_id: str | None
    """None until the monitor has reached the cluster."""
    bootstrap_servers: str
    has_registry: bool
    has_pipelines: bool
    version: str


@reads("/api/session")
async def session(call: Call) -> Session:
    settings = call.context.config.settings
    cluster = call.context.monitor.cluster
    return Session(
        call.caller.name,
        settings.kaspar_console_read_only,
        None if cluster is None else cluster.cluster_id,
        settings.bootstrap_servers,
        bool(settings.schema_registry_url),
        bool(settings.kaspar_console_pipelines_folder),
        __version__,
    )


ENDPOINTS = (session,)
