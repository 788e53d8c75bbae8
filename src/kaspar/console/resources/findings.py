"""The doctor's findings: as of its last observation, or of a new one."""

from functools import partial

from kaspar.console.findings import EVERYTHING, FindingsView, view_of, visible_to
from kaspar.console.http.endpoint import Call, Endpoint, reads, watched
from kaspar.console.http.errors import CallFailed


@reads("/api/findings")
async def findings(call: Call) -> FindingsView:
    return await _view(call)


@watched("findings")
async def watched_findings(call: Call, _: str) -> FindingsView:
    return await _view(call)


async def _look_again(call: Call) -> FindingsView:
    """Let the doctor look again, once for concurrent requests. This changes nothing, so it is not in the audit log."""
    monitor = call.context.monitor
    has_looked = await call.context.reads.get("doctor", partial(monitor.read_findings, everything=True))
    if not has_looked:
        raise CallFailed(503, f"The doctor cannot reach the cluster. {monitor.cluster_problem}".rstrip())
    return await _view(call)


async def _view(call: Call) -> FindingsView:
    monitor = call.context.monitor
    visible = await call.shared("what findings may be about", visible_to) if call.context.propagates else EVERYTHING
    return view_of(monitor.findings, visible, looked_at_ms=monitor.findings_at_ms)


ENDPOINTS = (findings, Endpoint("POST", "/api/findings", _look_again))
CHANNELS = (watched_findings,)
